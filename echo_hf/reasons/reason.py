"""A name with its meaning, of which all lists are made, and what may become of a row."""

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
