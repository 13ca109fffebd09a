"""The closed lists of reasons: why a row was rejected, quarantined, noted, or is missing."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar


class Reason(StrEnum):
    """A name with its meaning; `Reason.meaning` is what reports print."""

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Reason:
        """Make a member that equals its name and carries its meaning."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member


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


class NotAnalyzed(Reason):
    """Why a part of the analysis has no figures, or leaves a row out."""

    MISSING_EXTRA = "missing_extra", "a package that it needs is not installed"
    NOT_CONFIGURED = "not_configured", "the config names no model for it"
    MODEL_UNAVAILABLE = "model_unavailable", "the model cannot be loaded, or fails"
    NO_PROMPTS = "no_prompts", "there is no prompt to look at"
    NO_COMMENTS = "no_comments", "no comment was judged, or none speaks of a failure"
    NO_POSTS = "no_posts", "the posts are not at hand, and no sample says when its was posted"
    NO_PHRASES = "no_phrases", "no task has a phrase: rules know none, and older releases have none"
    NO_RELEASE_BEFORE = "no_release_before", "no release before is named, nor was one replaced"
    NO_RUN = "no_run", "the stages' counts are not at hand"
    NO_TEXT = "no_text", "the row holds no text, or its words are left out of the release"
    BROKEN_TEXT = "broken_text", "the row holds half characters, which no file can hold"
    FEW_PROMPTS = "few_prompts", "the set has fewer prompts than sets are compared at"
    FEW_WORDS = "few_words", "the prompt has fewer than two words"
    UNSEGMENTED = "unsegmented", "its script has no spaces; the package to find words is missing"
    NO_SCORED_TOKEN = "no_scored_token", "a single token: nothing before it tells its probability"
    NOT_FINITE = "not_finite", "the model gives it no finite probability"
    NOT_SHOWN = "not_shown", "the plot shows a random draw of the set, and it is not in it"
    BAD_FONT = "bad_font", "the font cannot be read"
    NO_GLYPHS = "no_glyphs", "the font has no glyph for one of its characters"
    NO_SPACE = "no_space", "the image has no space left for it"


class MetricReason(Reason):
    """Why a metric has no number for a sample."""

    MISSING_OUTPUT = "missing_output", "there is no output: none was made, or it was not kept"
    NO_INPUT = "no_input", "there is no input to compare the output with"
    BAD_OUTPUT = "bad_output", "the output cannot be shown as an image"
    BAD_INPUT = "bad_input", "an input cannot be shown as an image"
    BLANK_OUTPUT = "blank_output", "the output is of one color"
    BLANK_INPUT = "blank_input", "an input is of one color"
    PLACEHOLDER = "placeholder", "a sample with other inputs has the very same output"
    NO_LEVELS = "no_levels", "a channel has no level from 5 to 250: it counts pooled, not alone"
    ZERO_DISTANCE = "zero_distance", "a distance of 0, which the released code takes for no output"
    UNRATED = "unrated", "no judge gave it a rating"
    SPARED = "spared", "a judge was spared it: samples that all were asked about count"
    OFF_SCALE = "off_scale", "the rating is not on the scale that it is divided by"
    NO_FACE_IN_INPUT = "no_face_in_input", "no face was found in any of its inputs"
    NO_FACE_IN_OUTPUT = "no_face_in_output", "there is a face in an input, and none in the output"
    ZERO_NORM = "zero_norm", "every face of one side has an embedding without a direction"
    MODEL_FAILED = "model_failed", "the model that looks at its images fails on one of them"
    SEVERAL_INPUTS = "several_inputs", "it has more inputs than the released code takes"
    SIZE_NOT_TAKEN = "size_not_taken", "an image is smaller or larger than the released code takes"
    NOT_ABOVE_ZERO = "not_above_zero", "its number is not above 0: the released code drops those"
    NOTHING_QUOTED = "nothing_quoted", "it quotes no text: the share of words is measured instead"
    TOO_FEW_WORDS = "too_few_words", "too few words were read for a share of them to mean anything"
    UNKNOWN_LETTERS = "unknown_letters", "each quoted string has letters that the text reader lacks"
    OTHER_SCRIPT = "other_script", "most of what was read is in a script without a vocabulary here"


