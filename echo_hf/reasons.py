"""The closed lists of reasons: why a row was rejected, quarantined or noted, or a post is missing.

Nothing is silently lost: whatever leaves the main table, or is altered on the way, does so under
one of these names, is kept beside the stage's result, and is counted in its stats.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """A name with its meaning; `Reason.meaning` is what reports print."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Reason:
        """Makes a member that is its name and carries its meaning."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member


class Status(StrEnum):
    """What became of an input row: the values of the `_status` control column."""

    KEPT = "kept"
    REJECTED = "rejected"
    QUARANTINED = "quarantined"
    NOTED = "noted"


class Reject(Reason):
    """Why a row does not go on; its input row is kept in `rejects`."""

    NOT_JSON = "not_json", "the line or file is not valid JSON"
    NOT_A_POST = "not_a_post", "the JSON is not a post in the source's format"
    NO_URL = "no_url", "the post has no usable address"
    REPOST = "repost", "a pure repost: the original post stands for it"
    NOT_RELEVANT = "not_relevant", "no post of its thread is about images made with the target"
    NOT_ASKED = "not_asked", "no post of its thread was found by a search, so none was scored"
    NOT_SCORED = "not_scored", "no post of its thread passed, and at least one could not be scored"
    NO_SAMPLE = "no_sample", "the model found no sample in the thread"
    TRASH = "trash", "no clear task, off topic, or made with another model"
    FLAGGED = "flagged", "marked by the safety stage"
    DUPLICATE_OF = "duplicate_of", "equal prompt and inputs; the detail names the sample that stays"


class Failed(Reason):
    """Why a model call gave no answer; its row is kept in `quarantine` and tried again."""

    NEEDS_MODEL = "needs_model", "plain rules cannot decide this; run it with a model"
    NOT_ANSWERED = "not_answered", "no answer is stored, and none was asked for"
    ENGINE_ERROR = "engine_error", "the engine reported an error"
    REFUSED = "refused", "the model declined to answer"
    CUT = "cut", "the answer ended at the token limit"
    UNREADABLE = "unreadable", "the answer holds no JSON object"
    OFF_SCHEMA = "off_schema", "the answer's JSON does not fit the declared schema"


class Notice(Reason):
    """What was noticed about a row that goes on."""

    BAD_TIMESTAMP = "bad_timestamp", "the date cannot be read; the post stays without one"
    BAD_FIELD = (
        "bad_field",
        "a field has a value of the wrong kind; the post stays, with what could be read of it",
    )
    UNKNOWN_FIELD = "unknown_field", "a field that the format does not have"
    BROKEN_PICTURE = "broken_picture", "the picture cannot be decoded"
    PICTURE_NOT_FOUND = "picture_not_found", "the picture file does not exist"
    PICTURE_WITHOUT_ADDRESS = "picture_without_address", "a picture is named, but not where it is"
    PICTURE_OUTSIDE = "picture_outside", "the picture's path leaves the folder of the posts"
    SELF_PARENT = "self_parent", "the post names itself as its parent; the link is cut"
    CYCLE = "cycle", "replies form a circle; it is cut at its earliest post"
    UNKNOWN_NUMBER = "unknown_number", "the model named a post that it was not shown"
    POST_USED_TWICE = "post_used_twice", "the model gave one post to two samples; the first has it"
    PICTURE_USED_TWICE = (
        "picture_used_twice",
        "two samples of a thread show one picture; the first has it",
    )
    EMPTY_SAMPLE = "empty_sample", "a sample of the answer had no prompt or no post"
    FEEDBACK_NOT_IN_POST = "feedback_not_in_post", "the feedback is no text of the post it names"


class Missing(Reason):
    """Why the content of a post is not there: the values of `posts.missing`."""

    DELETED = "deleted", "removed by its author or the platform"
    PROTECTED = "protected", "the account is private"
    BLOCKED = "blocked", "the account blocks, or is suspended or withheld"
    NOT_FOUND = "not_found", "the platform knows no such post"
    NOT_FETCHED = "not_fetched", "named by another post, never collected"


class BadPicture(Reason):
    """Why something cannot be shown as a picture: `BadPictureError.reason`."""

    NO_FILE = "no_file", "the file does not exist or cannot be read"
    NOT_A_PICTURE = "not_a_picture", "it is no picture in one of the formats that are read"
    HTML = "html", "it is a web page, whatever its name says"
    SVG = "svg", "it is a drawing in SVG, which has no pixels and may hold scripts"
    TOO_MANY_BYTES = "too_many_bytes", "the file is larger than is read"
    TOO_MANY_PIXELS = "too_many_pixels", "decoded, it would have more pixels than are read"
    TOO_SMALL = "too_small", "one of its sides is a single pixel, as of a tracking pixel"
    TRUNCATED = "truncated", "the file ends before the picture does"
    DAMAGED = "damaged", "the bytes of the picture contradict its format"
    UNKNOWN_RANGE = "unknown_range", "its numbers do not say which of them are black and white"


class PictureNotice(Reason):
    """What was noticed about a picture that could be loaded."""

    ANIMATED = "animated", "it has several frames; the first is taken"
    TRANSPARENT = "transparent", "it is transparent in places; the background is seen there"
    SIXTEEN_BITS = "sixteen_bits", "it has 16 bits a channel; they are rounded to 8"
    BAD_ORIENTATION = "bad_orientation", "the camera's notes cannot be read; it is not turned"
    BAD_PROFILE = "bad_profile", "its colour profile cannot be read; its numbers are taken as sRGB"
    OTHER_PROFILE = (
        "other_profile",
        "its colour profile is for other channels than it has; its numbers are taken as sRGB",
    )
    GAMMA_IGNORED = (
        "gamma_ignored",
        "it states a gamma or primaries that are not sRGB's, without a profile; they are ignored",
    )


class Unfetched(Reason):
    """Why a picture could not be fetched from its address."""

    GONE = "gone", "the server says that there is no such picture (404 or 410)"
    FORBIDDEN = "forbidden", "the server refuses the request (another 4xx)"
    RATE_LIMITED = "rate_limited", "the server asks for fewer requests, or to wait too long"
    SERVER_ERROR = "server_error", "the server failed, or gave an answer without a picture"
    TIMEOUT = "timeout", "the server took too long"
    UNREACHABLE = "unreachable", "no connection could be made or kept"
    PRIVATE_ADDRESS = "private_address", "the host's address is not one of the public internet"
    NOT_ALLOWED = "not_allowed", "the address has a scheme, a port or a login that is not allowed"
    TOO_MANY_REDIRECTS = "too_many_redirects", "the address led from one to the next without end"
    TOO_LARGE = "too_large", "the picture has more bytes or pixels than are fetched"
    WRONG_TYPE = "wrong_type", "what came is no picture in one of the formats that are read"
    UNDECODABLE = "undecodable", "what came begins as a picture does, but cannot be decoded"
