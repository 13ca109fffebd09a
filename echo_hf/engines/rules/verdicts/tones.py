"""How a clause of a comment speaks of a result."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple


class Tone(Enum):
    """How a mark speaks of the result; weak ones decide only where nothing stronger is said."""

    PRAISE = auto()
    WEAK_PRAISE = auto()
    AMUSED = auto()
    COMPLAINT = auto()
    WEAK_COMPLAINT = auto()
    HEDGED = auto()
    SOFTENED = auto()
    TEMPERED = auto()


COMPLAINTS = frozenset({Tone.COMPLAINT, Tone.WEAK_COMPLAINT})
PRAISES = frozenset({Tone.PRAISE, Tone.WEAK_PRAISE})


class Mark(NamedTuple):
    """One sign of praise or complaint, and the failure that it names."""

    tone: Tone
    failure: str | None = None


class Said(NamedTuple):
    """What one clause says.

    Attributes:
        marks: Its marks, in order.
        topics: What it speaks of, in order.
        nearby: What its sentence speaks of.
    """

    marks: Sequence[Mark]
    topics: Sequence[str] = ()
    nearby: Sequence[str] = ()

    @property
    def complains(self) -> bool:
        """Whether it has a mark of complaint."""
        return any(mark.tone in COMPLAINTS for mark in self.marks)

    @property
    def praises(self) -> bool:
        """Whether it has a mark of praise, amusement aside."""
        return any(mark.tone in PRAISES for mark in self.marks)
