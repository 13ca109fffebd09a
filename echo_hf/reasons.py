"""Reasons and their kinds: why a row was rejected, quarantined, noted, or is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, StrEnum
from typing import ClassVar


class Reason(StrEnum):
    """A name with its meaning; `Reason.meaning` is what reports print.

    Each room has its own, beside what gives them; `list_enums` finds those that are loaded.
    """

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Reason:
        """Make a member that equals its name and carries its meaning."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member


class Fact(Enum):
    """Facts that some reasons also state, each marked beside the members."""

    UNUSABLE = "an answer came that cannot be used, and the same would come of asking by itself"
    FOR_ANALYSIS = "the sample is for analysis alone because of it"
    CHANGES_TASK = "the task may be another than it seems"

    def __init__(self, meaning: str) -> None:
        """Begin without a reason."""
        self.meaning = meaning
        self.reasons: set[Reason] = set()

    def mark(self, *reasons: Reason) -> None:
        """Let reasons say it."""
        self.reasons.update(reasons)


class Status(StrEnum):
    """Statuses of input rows: the values of the `_status` control column."""

    KEPT = "kept"
    REJECTED = "rejected"
    QUARANTINED = "quarantined"
    NOTED = "noted"


class StageReason(Reason):
    """A reason that a stage gives for a row; its kind tells how the row is counted."""

    status: ClassVar[Status]

    def __init_subclass__(cls, status: Status | None = None) -> None:
        """Set the status of a kind; an enum of the kind has the same."""
        super().__init_subclass__()
        cls.status = status or cls.status


class RejectReason(StageReason, status=Status.REJECTED):
    """Why a row does not go on; it is kept among the rejects."""


class FailureReason(StageReason, status=Status.QUARANTINED):
    """Why a model call gave no answer: the row is kept in quarantine, and tried again."""


class NoticeReason(StageReason, status=Status.NOTED):
    """Something to know about a row that goes on."""


class Reject(RejectReason):
    """Why a row does not go on; its input row is kept in `rejects`."""

    NOT_JSON = "not_json", "the line or file is not valid JSON"
    NOT_A_POST = "not_a_post", "the JSON is not a post in the source's format"
    BROKEN_ROW = "broken_row", "the row of the table cannot be read; the detail has its line"
    NO_URL = "no_url", "the post has no usable address"
    OTHER_PLATFORM = "other_platform", "it names X as its platform, and its address is elsewhere"
    SUPERSEDED = "superseded", "another record of the post has a newer text; the detail names it"
    REPOST = "repost", "a pure repost: the original post stands for it"
    NOT_RELEVANT = "not_relevant", "no post of its thread is about images made with the target"
    NOT_ASKED = "not_asked", "no post of its thread was found by a search, so none was scored"
    NOT_SCORED = "not_scored", "no post of its thread passed, and at least one could not be scored"
    NO_SAMPLE = "no_sample", "the model found no sample in the thread"
    TRASH = "trash", "no clear task, off topic, or made with another model"
    FLAGGED = "flagged", "marked by the safety stage; the detail names the hazards"
    REMOVED_IN_REVIEW = "removed_in_review", "a reviewer removed it; no other one takes its place"
    NOT_CLEANED = "not_cleaned", "an image's metadata stay; it waits until a reviewer keeps it"
    DUPLICATE_OF = "duplicate_of", "equal prompt and inputs; the detail names the sample that stays"


