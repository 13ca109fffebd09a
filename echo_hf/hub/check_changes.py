"""Checks of two releases, or of a run before and after: what came, fell and went, and why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from echo_hf._infra.text import format_interval, format_rounded
from echo_hf.reasons import Reason
from echo_hf.scores.certificate import KEPT_J, KEPT_P
from echo_hf.tables import Row

VOTE = "vote"  # the judge that stands for all of them together
MAX_NAME = 100  # characters that are looked at; of a release of others nobody has read the rows
FAILURE_RATE = "failure_rate"  # begins the metric of a check's corrected rates
PASS_RATE = 0.02  # of a system's outputs that fail by a check


class CheckReason(Reason):
    """Why a check is not kept, or is no longer asked."""

    FEW_ANSWERS = "few_answers", "judges answered about too few threads"
    BY_CHANCE = "by_chance", f"p, after all checks are counted, is above {KEPT_P:g}"
    WEAK = "weak", f"J is below {KEPT_J:g}"
    COMPLAINT_GONE = "complaint_gone", "nobody complained of it in the days that count"
    ALL_PASS = "all_pass", f"each system fails in less than {100 * PASS_RATE:g} % of its outputs"
    COMPLAINT_BACK = "complaint_back", "people complain of it again"
    FEW_LEFT = "few_left", "posts were forgotten, and too few threads are left to prove it on"
    NO_PLAIN_QUESTION = "no_plain_question", "a release of others asks what no check may ask"
    EVIDENCE_LEFT = "evidence_left", "posts that it was proven on were forgotten"


CHECK_MEANINGS = {reason.value: reason.meaning for reason in CheckReason}


def find_deciding(certificates: Sequence[Row] | None) -> Row:
    """Find the certificate that decides on a check: of the vote, or of the only judge."""
    rows = [each for each in certificates or () if each] or [{}]
    return next((each for each in rows if each.get("judge") == VOTE), rows[0])


def select_newest(rows: Iterable[Row]) -> dict[str, Row]:
    """Select the newest version of each check; nobody may have read the rows of a release."""
    ordered = sorted(rows, key=lambda row: row["version"] or 0)
    return {str(row["name"])[:MAX_NAME]: row for row in ordered}


@dataclass(frozen=True)
class CheckState:
    """A version of a check, and the certificate that decides on it, if it has any."""

    version: int
    status: str
    reason: str | None = None
    j: float | None = None
    interval: tuple[float, float] | None = None
    complaint_threads: int = 0
    praise_threads: int = 0

    @classmethod
    def from_row(cls, row: Row) -> CheckState:
        deciding = find_deciding(row["certificates"])
        j, low, high = (
            number if number is not None and math.isfinite(number) else None
            for number in map(deciding.get, ("j", "low", "high"))
        )
        return cls(
            row["version"],
            row["status"],
            row["reason"],
            j,
            None if low is None or high is None else (low, high),
            deciding.get("complaint_threads") or 0,
            deciding.get("praise_threads") or 0,
        )

    @property
    def grounds(self) -> str:
        """Why it has its status, and what its certificate says."""
        grounds = [CHECK_MEANINGS.get(self.reason, self.reason)] if self.reason else []
        if self.j is not None:
            threads = f"{self.complaint_threads:,} + {self.praise_threads:,} threads"
            j = f"J {format_rounded(self.j, 2)} ({format_interval(self.interval, 2)})"
            grounds.append(f"{j} on {threads}")
        return "; ".join(grounds)


@dataclass(frozen=True)
class CheckChange:
    """A change of a check.

    Attributes:
        name: Its name.
        event: appeared, gone, edited (a person's version), proven (another certificate under the
            same status), or the status that it has now.
        before: Its newest version before; null where there was none.
        after: Its newest version now; null where there is none.
    """

    name: str
    event: str
    before: CheckState | None
    after: CheckState | None

    @property
    def sentence(self) -> str:
        """The change and its reason in one line."""
        old, new = self.before, self.after
        if new is None:
            return f"{self.name}@{old.version if old else 0} is gone"
        status = "fell short" if new.status == "fell" else f"is {new.status}"
        status = {"proposed": "waits for its proof"}.get(new.status, status)
        wording = {
            "appeared": f"appeared and {status}",
            "edited": f"takes the place of version {old.version if old else 0} and {status}",
            "proven": f"{status} as before",
        }
        text = f"{self.name}@{new.version} {wording.get(self.event, status)}"
        has_moved = old is not None and old.j not in (None, new.j)
        earlier = f", J before {format_rounded(old.j, 2)}" if old and has_moved else ""
        return f"{text}: {new.grounds}{earlier}" if new.grounds else f"{text}{earlier}"

    def as_json(self) -> dict[str, Any]:
        """Return the change as plain values, with its sentence."""
        return {**asdict(self), "sentence": self.sentence}


def compare_checks(before: Iterable[Row], after: Iterable[Row]) -> tuple[CheckChange, ...]:
    """Compare the rows of two tables of checks, by the newest version of each check."""
    tables = [select_newest(rows) for rows in (before, after)]
    changes = []
    for name in sorted({*tables[0], *tables[1]}):
        old, new = (table.get(name) for table in tables)
        states = [CheckState.from_row(row) if row else None for row in (old, new)]
        if new is None:
            event = "gone"
        elif old is None or old["version"] != new["version"]:
            event = "edited" if old and new["origin"] == "person" else "appeared"
        else:
            event = new["status"] if old["status"] != new["status"] else "proven"
        if states[0] != states[1]:
            changes.append(CheckChange(name, event, *states))
    return tuple(changes)
