"""Why something is no picture, and what was noticed about one."""

from __future__ import annotations

from echo_hf.reasons.reason import Reason


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