class Notice(NoticeReason):
    """Notices about a row that goes on."""

    FORGOTTEN = "forgotten", "a post whose removal was asked for; nothing of it is taken in"
    FORGOTTEN_LINK = "forgotten_link", "it answers or quotes a forgotten post, named by a hash"
    BAD_TIMESTAMP = "bad_timestamp", "the date cannot be read; the post stays without one"
    BAD_FIELD = "bad_field", "a field has a value of the wrong kind; what can be read of it is kept"
    UNKNOWN_FIELD = "unknown_field", "a field that the format does not have"
    CUT_NOTE = "cut_note", "the note of an answer is too long: its end is left out, the rest counts"
    BROKEN_IMAGE = "broken_picture", "the image cannot be decoded"
    IMAGE_NOT_FOUND = "picture_not_found", "the image file does not exist"
    IMAGE_WITHOUT_ADDRESS = "picture_without_address", "an image is named, but not where it is"
    REPLIES_NOT_FETCHED = "replies_not_fetched", "the answer lacks replies that it says there are"
    UNNAMED_PARENT = "unnamed_parent", "it answers a post that only its reply tree names"
    UNLISTED = "unlisted", "kept out of searches by its author: its address alone is taken in"
    HIDDEN_BY_AUTHOR = "hidden_by_author", "hidden from the public: its address alone is taken in"
    LABELLED = "labelled", "the platform or the author put labels on the post; the detail has them"
    CLAIMED_TIME = "claimed_time", "its author dates it after the platform, whose time is taken"
    IMAGE_OUTSIDE = "picture_outside", "the image's path leaves the folder of the posts"
    SELF_PARENT = "self_parent", "the post names itself as its parent; the link is cut"
    CYCLE = "cycle", "replies form a circle; it is cut at its earliest post"
    UNKNOWN_NUMBER = "unknown_number", "the model named a post, image or comment it was not shown"
    NOT_ITS_POST = "not_its_post", "the model named a post that only stands above the sample's own"
    POST_USED_TWICE = "post_used_twice", "the model gave one post to two samples; the first has it"
    IMAGE_USED_TWICE = "picture_used_twice", "two samples or tasks show one image; the first has it"
    NOTES_LEFT_OUT = "notes_left_out", "a note that follows the prompt in its post is no part of it"
    TWO_ROLES = "two_roles", "the model called an image input and output; it counts as output"
    NEITHER = "neither", "the model calls the image neither input nor output"
    NO_TASK = "no_task", "the images show no coherent task; the sample is of quality Analysis"
    UNKNOWN_BLANK = "unknown_blank", "the model filled what is no blank, or a blank too often"
    BLANK_LEFT = "blank_left", "a completed template still holds this blank; only for analysis"
    TEMPLATE_LEFT = "template_left", "the prompt is a template without values; only for analysis"
    IMAGE_NOT_THERE = "picture_not_there", "a possible input was not fetched; only for analysis"
    NOT_COMPLETED = "not_completed", "other images show completions of its template, it does not"
    COMPLETION_WITHOUT_IMAGE = "completion_without_picture", "no image shows what was completed"
    SEVERAL_IMAGES = "several_images", "an output looks like a sheet of images, or like a window"
    NOT_PARSED = "not_parsed", "the images stand in a screenshot that is yet to be taken apart"
    WRONG_CONVENTION = "wrong_convention", "coordinates of another convention; nothing is cut out"
    DEGENERATE_BOX = "degenerate_box", "a box has no area in the screenshot; nothing is cut out"
    TINY_BOX = "tiny_box", "a box is too small to hold an image; nothing is cut out"
    WHOLE_BOX = "whole_box", "a box is nearly the whole screenshot; nothing is cut out"
    OVERLAPPING_BOXES = "overlapping_boxes", "two boxes overlap or are equal; nothing is cut out"
    NO_BOX = "no_box", "the model found no image in the screenshot; nothing is cut out"
    DUPLICATE_BOX = "duplicate_box", "two boxes show one image; the first one counts"
    CLAMPED_BOX = "clamped_box", "a box reaches a little past the screenshot; it ends at its edge"
    ASSUMED_CONVENTION = "assumed_convention", "how it names places is not known; it was told a way"
    UNKNOWN_PIXELS = "unknown_pixels", "not asked: the engine lacks max_pixels, by which it counts"
    UNFIT_IMAGE = "unfit_picture", "its shape cannot be sent to the model, which was not asked"
    PROMPT_NOT_READ = "prompt_not_read", "the engine reads no words in images; the prompt stays"
    REPLACED_INPUT = "replaced_input", "inputs in the screenshot replace one posted beside it"
    UNKNOWN_HAZARD = "unknown_hazard", "flagged without a known label; not in the benchmark"
    UNJUDGED_COMMENT = "unjudged_comment", "the model gave no verdict on a comment"
    JUDGED_TWICE = "judged_twice", "the model gave a comment two verdicts; the first one counts"
    PARTS_DISAGREE = "parts_disagree", "its parts differ in kind or task; the first answer counts"
    BAD_KEYWORD = "bad_keyword", "the keyword is not a short name of a failure; it is left out"
    BAD_PHRASE = "bad_phrase", "the phrase is no short name of a task; it is left out"
    KEYWORD_WITHOUT_FAILURE = "keyword_without_failure", "a keyword without a failure is left out"
    SHORTENED_PROMPT = "shortened_prompt", "it holds our mark of text left out; only for analysis"
    EMPTY_SAMPLE = "empty_sample", "a sample of the answer had no prompt or no post"
    FEEDBACK_NOT_IN_POST = "feedback_not_in_post", "the feedback is not text of the post it names"
    NO_AUTHOR_KEY = "no_author_key", "ECHO_HF_AUTHOR_KEY is not set: all authors are left out"
    AUTHOR_IN_ADDRESS = "author_in_address", "the post's address names its author: there is no hash"
    MASKED_E_MAIL = "masked_e_mail", "an e-mail address in a comment or provenance is masked"
    MASKED_PHONE = "masked_phone", "a phone number in a comment or provenance is masked"
    MASKED_HANDLE = "masked_handle", "an account's name in a comment or provenance is masked"
    MASKED_CARD = "masked_card", "the number of a card in a comment or provenance is masked"
    MASKED_IBAN = "masked_iban", "the number of an account at a bank (IBAN) is masked likewise"
    MASKED_IP = "masked_ip", "the address of a machine (IP) in a comment or provenance is masked"
    MASKED_KEY = "masked_key", "a key to a service in a comment or provenance is masked"
    MASKED_UNSEARCHED = "masked_unsearched", "all after the first 12,000 characters is left out"
    REMOVED_EXIF = "removed_exif", "notes of a camera or a program were removed from an image"
    REMOVED_GPS = "removed_gps", "where it was taken was removed from an image"
    REMOVED_XMP = "removed_xmp", "notes in XML were removed from an image"
    REMOVED_IPTC = "removed_iptc", "caption and credit notes (IPTC) were removed from an image"
    REMOVED_COMMENT = "removed_comment", "a comment was removed from an image"
    REMOVED_TEXT = "removed_text", "named texts were removed from an image"
    REMOVED_OTHER = "removed_other", "a signature, thumbnail, further image or the like was removed"
    IMAGE_NOT_CLEANED = "image_not_cleaned", "metadata of an image stay; a person has to look at it"
    PERSONAL_DATA_IN_PROMPT = "personal_data_in_prompt", "it stays; a person has to look at it"
    EDITED_IN_REVIEW = "edited_in_review", "a reviewer changed it; the detail names what"
    EDIT_NOT_APPLIED = "edit_not_applied", "it is about an image that is gone, or of another sample"


