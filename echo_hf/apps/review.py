"""Have people review samples in their browsers: `echo-hf review CONFIG --app`.

Every answer to a page is read from the log and from the file of decisions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from echo_hf._infra.atomic import complete, held
from echo_hf.apps.events import EVENTS_FILE, Event, EventLog, Lease, Leases, decisions, standing
from echo_hf.apps.page import Address, AskedPage, Place, ShownImages, rendered, serve
from echo_hf.builder.build import opened
from echo_hf.builder.review import (
    Case,
    Triage,
    boxes_changes,
    doubts_in,
    made_decision,
    may_read_boxes,
    read_cases,
    triage,
)
from echo_hf.config.loading import Config
from echo_hf.curate.decisions import (
    FILE,
    Changes,
    Decision,
    Decisions,
    append_decisions,
    images_of,
    read_decisions,
)
from echo_hf.curate.edits import QUALITIES, ROLES, Edit, checked_changes, edited_sample
from echo_hf.curate.provenance import INPUT, OUTPUT
from echo_hf.curate.splits import Splits
from echo_hf.errors import ImageError, ReviewError, RunError
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Reject
from echo_hf.report.markup import printable
from echo_hf.samples.boxes import Convention, upright_size
from echo_hf.samples.extract import LONGEST_PROMPT
from echo_hf.samples.held_boxes import HeldBoxes

APP = "review"
OPEN = "open"
LOCK = ".review-log.lock"
LONGEST_WAIT_S = 60
# What an event keeps of a decision; who and when stand in the event itself.
PAYLOAD = ("id", "sample_digest", "reasons", "doubts", "pictures", "note", "changes")
ACTIONS = ("keep", "remove", "flag", "edit")
SETTLED = ("keep", "remove")


def payload_of(decision: Decision) -> dict[str, object]:
    return decision.model_dump(mode="json", include=set(PAYLOAD))


def without_opening(events: Iterable[Event]) -> list[Event]:
    return [one for one in events if one.action != OPEN]


def conflict_of(events: Iterable[Event]) -> tuple[Event, ...]:
    """Decisions about one sample that contradict each other."""
    found = next(iter(decisions(events).values()), ())
    # Two people who say the same in other words agree.
    keys = ("sample_digest", "changes")
    said = [[one.action, *(one.payload.get(key) for key in keys)] for one in found]
    return found if any(one != said[0] for one in said) else ()


def pending_decision(events: Sequence[Event], written: Sequence[Decision]) -> Decision | None:
    """The line that is still to be written about a sample."""
    last = events[-1]
    about = [one for one in written if one.id == last.subject]
    if max((one.event or 0 for one in about), default=0) >= last.id:
        return None
    open_ = not_overruled(events, about)
    found = next(iter(decisions(open_).values()), ())
    by_hand = [one for one in about if one.event is None]
    about_all: dict[str, Any] = {"reviewer": None, "changes": None}
    if conflict_of(open_):
        names = ", ".join(f"{one.person}: {one.action}" for one in found)
        said, at = found[-1], last
        about_all |= {"decision": "flag", "note": f"two people disagree ({names})"}
    elif found:
        said = at = found[-1]
        about_all = {"decision": said.action, "reviewer": said.person}
    elif by_hand:
        return by_hand[-1].model_copy(update={"event": last.id})
    else:
        said, at = next(one for one in events if "sample_digest" in one.payload), last
        about_all |= {"decision": "withdraw", "note": None}
    plain = {name: said.payload[name] for name in PAYLOAD if name in said.payload}
    when = at.at.astimezone(UTC).isoformat(timespec="seconds")
    return Decision.model_validate(plain | {"at": when, "event": last.id} | about_all)


def not_overruled(events: Sequence[Event], about: Sequence[Decision]) -> Sequence[Event]:
    """Leaves out what was done before the last decision from the command line."""
    by_hand = [place for place, one in enumerate(about) if one.event is None]
    before = about[: by_hand[-1]] if by_hand else ()
    taken_in = max((one.event or 0 for one in before), default=0)
    return [one for one in events if one.id > taken_in]


def is_settled(last: Decision | None, row: Row) -> bool:
    return last is not None and last.decision in SETTLED and last.is_about(row)


def waits(row: Row, last: Decision | None, person: str, own: Collection[str]) -> bool:
    if last is None or last.decision in ("edit", "withdraw") or not last.is_about(row):
        return True
    if last.decision == "flag":
        return last.reviewer != person and row["id"] not in own
    seen = last.covers(row) and set(doubts_in(row)) <= set(last.doubts)
    return last.decision == "keep" and not seen


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
        def turn(case: Case) -> tuple[bool, int, bool, int]:
            return triage(case.row, case.notices, duplicates.get(case.row["id"])).turn

        queue = {case.row["id"]: case for case in sorted(cases.values(), key=turn)}
        log = EventLog(root / EVENTS_FILE)
        return cls(queue, duplicates, root, ImageStore(root / "pictures"), log)

    @property
    def file(self) -> Path:
        """The decisions that the splits follow."""
        return self.root / FILE

    @property
    def leases(self) -> Leases:
        return Leases(self.log, APP)

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
            for event in without_opening(self.log.events(APP, subject)):
                by_subject.setdefault(event.subject, []).append(event)
            written = self.decided().every
            found = (pending_decision(events, written) for events in by_subject.values())
            lines = [line for line in found if line is not None]
            if lines:
                append_decisions(self.file, lines)
        return len(lines)

    def view(self, person: str, *, form: Form | None = None, **said: str) -> View:
        own, decided = self.log.events(APP, person=person), self.decided()
        here = next((one.subject for one in reversed(own) if one.subject in self.cases), None)
        subject = here or self._next(person, None) or next(iter(self.cases))
        self.leases.lend([subject], person)  # renewed while somebody is at it
        case, acts = self.cases[subject], without_opening(self.log.events(APP, subject))
        changing = decided.changes(case.row)
        changes = changing.changed if changing else None
        shown = edited_sample(case.row, changes, case.taken)[0] if changes else dict(case.row)
        reasons = decided.open_reasons(case.row)
        shown["doubts"] = decided.open_doubts(case.row, shown["doubts"])
        lease = self.leases.running().get(subject)
        last = decided.by_id.get(subject)
        # Somebody else's note is shown, but not put into one's mouth.
        note = last.note if last and last.reviewer == person else None
        about = [one for one in decided.every if one.id == subject]
        known = {name: decided.by_id.get(name) for name in self.cases}
        return View(
            person=person,
            case=case,
            images=self.images,
            shown=shown,
            form=form or Form.of(shown, changes, note),
            triage=triage({**shown, "review": reasons}, case.notices, self.duplicates.get(subject)),
            open_reasons=reasons,
            decision=last if last and last.decision != "withdraw" else None,
            conflict=conflict_of(not_overruled(acts, about)),
            base=acts[-1].id if acts else 0,
            number=list(self.cases).index(subject) + 1,
            total=len(self.cases),
            readings=self._readings(case),
            done=sum(is_settled(known[name], one.row) for name, one in self.cases.items()),
            lent=lease if lease and lease.person != person else None,
            can_undo=bool(without_opening(standing(own))),
            saved=next((one.at for one in reversed(own) if one.action != OPEN), None),
            **said,
        )

    def act(self, person: str, action: Mapping[str, Any]) -> View:
        """Writes down what a person did; it is on the disk when this returns."""
        now = self.view(person)
        kind, subject, wanted = action.get("kind"), now.case.row["id"], action.get("wanted")
        if action.get("subject") != subject:
            return now
        match kind:
            case "undo":
                return self._undo(person)
            case "goto":
                if not isinstance(wanted, str) or wanted.strip() not in self.cases:
                    problem = f"no sample {str(wanted)[:60]!r} in the last build"
                    return self.view(person, problem=problem)
                self._open(person, wanted.strip(), subject)
            case "back":
                self._open(person, list(self.cases)[max(now.number - 2, 0)], subject)
            case "next":
                if self._next(person, subject) is None:
                    told = "nothing else is left: the rest is decided, or lent"
                    return self.view(person, told=told)
                self.leases.give_back(subject, person)
            case "take":
                for one in now.conflict:
                    if one.id == action.get("event"):
                        return self._write(now, one.action, one.payload, action)
            case "boxes":
                return self._read_boxes(now, action.get("convention"))
            case str() if kind in ACTIONS:
                return self._decide(now, kind, action)
        return self.view(person)

    def _decide(self, now: View, kind: str, said: Mapping[str, Any]) -> View:
        form, case = Form.read(said.get("form"), now.form), now.case
        try:
            edit = form.edit(case.row)
            changes = checked_changes(case.row, case.context, edit, self.images, case.taken)
            made = made_decision(case.row, kind, note=form.note, changes=changes)
        except ReviewError as error:
            return self.view(now.person, form=form, problem=str(error))
        last = self.decided().changes(case.row)
        before = last.changed if last else None
        if kind == "edit" and (changes, form.note) == (before, now.form.note):
            return now
        return self._write(now, kind, payload_of(made), said)

    def _write(
        self, now: View, kind: str, payload: Mapping[str, Any], said: Mapping[str, Any]
    ) -> View:
        person, subject, base = now.person, now.case.row["id"], said.get("base")
        # What the page showed, not what is there now: so that two who did not see each other's
        # decisions are found out.
        seen = base if isinstance(base, int) and 0 < base <= now.base else None
        self.log.append(APP, subject, person, kind, payload, seen)
        self.catch_up(subject)
        if kind == "edit":
            return self.view(person, told="changed")
        self.leases.give_back(subject, person)
        self._next(person, subject)
        return self.view(person, told=f"{TOLD[kind]} {subject}")

    def _read_boxes(self, now: View, convention: object) -> View:
        """Reads the held boxes of all samples so, but for those that somebody else has changed."""
        if convention not in [one.convention for one in now.readings]:
            return now
        cut, decided = 0, self.decided().by_id
        for case in self.held:
            if not may_read_boxes(case.row, decided.get(case.row["id"]), now.person):
                continue
            try:
                changes = boxes_changes(case, Convention(convention), self.images)
            except ReviewError:  # it stays open, and doubtful
                continue
            made = made_decision(case.row, "edit", changes=changes)
            self.log.append(APP, case.row["id"], now.person, "edit", payload_of(made))
            cut += 1
        self.catch_up()
        left = len(self.held) - cut
        said = f"boxes read as {convention}: {cut} cut, {left} left as they were"
        return self.view(now.person, told=said)

    @property
    def held(self) -> list[Case]:
        """The samples whose boxes wait for a convention."""
        return [one for one in self.cases.values() if HeldBoxes.of(one.row)]

    def _readings(self, case: Case) -> list[Reading]:
        boxes = HeldBoxes.of(case.row)
        if boxes is None:
            return []
        every = [one for one in (HeldBoxes.of(case.row) for case in self.held) if one]
        conventions = sorted(Convention, key=lambda one: one != boxes.asked)
        return [Reading.of(boxes, one, every) for one in conventions]

    def _undo(self, person: str) -> View:
        acts = without_opening(standing(self.log.events(APP, person=person)))
        if not acts:
            return self.view(person, problem="nothing of yours to take back")
        self.log.undo(acts[-1].id, person)
        self.catch_up(acts[-1].subject)
        if acts[-1].subject in self.cases:
            self._open(person, acts[-1].subject)
        return self.view(person, told=f"taken back: {TOLD[acts[-1].action]}")

    def _open(self, person: str, subject: str, left: str | None = None) -> None:
        if left is not None:
            self.leases.give_back(left, person)
        self.leases.lend([subject], person)
        self.log.append(APP, subject, person, OPEN)

    def _next(self, person: str, after: str | None) -> str | None:
        """Opens the next sample that waits for this person and nobody else has."""
        order, decided = list(self.cases), self.decided()
        at = order.index(after) + 1 if after is not None else 0
        turn = [*order[at:], *order[: max(at - 1, 0)]]
        acts = without_opening(standing(self.log.events(APP, person=person)))
        own = {one.subject for one in acts}
        rows = ((self.cases[one].row, decided.by_id.get(one)) for one in turn)
        waiting = [row["id"] for row, last in rows if waits(row, last, person, own)]
        found = self.leases.lend(waiting, person)
        if found is not None:
            self.log.append(APP, found, person, OPEN)
        return found


def desk_of(config: Config | Path | str, *, runs: Path | str | None = None) -> ReviewController:
    with opened(config, runs, writes=False) as pipeline:
        root, cases = pipeline.folder.root, read_cases(pipeline)
        if not cases:
            raise ReviewError(f"{str(root)!r} has no sample to review")
        file = complete(pipeline.folder.stage(Splits.name)) / "rejects.parquet"
        columns = ["id", "_reason", "_detail"]
        rejects = pq.read_table(file, columns=columns).to_pylist() if file.exists() else ()
        reason = Reject.DUPLICATE_OF
        duplicates = {row["id"]: row["_detail"] for row in rejects if row["_reason"] == reason}
        desk = ReviewController.of(cases, duplicates, root)
    desk.catch_up()  # what a killed server had not written any more
    return desk


def review(
    desk: ReviewController,
    *,
    place: Place,
    people: Iterable[str] = (),
    anyone: bool = False,
    ready: Callable[[str], None],
) -> None:
    """Serves the page until it is stopped; a decision is in the file before the page moves on."""
    images = ShownImages(desk.images)
    for case in desk.cases.values():
        images.admit(images_of(case.row))
        for post in case.context:
            images.admit(one["sha256"] for one in post["pictures"] or () if one["sha256"])
    for one in desk.decided().by_id.values():
        images.admit(one.changed.images if one.changed else ())

    def shown(view: View, answer: int = 0) -> str:
        # What a reviewer has just cut out was not there when the page was opened.
        images.admit((*view.shown["input_images"], *view.shown["output_images"]))
        return desk_page(view, images.address, answer)

    def opened(person: str) -> str:
        return shown(desk.view(person))

    def acted(person: str, said: Mapping[str, Any], answer: int) -> str:
        return shown(desk.act(person, said), answer)

    scripts = ("boxes.js", "review.js")
    page = AskedPage("Review samples", scripts, "review.css", opened, acted)
    serve(page, images, place=place, people=people, anyone=anyone, ready=ready)


MOST_FIELDS = 1000
LONGEST_FIELD = 20_000
NUMBERS = re.compile(r"\s*(\d{1,9})[\s,;]+(\d{1,9})[\s,;]+(\d{1,9})[\s,;]+(\d{1,9})\s*", re.ASCII)
TOLD = {"keep": "kept", "remove": "removed", "flag": "flagged", "edit": "changed"}
CHANGED_PARTS = ("prompt", "quality", "roles", "crops")
KEYS = {
    "K": "keep",
    "R": "remove",
    "F": "flag for somebody else",
    "E": "edit the prompt",
    "Esc": "leave a field",
    "U": "undo",
    "N": "next",
    "P": "back",
}
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Form:
    prompt: str
    quality: str
    note: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    boxes: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, row: Row, changes: Changes | None, note: str | None) -> Form:
        roles: dict[str, str] = {}
        boxes: list[tuple[str, str]] = []
        for role in (INPUT, OUTPUT):
            cut = row[f"{role}_bboxs"] or []
            boxes += [(role, ", ".join(str(int(side)) for side in box)) for box in cut]
            roles |= dict.fromkeys((row[f"{role}_images"] or [])[len(cut) :], role)
        roles |= {one.sha256: one.role for one in changes.roles} if changes else {}
        return cls(row["prompt"] or "", row["quality"], note or "", roles, tuple(boxes))

    @classmethod
    def read(cls, values: object, shown: Form) -> Form:
        """Reads what a page sent, which may be anything."""
        said = values if isinstance(values, Mapping) else {}
        texts = {}
        for name in ("prompt", "quality", "note"):
            value = said.get(name)
            texts[name] = value[:LONGEST_FIELD] if isinstance(value, str) else getattr(shown, name)
        roles, boxes = dict(shown.roles), shown.boxes
        given = said.get("roles")
        for name, role in list(given.items())[:MOST_FIELDS] if isinstance(given, Mapping) else ():
            if isinstance(role, str):
                roles[str(name)] = role
        drawn = said.get("boxes")
        if isinstance(drawn, list):
            pairs = (one for one in drawn[:MOST_FIELDS] if isinstance(one, list) and len(one) == 2)
            boxes = tuple((str(role), str(text)[:100]) for role, text in pairs)
        return cls(**texts, roles=roles, boxes=boxes)

    def edit(self, row: Row) -> Edit:
        if not row["screenshot"] or not (self.boxes or row["is_screenshot"]):
            return Edit(self.prompt, self.quality, self.roles, None)
        boxes = []
        for role, text in self.boxes:
            found = NUMBERS.fullmatch(text)
            if found is None:
                raise ReviewError(
                    f"box {text[:60]!r} is not four whole numbers: expected left, top, right, "
                    "bottom in pixels of the screenshot"
                )
            left, top, right, bottom = map(int, found.groups())
            boxes.append((role, (left, top, right, bottom)))
        return Edit(self.prompt, self.quality, self.roles, boxes)


class Reading(NamedTuple):
    """What the held boxes of a sample are if its model names places in this way.

    `parts` has role, left, top, width and height of each box in percent of the screenshot.
    """

    convention: str
    model: str
    is_asked: bool
    parts: Sequence[tuple[str, float, float, float, float]]
    fits: int
    samples: int

    @classmethod
    def of(cls, held: HeldBoxes, convention: Convention, every: Sequence[HeldBoxes]) -> Reading:
        boxes, (wide, high) = held.read_as(convention), held.original
        parts = [
            (role, 100 * a / wide, 100 * b / high, 100 * (c - a) / wide, 100 * (d - b) / high)
            for role, some in ((INPUT, boxes.inputs), (OUTPUT, boxes.outputs))
            for a, b, c, d in some
        ]
        fits = sum(one.read_as(convention).usable for one in every)
        asked = convention == held.asked
        return cls(str(convention), held.model, asked, parts, fits, len(every))


@dataclass(frozen=True)
class View:
    person: str
    case: Case
    images: ImageStore
    shown: Row
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
    readings: Sequence[Reading]
    saved: datetime | None
    problem: str = ""
    told: str = ""


def desk_page(view: View, address: Address, answer: int = 0) -> str:
    cards: dict[str, list[Card]] = {role: [] for role in ROLES}
    for card in _cards(view):
        cards[card.role if card.role in cards else "neither"].append(card)
    try:
        digest = view.case.row["screenshot"]
        size = upright_size(view.images.open(digest)) if digest else None
    except ImageError:
        size = None
    depths: list[int] = []
    for post in view.case.context:
        depths.append(0 if post["parent"] < 0 else depths[post["parent"]] + 1)
    page = rendered(
        "review.jinja",
        view=view,
        address=address,
        answer=answer,
        cards=cards,
        size=size,
        thread=list(zip(view.case.context, depths, strict=True)),
        told=TOLD,
        changed_parts=CHANGED_PARTS,
        roles=ROLES,
        qualities=QUALITIES,
        longest_prompt=LONGEST_PROMPT,
        hints=KEYS,
    )
    return printable(page)  # what was typed and refused may hold what no page can


class Card(NamedTuple):
    digest: str
    role: str
    is_cut: bool


def _cards(view: View) -> Iterable[Card]:
    """The images of a sample and its thread, each once."""
    row, roles, found = view.case.row, view.form.roles, dict[str, Card]()
    hidden, others = {row["screenshot"], None}, list[str]()
    for role in (INPUT, OUTPUT):
        cut = len(view.shown[f"{role}_bboxs"] or ())
        for number, digest in enumerate(view.shown[f"{role}_images"] or ()):
            chosen = role if number < cut else roles.get(digest, role)
            found[digest] = Card(digest, chosen, number < cut)
        whole, boxes = row[f"{role}_images"] or (), len(row[f"{role}_bboxs"] or ())
        hidden.update(whole[:boxes])  # what was cut out before any change
        others += whole[boxes:]
    others += [one["sha256"] for post in view.case.context for one in post["pictures"] or ()]
    for digest in others:
        if digest not in hidden:
            found.setdefault(digest, Card(digest, roles.get(digest, "neither"), False))
    return found.values()
