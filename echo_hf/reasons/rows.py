"""Why a row of a stage does not go on, waits, or is noted."""

from __future__ import annotations

from echo_hf.reasons.reason import Reason


class Reject(Reason):
    """Why a row does not go on; its input row is kept in `rejects`."""

    NOT_JSON = "not_json", "the line or file is not valid JSON"
    NOT_A_POST = "not_a_post", "the JSON is not a post in the source's format"
    BROKEN_ROW = "broken_row", "the row of the table cannot be read; the detail has its line"
    NO_URL = "no_url", "the post has no usable address"
    OTHER_PLATFORM = (
        "other_platform",
        "it names X as its platform, and its address is elsewhere; give the address at X",
    )
    SUPERSEDED = (
        "superseded",
        "another record has a newer text of the same post, which takes the place of its text and "
        "pictures; the detail names it",
    )
    REPOST = "repost", "a pure repost: the original post stands for it"
    NOT_RELEVANT = "not_relevant", "no post of its thread is about images made with the target"
    NOT_ASKED = "not_asked", "no post of its thread was found by a search, so none was scored"
    NOT_SCORED = "not_scored", "no post of its thread passed, and at least one could not be scored"
    NO_SAMPLE = "no_sample", "the model found no sample in the thread"
    TRASH = "trash", "no clear task, off topic, or made with another model"
    FLAGGED = "flagged", "marked by the safety stage; the detail names the hazards"
    REMOVED_IN_REVIEW = "removed_in_review", "a reviewer removed it; no other one takes its place"
    NOT_CLEANED = (
        "not_cleaned",
        "an image of it has metadata that cannot be removed; it waits until a reviewer keeps it",
    )
    DUPLICATE_OF = "duplicate_of", "equal prompt and inputs; the detail names the sample that stays"


class Failed(Reason):
    """Why a model call gave no answer; its row is kept in `quarantine` and tried again."""

    NEEDS_MODEL = "needs_model", "plain rules cannot decide this; run it with a model"
    NOT_ANSWERED = "not_answered", "no answer is stored, and none was asked for"
    ENGINE_ERROR = "engine_error", "the engine reported an error"
    REFUSED = "refused", "the model declined to answer"
    CUT = "cut", "the answer ended at the token limit"
    UNREADABLE = "unreadable", "the answer holds no JSON object, or is none of those that may be"
    OFF_SCHEMA = "off_schema", "the answer's JSON does not fit the declared schema"