Fact.FOR_ANALYSIS.mark(Notice.NO_TASK, Notice.BLANK_LEFT, Notice.TEMPLATE_LEFT)
Fact.FOR_ANALYSIS.mark(Notice.IMAGE_NOT_THERE, Notice.SHORTENED_PROMPT)
Fact.CHANGES_TASK.mark(Notice.TWO_ROLES, Notice.IMAGE_USED_TWICE, Notice.IMAGE_NOT_THERE)
Fact.CHANGES_TASK.mark(Notice.BLANK_LEFT, Notice.TEMPLATE_LEFT, Notice.NOT_COMPLETED)
Fact.CHANGES_TASK.mark(Notice.CLAMPED_BOX, Notice.DUPLICATE_BOX, Notice.REPLACED_INPUT)
Fact.CHANGES_TASK.mark(Notice.UNKNOWN_HAZARD, Notice.PARTS_DISAGREE, Notice.EDIT_NOT_APPLIED)


def list_enums(kind: type[Reason] = Reason) -> Iterator[type[Reason]]:
    """List the enums of a kind that are loaded, those of plug-ins with them."""
    for derived in kind.__subclasses__():
        yield from [derived] if len(derived) else list_enums(derived)


def count_unusable(counts: Mapping[str, int]) -> int:
    """Count the answers that cannot be used, given counts by reason."""
    return sum(counts.get(reason, 0) for reason in Fact.UNUSABLE.reasons)


def find_meaning(value: str) -> str:
    """Return the meaning of a reason that a stage gave; empty where none that is loaded has it."""
    reasons = (reason for enum in list_enums(StageReason) for reason in enum)
    return {reason.value: reason.meaning for reason in reasons}.get(value, "")