class Outcome(StrEnum):
    """Outcomes of a task that was given to a system: the values of `outputs.outcome`."""

    OK = "ok"
    REFUSED = "refused"
    NO_IMAGE = "no_image"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"
    RETIRED = "retired"


class OutcomeStage(Reason):
    """Where a task ended that has no image: the values of `outputs.stage`."""

    PREFLIGHT = "preflight", "before anything was asked: the model is no longer there"
    TASK = "task", "the system does not take such a task, such as one with several inputs"
    INPUT = "input", "its prompt or its inputs were not accepted"
    OUTPUT = "output", "the image was made, and held back"
    REQUEST = "request", "the request to the system failed"
    ANSWER = "answer", "the answer is not an image that can be stored"


class NoTask(Reason):
    """Why a sample of a benchmark cannot be given to a system."""

    DEHYDRATED = "dehydrated", "words or images are left out: `echo-hf hydrate` puts them back"
    MISSING_INPUT = "missing_input", "an input image is no longer available"
    UNREADABLE_INPUT = "unreadable_input", "an input image cannot be decoded"


class NotTabled(Reason):
    """Why an output that a journal holds is not in the table of outputs."""

    OTHER_SETTINGS = "other_settings", "not by its system's last settings; the journal keeps it"


class BadImage(Reason):
    """Why something cannot be shown as an image: `BadImageError.reason`."""

    NO_FILE = "no_file", "the file does not exist or cannot be read"
    NOT_AN_IMAGE = "not_a_picture", "it is not an image in a supported format"
    HTML = "html", "it is a web page, whatever its name says"
    SVG = "svg", "it is a drawing in SVG, which has no pixels and may hold scripts"
    TOO_MANY_BYTES = "too_many_bytes", "the file is larger than is read"
    TOO_MANY_PIXELS = "too_many_pixels", "decoded, it would have more pixels than are read"
    TOO_SMALL = "too_small", "one of its sides is a single pixel, as of a tracking pixel"
    TRUNCATED = "truncated", "the file ends before the image does"
    DAMAGED = "damaged", "the bytes of the image contradict its format"
    UNKNOWN_RANGE = "unknown_range", "its numbers do not say which of them are black and white"


class ImageNotice(Reason):
    """Notices about an image that could be loaded."""

    ANIMATED = "animated", "it has several frames; the first is taken"
    TRANSPARENT = "transparent", "it is transparent in places; the background is seen there"
    SIXTEEN_BITS = "sixteen_bits", "it has 16 bits a channel; they are rounded to 8"
    BAD_ORIENTATION = "bad_orientation", "the camera's notes cannot be read; it is not turned"
    BAD_PROFILE = "bad_profile", "its color profile cannot be read; its numbers are taken as sRGB"
    OTHER_PROFILE = "other_profile", "its color profile is for other channels; it is taken as sRGB"
    GAMMA_IGNORED = "gamma_ignored", "without a profile, gamma or primaries not sRGB's are ignored"


class Missing(Reason):
    """Why the content of a post is not there: the values of `posts.missing`."""

    DELETED = "deleted", "removed by its author or the platform"
    PROTECTED = "protected", "the account is private"
    BLOCKED = "blocked", "the account blocks, or is suspended or withheld"
    NOT_FOUND = "not_found", "the platform knows no such post"
    NOT_FETCHED = "not_fetched", "named by another post, never collected"
    REMOVED = "removed", "taken out because somebody asked for it; its address is a hash"


