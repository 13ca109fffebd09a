"""What reviewers see and do: every answer is read from the log and the file of decisions."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from echo_hf._infra.atomic import held
from echo_hf.apps.events import (
    EVENTS_FILE,
    Event,
    EventLog,
    Leases,
    decisions,
    is_conflict,
    standing,
)
from echo_hf.apps.review.page import TOLD, Form, View, edit_of, form_of, own_note
from echo_hf.builder.review import Case, made_decision, triage
from echo_hf.curate.decisions import FILE, Decision, Decisions, append_decisions, read_decisions
from echo_hf.curate.edits import checked_changes, edited_sample
from echo_hf.errors import ReviewError, RunError
from echo_hf.images.store import ImageStore

APP = "review"
OPEN = "open"
LOCK = ".review-log.lock"
LONGEST_WAIT_S = 60
PAYLOAD = ("id", "sample_digest", "reasons", "pictures", "note", "changes")


@dataclass(frozen=True)
class Ledger:
    """The log of the app, and the file that the splits follow."""

    log: EventLog
    file: Path

    def decided(self) -> Decisions:
        return read_decisions(self.file)

    def catch_up(self, subject: str | None = None) -> int:
        """Writes down what the log has and the file has not."""
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
            found = (pending_decision(events, written) for events in by_subject.values())
            lines = [line for line in found if line is not None]
            if lines:
                append_decisions(self.file, lines)
        return len(lines)


def payload_of(decision: Decision) -> dict[str, object]:
    """What an event keeps of a decision; who and when stand in the event itself."""
    return decision.model_dump(mode="json", include=set(PAYLOAD))


def unsettled(events: Iterable[Event]) -> tuple[Event, ...]:
    """Decisions about one sample that contradict each other."""
    found = _standing(events)
    # Two people who say the same in other words agree.
    bare = [replace(one, payload=_said(one)) for one in found]
    return found if is_conflict(bare) else ()


def pending_decision(events: Sequence[Event], written: Sequence[Decision]) -> Decision | None:
    """The line that is still to be written about a sample."""
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
    """Leaves out what was done before the last decision from the command line."""
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


SETTLED = ("keep", "remove")
Row = Mapping[str, Any]


def acts_of(events: Iterable[Event]) -> list[Event]:
    """What was done and not taken back, without the opening of samples."""
    return [one for one in standing(events) if one.action != OPEN]


def is_settled(last: Decision | None, row: Row) -> bool:
    """Whether a sample is kept or removed as it is."""
    return last is not None and last.decision in SETTLED and last.is_about(row)


def waits(row: Row, last: Decision | None, person: str, own: Collection[str]) -> bool:
    if last is None or last.decision in ("edit", "withdraw") or not last.is_about(row):
        return True
    if last.decision == "flag":
        return last.reviewer != person and row["id"] not in own
    return last.decision == "keep" and not last.covers(row)


ACTIONS = ("keep", "remove", "flag", "edit")


@dataclass(frozen=True)
class ReviewController:
    cases: Mapping[str, Case]
    duplicates: Mapping[str, str]
    root: Path
    images: ImageStore
    log: EventLog

    @classmethod
    def of(
        cls, cases: Mapping[str, Case], duplicates: Mapping[str, str], root: Path
    ) -> ReviewController:
        order = sorted(
            cases.values(),
            key=lambda case: triage(case.row, case.notices, duplicates.get(case.row["id"])).turn,
        )
        queue = {case.row["id"]: case for case in order}
        log = EventLog(root / EVENTS_FILE)
        return cls(queue, duplicates, root, ImageStore(root / "pictures"), log)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.log, self.root / FILE)

    @property
    def leases(self) -> Leases:
        return Leases(self.log, APP)

    def view(self, person: str, *, form: Form | None = None, **said: str) -> View:
        own, decided = self.log.events(APP, person=person), self.ledger.decided()
        here = next((one.subject for one in reversed(own) if one.subject in self.cases), None)
        subject = here or self._go(person, decided, None) or next(iter(self.cases))
        self.leases.lend([subject], person)  # renewed while somebody is at it
        return self._view(person, subject, decided, own, form, **said)

    def act(self, person: str, action: Mapping[str, Any]) -> View:
        """Writes down what a person did; it is on the disk when this returns."""
        now = self.view(person)
        kind, subject = action.get("kind"), now.case.row["id"]
        if action.get("subject") != subject:
            return now
        if kind == "undo":
            return self._undo(person)
        if kind in ("next", "back", "goto"):
            return self._move(person, now, str(kind), action.get("wanted"))
        if kind == "take":
            return self._take(person, now, action)
        if kind in ACTIONS:
            return self._decide(person, now, str(kind), action)
        return now

    def _decide(self, person: str, now: View, kind: str, said: Mapping[str, Any]) -> View:
        form = Form.read(said.get("form"), now.form)
        case = now.case
        try:
            edit = edit_of(case.row, form)
            changes = checked_changes(case.row, case.context, edit, self.images, case.taken)
            made = made_decision(case.row, kind, note=form.note, changes=changes)
        except ReviewError as error:
            return self.view(person, form=form, problem=str(error))
        last = self.ledger.decided().changes(case.row)
        before = last.changed if last else None
        if kind == "edit" and (changes, form.note) == (before, now.form.note):
            return now
        return self._write(person, now, kind, payload_of(made), said)

    def _take(self, person: str, now: View, said: Mapping[str, Any]) -> View:
        chosen = next((one for one in now.conflict if one.id == said.get("event")), None)
        if chosen is None:
            return now
        return self._write(person, now, chosen.action, chosen.payload, said)

    def _write(
        self, person: str, now: View, kind: str, payload: Mapping[str, Any], said: Mapping[str, Any]
    ) -> View:
        subject, base = now.case.row["id"], said.get("base")
        # What the page showed, not what is there now: so that two who did not see each other's
        # decisions are found out.
        seen = base if isinstance(base, int) and 0 < base <= now.base else None
        self.log.append(APP, subject, person, kind, payload, seen)
        self.ledger.catch_up(subject)
        if kind == "edit":
            return self.view(person, told="changed")
        self.leases.give_back(subject, person)
        self._go(person, self.ledger.decided(), subject)
        return self.view(person, told=f"{TOLD[kind]} {subject}")

    def _undo(self, person: str) -> View:
        acts = acts_of(self.log.events(APP, person=person))
        if not acts:
            return self.view(person, problem="nothing of yours to take back")
        self.log.undo(acts[-1].id, person)
        self.ledger.catch_up(acts[-1].subject)
        if acts[-1].subject in self.cases:
            self._open(person, acts[-1].subject)
        return self.view(person, told=f"taken back: {TOLD[acts[-1].action]}")

    def _move(self, person: str, now: View, kind: str, wanted: object) -> View:
        subject = now.case.row["id"]
        if kind == "goto":
            if not isinstance(wanted, str) or wanted.strip() not in self.cases:
                return self.view(
                    person, problem=f"no sample {str(wanted)[:60]!r} in the last build"
                )
            self._leave(person, subject, wanted.strip())
        elif kind == "back":
            order = list(self.cases)
            self._leave(person, subject, order[max(now.number - 2, 0)])
        elif self._go(person, self.ledger.decided(), subject) is None:
            return self.view(person, told="nothing else is left: the rest is decided, or lent")
        else:
            self.leases.give_back(subject, person)
        return self.view(person)

    def _leave(self, person: str, subject: str, other: str) -> None:
        self.leases.give_back(subject, person)
        self._open(person, other)

    def _open(self, person: str, subject: str) -> None:
        self.leases.lend([subject], person)
        self.log.append(APP, subject, person, OPEN)

    def _go(self, person: str, decided: Decisions, after: str | None) -> str | None:
        """Opens the next sample that waits for this person and nobody else has."""
        order = list(self.cases)
        at = order.index(after) + 1 if after is not None and after in self.cases else 0
        turn = [*order[at:], *order[: max(at - 1, 0)]]
        own = {one.subject for one in acts_of(self.log.events(APP, person=person))}
        rows = ((self.cases[one].row, decided.by_id.get(one)) for one in turn)
        waiting = [row["id"] for row, last in rows if waits(row, last, person, own)]
        found = self.leases.lend(waiting, person)
        if found is not None:
            self.log.append(APP, found, person, OPEN)
        return found

    def _view(
        self,
        person: str,
        subject: str,
        decided: Decisions,
        own: Sequence[Event],
        form: Form | None,
        **said: str,
    ) -> View:
        case, events = self.cases[subject], self.log.events(APP, subject)
        changing = decided.changes(case.row)
        changes = changing.changed if changing else None
        shown = edited_sample(case.row, changes, case.taken)[0] if changes else dict(case.row)
        reasons = decided.open_reasons(case.row)
        lease = self.leases.running().get(subject)
        acts = [one for one in events if one.action != OPEN]
        last = decided.by_id.get(subject)
        about = [one for one in decided.every if one.id == subject]
        return View(
            person=person,
            case=case,
            images=self.images,
            shown=shown,
            form=form or form_of(shown, changes, own_note(last, person)),
            triage=triage({**shown, "review": reasons}, case.notices, self.duplicates.get(subject)),
            open_reasons=reasons,
            decision=last if last and last.decision != "withdraw" else None,
            conflict=unsettled(not_overruled(acts, about)),
            base=acts[-1].id if acts else 0,
            number=list(self.cases).index(subject) + 1,
            total=len(self.cases),
            done=sum(
                is_settled(decided.by_id.get(name), one.row) for name, one in self.cases.items()
            ),
            lent=lease if lease and lease.person != person else None,
            can_undo=bool(acts_of(own)),
            saved=next((one.at for one in reversed(own) if one.action != OPEN), None),
            **said,
        )
