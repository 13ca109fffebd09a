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

from echo_hf._infra.atomic import find_complete, lock_file
from echo_hf.apps.page import AppPage, ImageAddress, ServedImages, ServerAddress, render_page, serve
from echo_hf.builder.build import open_run
from echo_hf.builder.review import (
    ReviewCase,
    Triage,
    build_box_changes,
    build_decision,
    can_reread_boxes,
    read_cases,
    select_doubts,
    triage,
)
from echo_hf.config.loading import Config
from echo_hf.curate.decisions import (
    DECISIONS_FILE,
    Changes,
    Decision,
    ReviewDecisions,
    append_decisions,
    read_decisions,
    sample_images,
)
from echo_hf.curate.edits import IMAGE_ROLES, SampleEdit, apply_changes, check_edit
from echo_hf.curate.events import (
    EVENTS_FILE,
    Event,
    EventLog,
    SampleLease,
    SampleLeases,
    current_decisions,
    drop_undone,
)
from echo_hf.curate.provenance import INPUT, OUTPUT
from echo_hf.curate.splits import SampleReject, Splits
from echo_hf.errors import ImageError, ReviewError, RunError
from echo_hf.images.store import ImageStore
from echo_hf.report.markup import make_printable
from echo_hf.samples.boxes import Convention, read_upright_size
from echo_hf.samples.extract import MAX_PROMPT, QUALITIES
from echo_hf.samples.held_boxes import StoredBoxes
from echo_hf.tables import Row

APP = "review"
OPEN = "open"
LOCK_FILE = ".review-log.lock"
MAX_LOCK_SECONDS = 60
# What an event keeps of a decision; who and when stand in the event itself.
PAYLOAD_FIELDS = ("id", "sample_digest", "reasons", "doubts", "pictures", "note", "changes")
ACTIONS = ("keep", "remove", "flag", "edit")
SETTLED = ("keep", "remove")
MAX_FIELDS = 1000
MAX_FIELD = 20_000
INTEGERS = re.compile(r"\s*(\d{1,9})[\s,;]+(\d{1,9})[\s,;]+(\d{1,9})[\s,;]+(\d{1,9})\s*", re.ASCII)
PAST_TENSES = {"keep": "kept", "remove": "removed", "flag": "flagged", "edit": "changed"}
CHANGED_PARTS = ("prompt", "quality", "roles", "crops")
KEY_HINTS = {
    "K": "keep",
    "R": "remove",
    "F": "flag for somebody else",
    "E": "edit the prompt",
    "Esc": "leave a field",
    "U": "undo",
    "N": "next",
    "P": "back",
}


def build_payload(decision: Decision) -> dict[str, object]:
    return decision.model_dump(mode="json", include=set(PAYLOAD_FIELDS))


def drop_opens(events: Iterable[Event]) -> list[Event]:
    return [event for event in events if event.action != OPEN]