class CrawlEnd(Reason):
    """Why a platform is asked no more for now."""

    NOTHING_LEFT = "nothing_left", "every query is answered, and nothing new came of the replies"
    POSTS_SPENT = "posts_spent", "the budget of posts is used up; a larger one resumes from here"
    DOLLARS_SPENT = "dollars_spent", "the budget of money is used up; a larger one resumes here"
    ROUNDS_DONE = "rounds_done", "reply trees were followed as often as expand.rounds says"
    EXPANSION_FULL = "expansion_full", "as many posts came by reply trees as expand.posts says"
    SOME_FAILED = "some_failed", "some questions failed and wait for the next run"
    TOLD_TO_WAIT = "told_to_wait", "the platform wants to be left alone for long; come back then"
    KEY_REFUSED = "key_refused", "the platform refuses the key or its use; a next run resumes here"
    OUT_OF_REACH = "out_of_reach", "signing in or several questions failed; a next run tries again"


class RefreshEnd(Reason):
    """Why a platform is asked about no more posts for now."""

    ALL_ASKED = "all_asked", "all its posts were asked about"
    CANNOT_SAY = "cannot_say", "it has no way to say which posts are gone"
    NOT_PAID = "not_paid", "it charges for each post; --budget says how much it may take"
    LATER = "later", "the platform wants to be left alone for long; come back then"


class Unfetched(NoticeReason):
    """Why the image of an address is not there."""

    NOT_REQUESTED = "not_requested", "it was not requested: fetching is off, or the run is offline"
    GONE = "gone", "the server has no such image (404 or 410)"
    FORBIDDEN = "forbidden", "the server refuses the request (another 4xx)"
    RATE_LIMITED = "rate_limited", "the server asks for fewer requests, or to wait too long"
    SERVER_ERROR = "server_error", "the server failed, or gave an answer without an image"
    TIMEOUT = "timeout", "the server took too long"
    UNREACHABLE = "unreachable", "no connection could be made or kept"
    PRIVATE_ADDRESS = "private_address", "the host's address is not one of the public internet"
    NOT_ALLOWED = "not_allowed", "the address has a scheme, a port or a login that is not allowed"
    TOO_MANY_REDIRECTS = "too_many_redirects", "the address led from one to the next without end"
    TOO_LARGE = "too_large", "the image has more bytes or pixels than are fetched"
    WRONG_TYPE = "wrong_type", "the response is not an image in a supported format"
    UNDECODABLE = "undecodable", "what came begins as an image does, but cannot be decoded"


class IgnoredRating(Reason):
    """Why a rating does not count; it is named and counted in the result."""

    OTHER_RUBRIC = "other_rubric", "a rating by another rubric; text_rendering has its own figures"
    NO_OUTPUT = "no_output", "the table of outputs has no such sample and system"
    NO_IMAGE = "no_picture", "the table of outputs says that there is no image to rate"
    OTHER_DIGEST = "other_digest", "the judge saw another version of the sample than the system"


class Unrated(Reason):
    """Why a judge that answered, or could not be asked, gave no rating: values of `outcome`."""

    NO_RATING = "no_rating", "the answer holds no rating in the form that was asked for"
    BEYOND_SCALE = "beyond_scale", "the rating is not one of the judge's scale"
    UNSHOWABLE = "unshowable", "the output or an input cannot be shown as an image"
    NO_CHOICE = "no_choice", "the answer names none of the two, and no tie, in the form asked for"
    AMBIGUOUS = "ambiguous", "the answer holds ratings that differ, and which one counts is open"
    TWO_CHOICES = "two_choices", "the answer makes more than one choice in the form asked for"
    NOT_NEEDED = "not_needed", "not asked on purpose: a part of the samples tells enough"


class NotImported(Reason):
    """Why something in a file of others does not become a row of a run."""

    NOT_OF_FORMAT = "not_of_format", "a name, a number or a vote in it is none that its format has"
    UNKNOWN_SAMPLE = "unknown_sample", "no sample of the benchmark has its name or its prompt"
    SEVERAL_SAMPLES = "several_samples", "several samples of the benchmark have its prompt"
    BAD_IMAGE = "bad_picture", "its image cannot be decoded"
    AGAIN = "again", "an earlier one of the same files is about the same"
    TAKEN = "taken", "the run has a row of its own in its place, which stays"


