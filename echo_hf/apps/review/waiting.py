"""Which samples wait for a person, and which are decided."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from echo_hf.apps.events import Event
from echo_hf.apps.fold import standing
from echo_hf.apps.review.folded import OPEN
from echo_hf.curate.decision import Decision

SETTLED = ("keep", "remove")
Row = Mapping[str, Any]


def acts_of(events: Iterable[Event]) -> list[Event]:
    """What was done and not taken back, without the opening of samples."""
    return [one for one in standing(events) if one.action != OPEN]


def is_settled(last: Decision | None, row: Row) -> bool:
    """Whether a sample is kept or removed as it is."""
    return last is not None and last.decision in SETTLED and last.is_about(row)


def waits(row: Row, last: Decision | None, person: str, own: Collection[str]) -> bool:
    """Whether a sample waits for a person.

    Args:
        row: Its row, as the model and the rules made it.
        last: The decision that stands about it; null for none.
        person: Pseudonym of the person.
        own: Ids of samples that the person has decided about: what they flagged, others look at.
    """
    if last is None or last.decision in ("edit", "withdraw") or not last.is_about(row):
        return True
    if last.decision == "flag":
        return last.reviewer != person and row["id"] not in own
    return last.decision == "keep" and not last.covers(row)