def find_conflict(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the decisions about one sample if they contradict each other."""
    standing = next(iter(current_decisions(events).values()), ())
    # Two people who say the same in other words agree.
    keys = ("sample_digest", "changes")
    verdicts = [[event.action, *(event.payload.get(key) for key in keys)] for event in standing]
    return standing if any(verdict != verdicts[0] for verdict in verdicts) else ()


def find_pending_decision(events: Sequence[Event], written: Sequence[Decision]) -> Decision | None:
    """Return the decision about a sample that the log has and the file of decisions lacks."""
    last = events[-1]
    of_sample = [decision for decision in written if decision.id == last.subject]
    if max((decision.event or 0 for decision in of_sample), default=0) >= last.id:
        return None
    remaining = drop_overruled(events, of_sample)
    standing = next(iter(current_decisions(remaining).values()), ())
    by_hand = [decision for decision in of_sample if decision.event is None]
    fields: dict[str, Any] = {"reviewer": None, "changes": None}
    if find_conflict(remaining):
        names = ", ".join(f"{event.person}: {event.action}" for event in standing)
        basis, dated = standing[-1], last
        fields |= {"decision": "flag", "note": f"two people disagree ({names})"}
    elif standing:
        basis = dated = standing[-1]
        fields = {"decision": basis.action, "reviewer": basis.person}
    elif by_hand:
        return by_hand[-1].model_copy(update={"event": last.id})
    else:
        basis, dated = next(event for event in events if "sample_digest" in event.payload), last
        fields |= {"decision": "withdraw", "note": None}
    payload = {name: basis.payload[name] for name in PAYLOAD_FIELDS if name in basis.payload}
    timestamp = dated.at.astimezone(UTC).isoformat(timespec="seconds")
    return Decision.model_validate(payload | {"at": timestamp, "event": last.id} | fields)


def drop_overruled(events: Sequence[Event], written: Sequence[Decision]) -> Sequence[Event]:
    """Leave out events before the last decision from the command line."""
    by_hand = [index for index, decision in enumerate(written) if decision.event is None]
    overruling = written[: by_hand[-1]] if by_hand else ()
    taken_in = max((decision.event or 0 for decision in overruling), default=0)
    return [event for event in events if event.id > taken_in]


def is_decided(last: Decision | None, row: Row) -> bool:
    return last is not None and last.decision in SETTLED and last.is_about(row)


def is_waiting(row: Row, last: Decision | None, person: str, own: Collection[str]) -> bool:
    if last is None or last.decision in ("edit", "withdraw") or not last.is_about(row):
        return True
    if last.decision == "flag":
        return last.reviewer != person and row["id"] not in own
    is_covered = last.covers(row) and set(select_doubts(row)) <= set(last.doubts)
    return last.decision == "keep" and not is_covered


@dataclass(frozen=True)
class ReviewController:
    cases: Mapping[str, ReviewCase]
    duplicates: Mapping[str, str]
    root: Path
    images: ImageStore
    log: EventLog

    @classmethod
    def from_cases(
        cls, cases: Mapping[str, ReviewCase], duplicates: Mapping[str, str], root: Path
    ) -> ReviewController:
        def review_turn(case: ReviewCase) -> tuple[bool, int, bool, int]:
            return triage(case.row, case.notices, duplicates.get(case.row["id"])).turn

        queue = {case.row["id"]: case for case in sorted(cases.values(), key=review_turn)}
        log = EventLog(root / EVENTS_FILE)
        return cls(queue, duplicates, root, ImageStore(root / "pictures"), log)

    @property
    def file(self) -> Path:
        """The path of the decisions that the splits stage reads."""
        return self.root / DECISIONS_FILE

    @property
    def leases(self) -> SampleLeases:
        return SampleLeases(self.log, APP)

    def read_decisions(self) -> ReviewDecisions:
        return read_decisions(self.file)

    def write_pending(self, subject: str | None = None) -> int:
        """Write decisions that the log has and the file lacks; return how many."""
        # Held from reading to writing: an older state must not be written after a newer one.
        busy = RunError(
            f"another process has held {str(self.file)!r} for {MAX_LOCK_SECONDS} s: end it, and "
            "decide again"
        )
        with lock_file(self.file.with_name(LOCK_FILE), busy, MAX_LOCK_SECONDS):
            by_subject: dict[str, list[Event]] = {}
            for event in drop_opens(self.log.read_events(APP, subject)):
                by_subject.setdefault(event.subject, []).append(event)
            written = self.read_decisions().log
            pending = (find_pending_decision(events, written) for events in by_subject.values())
            lines = [line for line in pending if line is not None]
            if lines:
                append_decisions(self.file, lines)
        return len(lines)

    def build_page(
        self, person: str, *, form: ReviewForm | None = None, **notes: str
    ) -> ReviewPage:
        own, decisions = self.log.read_events(APP, person=person), self.read_decisions()
        opened = next(
            (event.subject for event in reversed(own) if event.subject in self.cases), None
        )
        subject = opened or self._open_next(person, None) or next(iter(self.cases))
        self.leases.lend([subject], person)  # renewed while somebody is at it
        case, acts = self.cases[subject], drop_opens(self.log.read_events(APP, subject))
        changing_decision = decisions.find_edit(case.row)
        changes = changing_decision.edits if changing_decision else None
        edited_row = apply_changes(case.row, changes, case.taken)[0] if changes else dict(case.row)
        reasons = decisions.open_reasons(case.row)
        edited_row["doubts"] = decisions.open_doubts(case.row, edited_row["doubts"])
        lease = self.leases.get_running().get(subject)
        last = decisions.by_id.get(subject)
        # Somebody else's note is shown, but not put into one's mouth.
        note = last.note if last and last.reviewer == person else None
        written = [decision for decision in decisions.log if decision.id == subject]
        last_of = {name: decisions.by_id.get(name) for name in self.cases}
        return ReviewPage(
            person=person,
            case=case,
            images=self.images,
            shown=edited_row,
            form=form or ReviewForm.from_row(edited_row, changes, note),
            triage=triage(
                {**edited_row, "review": reasons}, case.notices, self.duplicates.get(subject)
            ),
            open_reasons=reasons,
            decision=last if last and last.decision != "withdraw" else None,
            conflict=find_conflict(drop_overruled(acts, written)),
            base=acts[-1].id if acts else 0,
            number=list(self.cases).index(subject) + 1,
            total=len(self.cases),
            readings=self._read_boxes_as(case),
            done=sum(is_decided(last_of[name], entry.row) for name, entry in self.cases.items()),
            lent=lease if lease and lease.person != person else None,
            can_undo=bool(drop_opens(drop_undone(own))),
            saved=next((event.at for event in reversed(own) if event.action != OPEN), None),
            **notes,
        )

    def act(self, person: str, action: Mapping[str, Any]) -> ReviewPage:
        """Apply an action of the page; it is on the disk when this returns."""
        page = self.build_page(person)
        kind, subject, goal = action.get("kind"), page.case.row["id"], action.get("wanted")
        if action.get("subject") != subject:
            return page
        match kind:
            case "undo":
                return self._undo(person)
            case "goto":
                if not isinstance(goal, str) or goal.strip() not in self.cases:
                    problem = f"no sample {str(goal)[:60]!r} in the last build"
                    return self.build_page(person, problem=problem)
                self._open(person, goal.strip(), subject)
            case "back":
                self._open(person, list(self.cases)[max(page.number - 2, 0)], subject)
            case "next":
                if self._open_next(person, subject) is None:
                    message = "nothing else is left: the rest is decided, or lent"
                    return self.build_page(person, told=message)
                self.leases.give_back(subject, person)
            case "take":
                for event in page.conflict:
                    if event.id == action.get("event"):
                        return self._write(page, event.action, event.payload, action)
            case "boxes":
                return self._read_boxes(page, action.get("convention"))
            case str() if kind in ACTIONS:
                return self._decide(page, kind, action)
        return self.build_page(person)

    def _decide(self, page: ReviewPage, kind: str, action: Mapping[str, Any]) -> ReviewPage:
        form, case = ReviewForm.read(action.get("form"), page.form), page.case
        try:
            edit = form.build_edit(case.row)
            changes = check_edit(case.row, case.context, edit, self.images, case.taken)
            decision = build_decision(case.row, kind, note=form.note, changes=changes)
        except ReviewError as error:
            return self.build_page(page.person, form=form, problem=str(error))
        last = self.read_decisions().find_edit(case.row)
        previous_changes = last.edits if last else None
        if kind == "edit" and (changes, form.note) == (previous_changes, page.form.note):
            return page
        return self._write(page, kind, build_payload(decision), action)

    def _write(
        self, page: ReviewPage, kind: str, payload: Mapping[str, Any], action: Mapping[str, Any]
    ) -> ReviewPage:
        person, subject, base = page.person, page.case.row["id"], action.get("base")
        # What the page showed, not what is there now: so that two who did not see each other's
        # decisions are found out.
        base_event = base if isinstance(base, int) and 0 < base <= page.base else None
        self.log.append(APP, subject, person, kind, payload, base_event)
        self.write_pending(subject)
        if kind == "edit":
            return self.build_page(person, told="changed")
        self.leases.give_back(subject, person)
        self._open_next(person, subject)
        return self.build_page(person, told=f"{PAST_TENSES[kind]} {subject}")

    def _read_boxes(self, page: ReviewPage, convention: object) -> ReviewPage:
        """Cut all held boxes by one convention, except samples that somebody else has changed."""
        if convention not in [reading.convention for reading in page.readings]:
            return page
        cut_count, last_decisions = 0, self.read_decisions().by_id
        for case in self.with_boxes:
            if not can_reread_boxes(case.row, last_decisions.get(case.row["id"]), page.person):
                continue
            try:
                changes = build_box_changes(case, Convention(convention), self.images)
            except ReviewError:  # it stays open, and doubtful
                continue
            decision = build_decision(case.row, "edit", changes=changes)
            self.log.append(APP, case.row["id"], page.person, "edit", build_payload(decision))
            cut_count += 1
        self.write_pending()
        remaining = len(self.with_boxes) - cut_count
        message = f"boxes read as {convention}: {cut_count} cut, {remaining} left as they were"
        return self.build_page(page.person, told=message)

    @property
    def with_boxes(self) -> list[ReviewCase]:
        """The samples whose boxes wait for a convention."""
        return [case for case in self.cases.values() if StoredBoxes.from_sample(case.row)]

    def _read_boxes_as(self, case: ReviewCase) -> list[BoxReading]:
        boxes = StoredBoxes.from_sample(case.row)
        if boxes is None:
            return []
        all_boxes = [
            read for read in (StoredBoxes.from_sample(case.row) for case in self.with_boxes) if read
        ]
        conventions = sorted(
            Convention, key=lambda convention: convention != boxes.asked_convention
        )
        return [BoxReading.from_boxes(boxes, convention, all_boxes) for convention in conventions]

    def _undo(self, person: str) -> ReviewPage:
        acts = drop_opens(drop_undone(self.log.read_events(APP, person=person)))
        if not acts:
            return self.build_page(person, problem="nothing of yours to take back")
        self.log.undo(acts[-1].id, person)
        self.write_pending(acts[-1].subject)
        if acts[-1].subject in self.cases:
            self._open(person, acts[-1].subject)
        return self.build_page(person, told=f"taken back: {PAST_TENSES[acts[-1].action]}")

    def _open(self, person: str, subject: str, left_subject: str | None = None) -> None:
        if left_subject is not None:
            self.leases.give_back(left_subject, person)
        self.leases.lend([subject], person)
        self.log.append(APP, subject, person, OPEN)

    def _open_next(self, person: str, after_subject: str | None) -> str | None:
        """Open the next sample that waits for this person and that nobody else has."""
        subjects, decisions = list(self.cases), self.read_decisions()
        start = subjects.index(after_subject) + 1 if after_subject is not None else 0
        turn_order = [*subjects[start:], *subjects[: max(start - 1, 0)]]
        acts = drop_opens(drop_undone(self.log.read_events(APP, person=person)))
        own = {event.subject for event in acts}
        rows = ((self.cases[subject].row, decisions.by_id.get(subject)) for subject in turn_order)
        waiting = [row["id"] for row, last in rows if is_waiting(row, last, person, own)]
        next_subject = self.leases.lend(waiting, person)
        if next_subject is not None:
            self.log.append(APP, next_subject, person, OPEN)
        return next_subject


def open_review(config: Config | Path | str, *, runs: Path | str | None = None) -> ReviewController:
    with open_run(config, runs, writes=False) as pipeline:
        root, cases = pipeline.folder.root, read_cases(pipeline)
        if not cases:
            raise ReviewError(f"{str(root)!r} has no sample to review")
        file = find_complete(pipeline.folder.stage_folder(Splits.name)) / "rejects.parquet"
        columns = ["id", "_reason", "_detail"]
        rejects = pq.read_table(file, columns=columns).to_pylist() if file.exists() else ()
        reason = SampleReject.DUPLICATE_OF
        duplicates = {row["id"]: row["_detail"] for row in rejects if row["_reason"] == reason}
        controller = ReviewController.from_cases(cases, duplicates, root)
    controller.write_pending()  # what a killed server had not written any more
    return controller


def review(
    controller: ReviewController,
    *,
    server: ServerAddress,
    people: Iterable[str] = (),
    allow_anyone: bool = False,
    on_ready: Callable[[str], None],
) -> None:
    """Serve the page until it is stopped; a decision is in the file before the page moves on."""
    images = ServedImages(controller.images)
    for case in controller.cases.values():
        images.admit(sample_images(case.row))
        for post in case.context:
            images.admit(image["sha256"] for image in post["pictures"] or () if image["sha256"])
    for decision in controller.read_decisions().by_id.values():
        images.admit(decision.edits.images if decision.edits else ())

    def render_shown(view: ReviewPage, request_number: int = 0) -> str:
        # What a reviewer has just cut out was not there when the page was opened.
        images.admit((*view.shown["input_images"], *view.shown["output_images"]))
        return render_review_page(view, images.get_address, request_number)

    def open_page(person: str) -> str:
        return render_shown(controller.build_page(person))

    def handle_action(person: str, action: Mapping[str, Any], request_number: int) -> str:
        return render_shown(controller.act(person, action), request_number)

    scripts = ("boxes.js", "review.js")
    page = AppPage("Review samples", scripts, "review.css", open_page, handle_action)
    serve(page, images, server=server, people=people, allow_anyone=allow_anyone, on_ready=on_ready)


@dataclass(frozen=True)
class ReviewForm:
    prompt: str
    quality: str
    note: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    boxes: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_row(cls, row: Row, changes: Changes | None, note: str | None) -> ReviewForm:
        roles: dict[str, str] = {}
        boxes: list[tuple[str, str]] = []
        for role in (INPUT, OUTPUT):
            crop_boxes = row[f"{role}_bboxs"] or []
            boxes += [(role, ", ".join(str(int(side)) for side in box)) for box in crop_boxes]
            roles |= dict.fromkeys((row[f"{role}_images"] or [])[len(crop_boxes) :], role)
        roles |= {change.sha256: change.role for change in changes.roles} if changes else {}
        return cls(row["prompt"] or "", row["quality"], note or "", roles, tuple(boxes))

    @classmethod
    def read(cls, values: object, form: ReviewForm) -> ReviewForm:
        """Read the fields that a page sent, which may be of any type."""
        fields = values if isinstance(values, Mapping) else {}
        texts = {}
        for name in ("prompt", "quality", "note"):
            value = fields.get(name)
            texts[name] = value[:MAX_FIELD] if isinstance(value, str) else getattr(form, name)
        roles, boxes = dict(form.roles), form.boxes
        sent = fields.get("roles")
        for name, role in list(sent.items())[:MAX_FIELDS] if isinstance(sent, Mapping) else ():
            if isinstance(role, str):
                roles[str(name)] = role
        drawn_boxes = fields.get("boxes")
        if isinstance(drawn_boxes, list):
            pairs = (
                pair
                for pair in drawn_boxes[:MAX_FIELDS]
                if isinstance(pair, list) and len(pair) == 2
            )
            boxes = tuple((str(role), str(text)[:100]) for role, text in pairs)
        return cls(**texts, roles=roles, boxes=boxes)

    def build_edit(self, row: Row) -> SampleEdit:
        if not row["screenshot"] or not (self.boxes or row["is_screenshot"]):
            return SampleEdit(self.prompt, self.quality, self.roles, None)
        boxes = []
        for role, text in self.boxes:
            match = INTEGERS.fullmatch(text)
            if match is None:
                raise ReviewError(
                    f"box {text[:60]!r} is not four whole numbers: expected left, top, right, "
                    "bottom in pixels of the screenshot"
                )
            left, top, right, bottom = map(int, match.groups())
            boxes.append((role, (left, top, right, bottom)))
        return SampleEdit(self.prompt, self.quality, self.roles, boxes)


class BoxReading(NamedTuple):
    """The boxes of a sample, if its model names places by one convention.

    `parts` has role, left, top, width and height of each box in percent of the screenshot.
    """

    convention: str
    model: str
    is_asked: bool
    parts: Sequence[tuple[str, float, float, float, float]]
    fits: int
    samples: int

    @classmethod
    def from_boxes(
        cls, boxes_held: StoredBoxes, convention: Convention, all_boxes: Sequence[StoredBoxes]
    ) -> BoxReading:
        boxes, (width, height) = boxes_held.read_as(convention), boxes_held.original
        parts = [
            (role, 100 * a / width, 100 * b / height, 100 * (c - a) / width, 100 * (d - b) / height)
            for role, role_boxes in ((INPUT, boxes.inputs), (OUTPUT, boxes.outputs))
            for a, b, c, d in role_boxes
        ]
        fits = sum(boxes_of_sample.read_as(convention).usable for boxes_of_sample in all_boxes)
        is_asked = convention == boxes_held.asked_convention
        return cls(str(convention), boxes_held.model, is_asked, parts, fits, len(all_boxes))


@dataclass(frozen=True)
class ReviewPage:
    person: str
    case: ReviewCase
    images: ImageStore
    shown: Row
    form: ReviewForm
    triage: Triage
    open_reasons: Sequence[str]
    decision: Decision | None
    conflict: Sequence[Event]
    base: int
    number: int
    total: int
    done: int
    lent: SampleLease | None
    can_undo: bool
    readings: Sequence[BoxReading]
    saved: datetime | None
    problem: str = ""
    told: str = ""


def render_review_page(view: ReviewPage, address: ImageAddress, request_number: int = 0) -> str:
    cards: dict[str, list[ImageCard]] = {role: [] for role in IMAGE_ROLES}
    for card in _list_cards(view):
        cards[card.role if card.role in cards else "neither"].append(card)
    try:
        digest = view.case.row["screenshot"]
        size = read_upright_size(view.images.open(digest)) if digest else None
    except ImageError:
        size = None
    depths: list[int] = []
    for post in view.case.context:
        depths.append(0 if post["parent"] < 0 else depths[post["parent"]] + 1)
    page = render_page(
        "review.jinja",
        view=view,
        address=address,
        answer=request_number,
        cards=cards,
        size=size,
        thread=list(zip(view.case.context, depths, strict=True)),
        told=PAST_TENSES,
        changed_parts=CHANGED_PARTS,
        roles=IMAGE_ROLES,
        qualities=QUALITIES,
        longest_prompt=MAX_PROMPT,
        hints=KEY_HINTS,
    )
    return make_printable(page)  # what was typed and refused may hold what no page can


class ImageCard(NamedTuple):
    digest: str
    role: str
    is_cut: bool


def _list_cards(view: ReviewPage) -> Iterable[ImageCard]:
    """Return the images of a sample and its thread, each once."""
    row, roles, cards = view.case.row, view.form.roles, dict[str, ImageCard]()
    hidden, others = {row["screenshot"], None}, list[str]()
    for role in (INPUT, OUTPUT):
        crop_count = len(view.shown[f"{role}_bboxs"] or ())
        for number, digest in enumerate(view.shown[f"{role}_images"] or ()):
            chosen_role = role if number < crop_count else roles.get(digest, role)
            cards[digest] = ImageCard(digest, chosen_role, number < crop_count)
        images, box_count = row[f"{role}_images"] or (), len(row[f"{role}_bboxs"] or ())
        hidden.update(images[:box_count])  # what was cut out before any change
        others += images[box_count:]
    others += [image["sha256"] for post in view.case.context for image in post["pictures"] or ()]
    for digest in others:
        if digest not in hidden:
            cards.setdefault(digest, ImageCard(digest, roles.get(digest, "neither"), False))
    return cards.values()
