"""Why a sample has no number of a metric."""

from __future__ import annotations

from echo_hf.reasons.reason import Reason


class MetricReason(Reason):
    """Why a metric has no number for a sample."""

    MISSING_OUTPUT = "missing_output", "there is no output: none was made, or it was not kept"
    NO_INPUT = "no_input", "there is no input to compare the output with"
    BAD_OUTPUT = "bad_output", "the output cannot be shown as a picture"
    BAD_INPUT = "bad_input", "an input cannot be shown as a picture"
    BLANK_OUTPUT = "blank_output", "the output is of one colour"
    BLANK_INPUT = "blank_input", "an input is of one colour"
    PLACEHOLDER = "placeholder", "a sample with other inputs has the very same output"
    NO_LEVELS = (
        "no_levels",
        "a channel has no level from 5 to 250: pooled with the others it counts, alone it cannot",
    )
    ZERO_DISTANCE = (
        "zero_distance",
        "the distance is 0, which the released code takes for a missing output",
    )
    UNRATED = "unrated", "no judge gave it a rating"
    OFF_SCALE = "off_scale", "the rating is not on the scale that it is divided by"
    NO_FACE_IN_INPUT = "no_face_in_input", "no face was found in any of its inputs"
    NO_FACE_IN_OUTPUT = "no_face_in_output", "there is a face in an input, and none in the output"
    ZERO_NORM = "zero_norm", "every face of one side has an embedding without a direction"
    MODEL_FAILED = "model_failed", "the model that looks at its pictures fails on one of them"
    SEVERAL_INPUTS = "several_inputs", "it has more inputs than the released code takes"
    SIZE_NOT_TAKEN = "size_not_taken", "a picture is smaller or larger than the released code takes"
    NOT_ABOVE_ZERO = (
        "not_above_zero",
        "its number is not above 0, and the released code drops those",
    )
    NOTHING_QUOTED = (
        "nothing_quoted",
        "its prompt quotes no text: the share of words that there are is measured instead",
    )
    TOO_FEW_WORDS = "too_few_words", "too few words were read for a share of them to mean anything"
    UNKNOWN_LETTERS = (
        "unknown_letters",
        "each string that its prompt quotes has letters or signs that the text reader cannot write",
    )
    OTHER_SCRIPT = "other_script", "most of what was read is in a script without a vocabulary here"
