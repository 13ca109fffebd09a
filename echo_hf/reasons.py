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