class NotJudged(Reason):
    """Why no judge is asked about an output."""

    WITHOUT_IMAGE = "without_picture", "the system made no image of the sample"


class NotRanked(Reason):
    """Why people do not rank an output or a sample."""

    LOST_IMAGE = "lost_picture", "the file of the image is not among the run's images"
    FEW_OUTPUTS = "few_outputs", "fewer than two systems made an image of the sample"
    NOT_DRAWN = "not_drawn", "enough samples of its split were drawn before it"


class NotAudited(Reason):
    """Why a judge neither passed nor failed a part of its audit."""

    FEW_RATINGS = "few_ratings", "fewer than 5 of these images, or of real outputs, were rated"
    NO_ROOM = "no_room", "the judge rates real outputs too low to rate anything that far below them"


class Unscored(Reason):
    """Why a measure has no number."""

    ONE_SYSTEM = "one_system", "there is no other system to compare it with"
    NOT_RATED = "not_rated", "no judge rated any of its outputs"
    NOT_RANKED = "not_ranked", "nobody ranked any of its outputs"
    NOTHING_IN_COMMON = "nothing_in_common", "no judge rated it and another on the same sample"
    FEW_SAMPLES = "few_samples", "fewer than 10 samples say too little of how far others may differ"
    NO_SPREAD = "no_spread", "all samples give the same, which says nothing of how others differ"
    LOW_COVERAGE = (
        "low_coverage",
        "fewer than 95 % of the samples count for both: what is missing may be what one does worse",
    )
    NO_DRAWS = "no_draws", "no bootstrap was asked for"
    ONE_COMPARISON = "one_comparison", "a single comparison has no standard error"
    NO_DIFFERENCE = "no_difference", "the two do as well as each other: no number separates them"
    UNBOUNDED = "unbounded", "some systems never lose a point: no finite strength explains it"
    ANCHORED = "anchored", "it is given, so that nothing is drawn of it"
    ZERO_SECOND = "zero_second", "the second best value is not above 0, so that no share of it is"
    NO_OWN_SYSTEM = (
        "no_own_system",
        "no pair of a system of the judge's developer and another's was rated",
    )
    NO_OTHER_JUDGE = "no_other_judge", "no judge of another developer rated the same pairs"
    ONE_JUDGE = "one_judge", "there is one judge, without whom nothing remains"
    NO_ORDER = "no_order", "both put no two systems in an order: too few in common, or all tied"
    NO_VERDICTS = "no_verdicts", "no pair of outputs has a verdict, or not in both orders"
    NO_CEILING = "no_ceiling", "people do not agree with each other, so that no share of it is"


class LeftOut(Reason):
    """Why a row of a run is not in a release, a score or a ranking."""

    NOT_RELEASED = "not_released", "its sample is not in the release"
    OTHER_SAMPLE = "other_sample", "its sample has another prompt or other inputs by now"
    OTHER_OUTPUT = "other_output", "a rating of an image in whose place the system drew another"
    MAY_QUOTE = "may_quote", "it may repeat posts that must not be passed on"
    SILENCED = ("silenced", "only the texts and images in them, which may repeat restricted posts")
    OUTPUT_NOT_CLEANED = "output_not_cleaned", "only the image, whose metadata cannot be removed"
    UNFIT = "unfit", "an answer of half characters, a damaged one, or a longer one than is read"


class Match(Reason):
    """How what `hydrate` puts back matches what was left out, the best first."""

    EXACT = "exact", "the very words, or the very bytes of the image"
    SAME_IMAGE = "same_picture", "the image packed or scaled again, as far as a signature tells"
    DIFFERENT = "different", "the text or image there has changed; it stays left out"
    MISSING = "missing", "what is available does not hold it; it stays left out"


