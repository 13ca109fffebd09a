"""What one person's page shows, ready to be written as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from echo_hf.apps.events import Event
from echo_hf.apps.leases import Lease
from echo_hf.apps.review.form import Form
from echo_hf.curate.cases import Case
from echo_hf.curate.decision import Decision
from echo_hf.curate.triage import Triage
from echo_hf.pictures import PictureStore

TOLD = {"keep": "kept", "remove": "removed", "flag": "flagged", "edit": "changed"}


@dataclass(frozen=True)
class View:
    """What one person's page shows.

    Attributes:
        person: Pseudonym of the person.
        case: The sample.
        pictures: Where its pictures lie.
        shown: Its row with the changes that stand.
        form: What stands in the fields.
        triage: What the rules say of it.
        open_reasons: Why it is still open.
        decision: What stands about it; null for nothing.
        conflict: Decisions that contradict each other.
        base: Number of the last event about it; 0 for none.
        number: Its place in the queue, from 1.
        total: How many samples there are.
        done: How many are kept or removed as they are.
        lent: Who else has it, if anybody.
        can_undo: Whether the person has something to take back.
        saved: When the person's last action was written down.
        problem: Why the last action was refused.
        told: What the last action did.
    """

    person: str
    case: Case
    pictures: PictureStore
    shown: Mapping[str, Any]
    form: Form
    triage: Triage
    open_reasons: Sequence[str]
    decision: Decision | None
    conflict: Sequence[Event]
    base: int
    number: int
    total: int
    done: int
    lent: Lease | None
    can_undo: bool
    saved: datetime | None
    problem: str = ""
    told: str = ""
