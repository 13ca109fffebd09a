"""What became of the tasks of systems."""

from __future__ import annotations

from enum import StrEnum

from echo_hf.reasons.reason import Reason


class Outcome(StrEnum):
    """What became of a task that was given to a system: the values of `outputs.outcome`."""

    OK = "ok"
    REFUSED = "refused"
    NO_IMAGE = "no_image"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"
    RETIRED = "retired"


class OutcomeStage(Reason):
    """Where a task ended that has no picture: the values of `outputs.stage`."""

    PREFLIGHT = "preflight", "before anything was asked: the model is no longer there"
    TASK = "task", "the system does not take such a task, such as one with several inputs"
    INPUT = "input", "its prompt or its inputs were not accepted"
    OUTPUT = "output", "the picture was made, and held back"
    REQUEST = "request", "the system could not be asked, or broke down"
    ANSWER = "answer", "what came back is no picture that can be kept"


class NoTask(Reason):
    """Why a sample of a benchmark cannot be given to a system."""

    DEHYDRATED = (
        "dehydrated",
        "its words or pictures are left out of the benchmark: `echo-hf hydrate` puts them back",
    )
    MISSING_INPUT = "missing_input", "an input picture cannot be had any more"
    UNREADABLE_INPUT = "unreadable_input", "an input picture cannot be decoded"


class NotTabled(Reason):
    """Why an output that a journal holds is not in the table of outputs."""

    OTHER_SETTINGS = (
        "other_settings",
        "drawn with other settings than the last ones of its system; its journal keeps it",
    )
