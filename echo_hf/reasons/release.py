"""Why a row is not in a release, and how well what is put back matches."""

from __future__ import annotations

from echo_hf.reasons.reason import Reason


class LeftOut(Reason):
    """Why a row of a run is not in its release."""

    NOT_RELEASED = "not_released", "its sample is not in the release"
    OTHER_SAMPLE = "other_sample", "its sample has another prompt or other inputs by now"
    OTHER_OUTPUT = "other_output", "a rating of a picture in whose place the system drew another"
    MAY_QUOTE = "may_quote", "it may repeat posts that must not be passed on"
    SILENCED = (
        "silenced",
        "only the texts and pictures in them, which may repeat posts that must not be passed on",
    )
    OUTPUT_NOT_CLEANED = "output_not_cleaned", "only the image, whose metadata cannot be removed"
    UNFIT = "unfit", "an answer of half characters, or a longer one than is read back"


class Match(Reason):
    """How what `hydrate` puts back matches what was left out, the best first."""

    EXACT = "exact", "the very words, or the very bytes of the picture"
    SAME_PICTURE = "same_picture", "the picture packed or scaled anew, as far as a signature tells"
    DIFFERENT = "different", "other words or another picture stand there now; it stays left out"
    MISSING = "missing", "what is at hand does not hold it; it stays left out"