class Review(Reason):
    """Why a person has to look at a sample before it is published: the values of `review`."""

    MAY_SHOW_MINOR = "may_show_minor", "a real person in one of its images may be under 18"
    PERSONAL_DATA = "personal_data", "its prompt holds personal data, or is too long to be searched"
    IMAGE_METADATA = "image_metadata", "metadata of an image cannot be removed: keeping releases it"
    REMOVED_EARLIER = "removed_earlier", "a reviewer removed it; its prompt or inputs changed since"
    EDITED_EARLIER = "edited_earlier", "it lacks a reviewer's edit: prompt or inputs changed since"
    EDITED_UNSCREENED = ("edited_unscreened", "a reviewer's words or images that no guard has seen")
    SECOND_LOOK = "second_look", "a reviewer left it to somebody else; the decision's note says why"


class Doubt(NoticeReason):
    """Why a sample may not be the task that it seems to be: the values of `doubts`."""

    LACKS_INPUT = "lacks_input", "it starts from an image that came with it; none is there"
    ROLES_CONTRADICT = "roles_contradict", "it lacks an image that the model gave it and elsewhere"
    ROLES_ASSUMED = "roles_assumed", "no model saw its image: beside a labelled prompt, an output"
    SCREENSHOT_WHOLE = "screenshot_whole", "its images stand in a screenshot nobody has taken apart"
    ASSUMED_BOXES = "assumed_boxes", "nobody has said how its model names places: nothing was cut"
    COLLAGE = "collage", "an output looks like a sheet of several images, or like a window"


class NotGold(Reason):
    """Why a reviewed sample is not in the gold that is made of reviews."""

    NOT_REVIEWED = "not_reviewed", "a sample of its thread was not reviewed as it is now"
    COMPLETION = "completion", "a sample of its thread completes a template: one sample in gold"
    NOT_COPIED = "not_copied", "a prompt of its thread has words that nobody wrote there"
    SAME_PROMPT = "same_prompt", "samples of its thread share a prompt, by which gold names them"
    NOT_IN_POSTS = "not_in_posts", "its thread is not in the files of posts that the config names"
    IN_SCREENSHOT = "in_screenshot", "a screenshot without a layout: gold has no images of it"


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


class Failed(FailureReason):
    """Why a model call gave no answer; its row is kept in `quarantine` and tried again."""

    NEEDS_MODEL = "needs_model", "an engine without a model has no answer; run it with one"
    NOT_ANSWERED = "not_answered", "no answer is stored, and none was asked for"
    DAMAGED_ANSWER = (
        "damaged_answer",
        "the stored answer was damaged since; a run with its model asks again",
    )
    ENGINE_ERROR = "engine_error", "the engine reported an error"
    REFUSED = "refused", "the model declined to answer"
    CUT = "cut", "the answer ended at the token limit"
    UNREADABLE = "unreadable", "the answer holds no JSON object, or is none of those that may be"
    OFF_SCHEMA = "off_schema", "the answer's JSON does not fit the declared schema"


# Answers that came and cannot be used: the same would come of asking by itself, so nobody is asked
# once more before somebody says so.
UNUSABLE = frozenset(
    {
        *(Failed.REFUSED, Failed.CUT, Failed.UNREADABLE, Failed.OFF_SCHEMA),
        *(Unrated.NO_RATING, Unrated.BEYOND_SCALE, Unrated.AMBIGUOUS),
        *(Unrated.NO_CHOICE, Unrated.TWO_CHOICES),
    }
)


def count_unusable(counts: Mapping[str, int]) -> int:
    """Count the answers that cannot be used, given counts by reason."""
    return sum(counts.get(reason, 0) for reason in UNUSABLE)


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


# What was noticed of a sample that is for analysis alone because of it.
FOR_ANALYSIS = frozenset(
    {
        *(Notice.NO_TASK, Notice.BLANK_LEFT, Notice.TEMPLATE_LEFT, Notice.IMAGE_NOT_THERE),
        *(Notice.SHORTENED_PROMPT, *Doubt),
    }
)


def find_meaning(value: str) -> str:
    """Return the meaning of a reason that a stage gave; empty where none that is loaded has it."""
    kinds = [kind for family in StageReason.__subclasses__() for kind in family.__subclasses__()]
    meanings = {reason.value: reason.meaning for kind in kinds for reason in kind}
    return meanings.get(value, "")
