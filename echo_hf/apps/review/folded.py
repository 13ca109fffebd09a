"""What the log of the app decides about a sample, as the line that the splits follow.

The log has every click; `review.jsonl` has what stands. A line tells the last event that it takes
in, so that whatever a killed server left unwritten is found by its number, and written.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from echo_hf.apps.events import Event, EventLog
from echo_hf.apps.fold import decisions, is_conflict
from echo_hf.curate.decision import Decision
from echo_hf.curate.decision_file import append_decisions, read_decisions
from echo_hf.curate.decisions import Decisions
from echo_hf.errors import RunError
from echo_hf.file_lock import held

APP = "review"
OPEN = "open"
LOCK = ".review-log.lock"
LONGEST_WAIT_S = 60
PAYLOAD = ("id", "sample_digest", "reasons", "pictures", "note", "changes")


@dataclass(frozen=True)
class Ledger:
    """The log of the app, and the file that the splits follow.

    Attributes:
        log: The log of events.
        file: The file of decisions.
    """

    log: EventLog
    file: Path

    def decided(self) -> Decisions:
        """What stands now.

        Raises:
            ReviewError: The file cannot be read.
        """
        return read_decisions(self.file)

    def catch_up(self, subject: str | None = None) -> int:
        """Writes down what the log has and the file has not.

        Args:
            subject: Only about this sample.

        Returns:
            How many lines were written.

        Raises:
            RunError: The log cannot be used.
            ReviewError: The file cannot be read or written.
        """
        # Held from reading to writing: an older state must not be written after a newer one.
        busy = RunError(
            f"another process has held {str(self.file)!r} for {LONGEST_WAIT_S} s: end it, and "
            "decide again"
        )
        with held(self.file.with_name(LOCK), busy, LONGEST_WAIT_S):
            by_subject: dict[str, list[Event]] = {}
            for event in self.log.events(APP, subject):
                if event.action != OPEN:
                    by_subject.setdefault(event.subject, []).append(event)
            written = self.decided().every
            found = (folded(events, written) for events in by_subject.values())
            lines = [line for line in found if line is not None]
            if lines:
                append_decisions(self.file, lines)
        return len(lines)


def payload_of(decision: Decision) -> dict[str, object]:
    """What an event keeps of a decision; who and when stand in the event itself."""
    return decision.model_dump(mode="json", include=set(PAYLOAD))


def unsettled(events: Iterable[Event]) -> tuple[Event, ...]:
    """Decisions about one sample that contradict each other.

    Args:
        events: All events about it.

    Returns:
        The decisions, each by another person; none where they agree, or there is one.
    """
    found = _standing(events)
    # Two people who say the same in other words agree.
    bare = [replace(one, payload=_said(one)) for one in found]
    return found if is_conflict(bare) else ()


def folded(events: Sequence[Event], written: Sequence[Decision]) -> Decision | None:
    """The line that is still to be written about a sample.

    Args:
        events: All events about it but those of opening it, in their order; at least one.
        written: The lines that are there.

    Returns:
        What stands after the last event; null where a line has taken it in.
    """
    acts, last = events, events[-1]
    about = [one for one in written if one.id == last.subject]
    if max((one.event or 0 for one in about), default=0) >= last.id:
        return None
    events = not_overruled(events, about)
    found = _standing(events)
    if unsettled(events):
        names = ", ".join(f"{one.person}: {one.action}" for one in found)
        return _line(found[-1], last, "flag", note=f"two people disagree ({names})")
    if found:
        return _line(found[-1], last)
    by_hand = [one for one in about if one.event is None]
    if by_hand:
        return by_hand[-1].model_copy(update={"event": last.id})
    first = next(one for one in acts if "sample_digest" in one.payload)
    return _line(first, last, "withdraw", note=None)


def not_overruled(events: Sequence[Event], about: Sequence[Decision]) -> Sequence[Event]:
    """Leaves out what was done before the last decision from the command line.

    Args:
        events: All events about a sample.
        about: The lines about it, in the order of the file.

    Returns:
        The events that no line before that decision has taken in.
    """
    by_hand = [place for place, one in enumerate(about) if one.event is None]
    before = about[: by_hand[-1]] if by_hand else ()
    taken_in = max((one.event or 0 for one in before), default=0)
    return [one for one in events if one.id > taken_in]


def _standing(events: Iterable[Event]) -> tuple[Event, ...]:
    acts = [one for one in events if one.action != OPEN]
    return next(iter(decisions(acts).values()), ())


def _said(event: Event) -> dict[str, object]:
    return {name: event.payload.get(name) for name in ("sample_digest", "changes")}


def _line(event: Event, last: Event, decided: str | None = None, **values: object) -> Decision:
    plain = {name: event.payload.get(name) for name in PAYLOAD}
    at = (last if decided else event).at.astimezone(datetime.UTC)
    plain |= {
        "decision": decided or event.action,
        "reviewer": event.person if decided is None else None,
        "at": at.isoformat(timespec="seconds"),
        "event": last.id,
        **values,
    }
    if decided is not None:
        plain["changes"] = None
    return Decision.model_validate(plain)