class Notice(Reason):
    """What was noticed about a row that goes on."""

    FORGOTTEN = "forgotten", "a post whose removal was asked for; nothing of it is taken in"
    FORGOTTEN_LINK = (
        "forgotten_link",
        "the post answers or quotes one whose removal was asked for; a hash stands for its address",
    )
    BAD_TIMESTAMP = "bad_timestamp", "the date cannot be read; the post stays without one"
    BAD_FIELD = (
        "bad_field",
        "a field has a value of the wrong kind; the post stays, with what could be read of it",
    )
    UNKNOWN_FIELD = "unknown_field", "a field that the format does not have"
    BROKEN_PICTURE = "broken_picture", "the picture cannot be decoded"
    PICTURE_NOT_FOUND = "picture_not_found", "the picture file does not exist"
    PICTURE_WITHOUT_ADDRESS = "picture_without_address", "a picture is named, but not where it is"
    REPLIES_NOT_FETCHED = (
        "replies_not_fetched",
        "the answer says that there are more replies, and does not hold them",
    )
    UNNAMED_PARENT = (
        "unnamed_parent",
        "the post answers one whose address the platform did not say; its reply tree says it",
    )
    HIDDEN_BY_AUTHOR = (
        "hidden_by_author",
        "its author keeps it from the general public (signed-in readers, followers, unlisted): its "
        "address and its place in the thread are taken in, nothing else",
    )
    LABELLED = "labelled", "the platform or the author put labels on the post; the detail has them"
    CLAIMED_TIME = (
        "claimed_time",
        "the author dates the post after the platform first saw it; the platform's time is taken",
    )
    PICTURE_OUTSIDE = "picture_outside", "the picture's path leaves the folder of the posts"
    SELF_PARENT = "self_parent", "the post names itself as its parent; the link is cut"
    CYCLE = "cycle", "replies form a circle; it is cut at its earliest post"
    UNKNOWN_NUMBER = (
        "unknown_number",
        "the model named a post, a picture or a comment that it was not shown",
    )
    NOT_ITS_POST = "not_its_post", "the model named a post that only stands above the sample's own"
    POST_USED_TWICE = "post_used_twice", "the model gave one post to two samples; the first has it"
    PICTURE_USED_TWICE = (
        "picture_used_twice",
        "two samples of a thread, or two tasks of a sample, show one picture; the first has it",
    )
    TWO_ROLES = "two_roles", "the model called a picture input and output; it counts as output"
    NEITHER = "neither", "the model calls the picture neither input nor output"
    NO_TASK = "no_task", "the pictures show no coherent task; the sample is of quality Analysis"
    UNKNOWN_BLANK = (
        "unknown_blank",
        "the model filled what is no blank of the prompt, or a blank more often than it stands",
    )
    BLANK_LEFT = "blank_left", "a completed template still holds this blank; only for analysis"
    TEMPLATE_LEFT = (
        "template_left",
        "the prompt is a template that nothing completed; only for analysis",
    )
    PICTURE_NOT_THERE = (
        "picture_not_there",
        "a picture of the sample's posts could not be had, and may be an input; only for analysis",
    )
    NOT_COMPLETED = (
        "not_completed",
        "a picture of a template whose other pictures show completions, but not this one",
    )
    COMPLETION_WITHOUT_PICTURE = (
        "completion_without_picture",
        "the model completed a template without a picture that shows it",
    )
    NOT_PARSED = (
        "not_parsed",
        "the pictures stand in a screenshot that is yet to be taken apart",
    )
    WRONG_CONVENTION = (
        "wrong_convention",
        "the model's coordinates do not fit its way of naming places; nothing is cut out",
    )
    DEGENERATE_BOX = "degenerate_box", "a box has no area in the screenshot; nothing is cut out"
    TINY_BOX = "tiny_box", "a box is too small to hold a picture; nothing is cut out"
    WHOLE_BOX = "whole_box", "a box is nearly the whole screenshot; nothing is cut out"
    OVERLAPPING_BOXES = (
        "overlapping_boxes",
        "two boxes show the same part of the screenshot, or equal ones; nothing is cut out",
    )
    NO_BOX = "no_box", "the model found no picture in the screenshot; nothing is cut out"
    DUPLICATE_BOX = "duplicate_box", "two boxes show one picture; the first one counts"
    CLAMPED_BOX = "clamped_box", "a box reaches a little past the screenshot; it ends at its edge"
    ASSUMED_CONVENTION = (
        "assumed_convention",
        "how the model names places is not known; it was told a way, and is taken at its word",
    )
    UNKNOWN_PIXELS = (
        "unknown_pixels",
        "the model counts pixels, and how its server resizes pictures is not stated: give the "
        "engine max_pixels; the screenshot was not asked about",
    )
    UNFIT_PICTURE = (
        "unfit_picture",
        "a picture of this shape cannot be sent to the model; it was not asked about",
    )
    PROMPT_NOT_READ = (
        "prompt_not_read",
        "the engine cannot read the words in the screenshot; the sample keeps its prompt",
    )
    REPLACED_INPUT = (
        "replaced_input",
        "an input that was posted beside the screenshot; those that it shows take its place",
    )
    UNKNOWN_HAZARD = (
        "unknown_hazard",
        "the guard flagged the sample without a label, or with one that no list knows; the sample "
        "is kept out of the benchmark",
    )
    UNJUDGED_COMMENT = "unjudged_comment", "the model gave no verdict on a comment"
    JUDGED_TWICE = "judged_twice", "the model gave a comment two verdicts; the first one counts"
    PARTS_DISAGREE = (
        "parts_disagree",
        "answers about parts of one sample name different kinds or tasks; the first counts",
    )
    BAD_KEYWORD = "bad_keyword", "the keyword is no short name of a failure; it is left out"
    KEYWORD_WITHOUT_FAILURE = (
        "keyword_without_failure",
        "the model gave a keyword with a verdict that speaks of no failure; it is left out",
    )
    SHORTENED_PROMPT = (
        "shortened_prompt",
        "the prompt holds our own mark of what was left out of a text that is too long to show; "
        "only for analysis",
    )
    EMPTY_SAMPLE = "empty_sample", "a sample of the answer had no prompt or no post"
    FEEDBACK_NOT_IN_POST = "feedback_not_in_post", "the feedback is no text of the post it names"
    NO_AUTHOR_KEY = (
        "no_author_key",
        "ECHO_HF_AUTHOR_KEY is not set: its author, and those of its comments, are left out",
    )
    AUTHOR_IN_ADDRESS = (
        "author_in_address",
        "the address of the post, which is published, holds its author's name, and would undo a "
        "hash of it: there is none",
    )
    MASKED_E_MAIL = "masked_e_mail", "an e-mail address in a comment or provenance is masked"
    MASKED_PHONE = "masked_phone", "a phone number in a comment or provenance is masked"
    MASKED_HANDLE = "masked_handle", "an account's name in a comment or provenance is masked"
    MASKED_CARD = "masked_card", "the number of a card in a comment or provenance is masked"
    MASKED_IBAN = "masked_iban", "the number of an account at a bank (IBAN) is masked likewise"
    MASKED_IP = "masked_ip", "the address of a machine (IP) in a comment or provenance is masked"
    MASKED_KEY = "masked_key", "a key to a service in a comment or provenance is masked"
    MASKED_UNSEARCHED = (
        "masked_unsearched",
        "a comment or provenance has more than the 12,000 characters that are searched for "
        "personal data: the rest is left out",
    )
    REMOVED_EXIF = "removed_exif", "notes of a camera or a program were removed from an image"
    REMOVED_GPS = "removed_gps", "where it was taken was removed from an image"
    REMOVED_XMP = "removed_xmp", "notes in XML were removed from an image"
    REMOVED_IPTC = "removed_iptc", "notes of a picture desk were removed from an image"
    REMOVED_COMMENT = "removed_comment", "a comment was removed from an image"
    REMOVED_TEXT = "removed_text", "named texts were removed from an image"
    REMOVED_OTHER = (
        "removed_other",
        "a signature, a thumbnail, a further image or the like was removed from an image",
    )
    IMAGE_NOT_CLEANED = (
        "image_not_cleaned",
        "what an image says beside its pixels cannot be removed; a person has to look at it",
    )
    PERSONAL_DATA_IN_PROMPT = (
        "personal_data_in_prompt",
        "the prompt holds personal data; it stays as it is, and a person has to look at it",
    )
    EDITED_IN_REVIEW = "edited_in_review", "a reviewer changed it; the detail names what"
    EDIT_NOT_APPLIED = (
        "edit_not_applied",
        "a part of a reviewer's change is about a picture that is not there any more, or that "
        "another sample has; the rest of the change holds",
    )
