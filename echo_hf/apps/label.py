"""Have people answer a check about outputs in their browsers: `echo-hf review CONFIG --check NAME`.

Outputs come in an order that depends on names alone. No page names a system, or what a judge said.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.text import pluralize
from echo_hf.apps.page import AppPage, ImageAddress, ServedImages, ServerAddress, render_page, serve
from echo_hf.apps.people_rows import WrittenRows, write_people_rows
from echo_hf.curate.events import EVENTS_FILE, Event, EventLog, SampleLeases, drop_undone
from echo_hf.errors import RunError, ScoreError, unknown
from echo_hf.judging.failure_rates import NO_MEASURER, Labels, find_misfits, read_answers
from echo_hf.judging.labels import ANSWERS, AnsweredOutputs, tally_labels
from echo_hf.judging.rate import compute_random_key
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.scores.failure_rate import MIN_LABELS
from echo_hf.systems.base import Task
from echo_hf.systems.checks import Check, select_newest
from echo_hf.systems.evaluation_run import EvaluationRun, RunOrConfig
from echo_hf.systems.run_tables import read_table
from echo_hf.tables import LABELS, Row

APP = "label"
LABEL = "label"  # the action of an event
DEFAULT_WIDTH = 0.1
ORDER_SEED = 0
HINTS = {"Y": "yes", "N": "no", "U": "unclear", "Z": "take back", "Space": "full size"}


@dataclass(frozen=True, slots=True)
class OutputToLabel:
    task: Task
    system: str
    image: str  # its digest

    @property
    def key(self) -> tuple[str, str]:
        return self.task.sample_id, self.system

    @property
    def token(self) -> str:
        """A name for a page: it cannot be guessed without the image."""
        parts = "\x1f".join((*self.key, self.image))
        return hashlib.sha256(parts.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class LabelPage:
    """The view of one person."""

    person: str
    output: OutputToLabel | None  # null where nothing waits for this person
    done: int
    missing: int
    actions: Sequence[Event]

    @property
    def total(self) -> int:
        return self.done + self.missing

    @property
    def saved(self) -> datetime | None:
        return self.actions[-1].at if self.actions else None


@dataclass(frozen=True)
class LabelApp:
    """The outputs that people label by a check, until the interval of each system is narrow enough.

    Attributes:
        root: The folder of the run.
        check: The check.
        groups: The outputs that its judges answered, by split and system.
        outputs: Those whose image is there, in the order in which people are asked.
        half_width: Half of the interval that is asked for.
    """

    root: Path
    check: Check
    groups: tuple[AnsweredOutputs, ...]
    outputs: tuple[OutputToLabel, ...]
    half_width: float

    @property
    def log(self) -> EventLog:
        return EventLog(self.root / EVENTS_FILE)

    @property
    def leases(self) -> SampleLeases:
        return SampleLeases(self.log, APP)

    @cached_property
    def _by_token(self) -> Mapping[str, OutputToLabel]:
        return {output.token: output for output in self.outputs}

    def read_labels(self) -> Labels:
        """Read what people say of the images that are here now."""
        rows = read_table(self.root, LABELS)
        if rows is None:
            return {}
        present = {(*output.key, output.image) for output in self.outputs}
        own = [
            row
            for row in rows.filter(pc.equal(rows["check"], self.check.key)).to_pylist()
            if (row["sample_id"], row["system"], row["output_sha256"]) in present
        ]
        tally = tally_labels(pa.Table.from_pylist(own, LABELS.schema))
        return tally.get(self.check.key, {})

    def count_missing(self, labels: Labels) -> dict[tuple[str, str], int]:
        """Count the labels that are missing, by split and system."""
        return {
            (group.split, group.system): group.count_missing(labels, self.half_width)
            for group in self.groups
        }

    def build_page(self, person: str) -> LabelPage:
        labels = self.read_labels()
        missing = self.count_missing(labels)
        events = drop_undone(self.log.read_events(APP, person=person))
        own = [event for event in events if event.payload.get("check") == self.check.key]
        answered = {_read_image(event) for event in own}
        waiting = [
            output
            for output in self.outputs
            if output.key not in labels
            and missing[output.task.split, output.system]
            and (*output.key, output.image) not in answered
        ]
        # What somebody else looks at is asked about there.
        sample = self.leases.lend((output.task.sample_id for output in waiting), person)
        shown = next((output for output in waiting if output.task.sample_id == sample), None)
        done = sum(output.key in labels for output in self.outputs)
        return LabelPage(person, shown, done, sum(missing.values()), own)

    def act(self, person: str, action: Mapping[str, Any]) -> LabelPage:
        """Write down what a person answers or takes back, and return the page after it."""
        kind, token = action.get("kind"), action.get("subject")
        output = self._by_token.get(token) if isinstance(token, str) else None
        if kind == "undo":
            if actions := self.build_page(person).actions:
                self.log.undo(actions[-1].id, person)
        elif isinstance(kind, str) and kind in ANSWERS and output is not None:
            payload = {"check": self.check.key, "system": output.system, "image": output.image}
            sample = output.task.sample_id
            self.log.append(APP, sample, person, LABEL, {**payload, "answer": kind})
            self.leases.give_back(sample, person)
        self.write()
        return self.build_page(person)

    def write(self) -> WrittenRows:
        """Write the table anew from the log: a server that was killed may not have written all."""
        rows = dict[tuple[str, ...], Row]()
        events = self.log.read_events(APP)
        for event in drop_undone(events):
            row = {"sample_id": event.subject, "rater": event.person, **event.payload}
            row["output_sha256"] = row.pop("image")
            rows[_read_key(row)] = row
        taken_here = {
            _read_key({"sample_id": event.subject, "rater": event.person, **event.payload})
            for event in events
            if event.action == LABEL
        }
        return write_people_rows(
            self.root, LABELS, rows.values(), lambda row: _read_key(row) in taken_here
        )


def _read_key(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in LABELS.key)


def _read_image(event: Event) -> tuple[str, str, str]:
    return event.subject, event.payload["system"], event.payload["image"]


def open_labels(
    config: RunOrConfig,
    name: str,
    *,
    runs: Path | str | None = None,
    systems: Collection[str] = (),
    half_width: float = DEFAULT_WIDTH,
) -> LabelApp:
    """Find the outputs to label by a kept check: those that its judges answered.

    Raises:
        RunError: There is no such check or system, or no judge's answer counts.
        ScoreError: The width is not between 0 and 1.
    """
    if not 0 < half_width < 1:
        raise ScoreError(f"--width is {half_width!r}: expected half an interval, such as 0.1")
    run = EvaluationRun.from_config(config, runs)
    check = choose_check(run.read_checks(), name)
    tables, images = run.read_tables(), run.folder.images
    misfits = find_misfits(tables.applicability, check.key)
    drawn = (
        {}
        if tables.outputs is None
        else {(row["sample_id"], row["system"]): row["image"] for row in tables.outputs.to_pylist()}
    )
    known = {system for _, system in drawn}
    for system in systems:
        if system not in known:
            raise RunError(unknown("system", system, sorted(known)))
    groups, outputs = list[AnsweredOutputs](), list[OutputToLabel]()
    for split, tasks in tables.tasks.items():
        by_id = {task.sample_id: task for task in tasks}
        ratings = tables.select_split(tables.ratings, split)
        if ratings is None:
            continue
        rows = ratings.filter(pc.equal(ratings["rubric"], check.key))
        measurer, answers = read_answers(check, rows, misfits)
        # A lost image can be looked at by nobody.
        present = {
            output: answer
            for output, answer in answers.items()
            if (image := drawn.get(output)) and images.path(image).exists()
        }
        for system in sorted({system for _, system in present}):
            if measurer is None or (systems and system not in systems):
                continue
            own = {key: answer for key, answer in present.items() if key[1] == system}
            groups.append(AnsweredOutputs(split, system, own, measurer))
            outputs += [OutputToLabel(by_id[key[0]], system, drawn[key] or "") for key in own]
    if not groups:
        raise RunError(
            f"no output is there to label by check {check.key!r} ({NO_MEASURER}): run "
            "`echo-hf judge`"
        )
    outputs.sort(key=lambda output: compute_random_key(ORDER_SEED, check.key, *output.key))
    return LabelApp(run.folder.root, check, tuple(groups), tuple(outputs), half_width)


def choose_check(checks: Iterable[Check], name: str) -> Check:
    """Return the kept check of a name, or of a name and version."""
    newest = select_newest(checks).values()
    kept = {check.key: check for check in newest if check.status == "kept"}
    check = kept.get(name) or next((each for each in kept.values() if each.name == name), None)
    if check is None:
        raise RunError(unknown("kept check", name, [*kept]))
    return check


def render_label_page(
    app: LabelApp, view: LabelPage, address: ImageAddress, request_number: int = 0
) -> str:
    """Render the page of a person who labels; it escapes texts and names no system."""
    remaining = "Nothing is missing"
    if view.missing:
        answers = pluralize(view.missing, "answer")
        remaining = f"{answers} missing for ±{app.half_width:g} (at least {MIN_LABELS} a system)"
    ending = "Others have the rest, or you have answered all that is left. Thank you."
    if not view.missing:
        ending = f"There are answers enough for ±{app.half_width:g}. Thank you."
    return render_page(
        "label.jinja",
        view=view,
        check=app.check,
        address=address,
        answer=request_number,
        remaining=remaining,
        ending=ending,
        answers={"no": "No", "unclear": "Unclear", "yes": "Yes"},
        hints=HINTS,
    )


def label(
    app: LabelApp,
    *,
    server: ServerAddress,
    people: Iterable[str] = (),
    allow_anyone: bool = False,
    on_ready: Callable[[str], None],
) -> None:
    """Serve the page until it is stopped; each answer is in `labels.parquet` at once."""
    images = ServedImages(RunFolder(app.root).images)
    for output in app.outputs:
        images.admit((output.image, *(image.sha256 for image in output.task.inputs)))

    def open_page(person: str) -> str:
        return render_label_page(app, app.build_page(person), images.get_address)

    def handle_action(person: str, action: Mapping[str, Any], request_number: int) -> str:
        return render_label_page(app, app.act(person, action), images.get_address, request_number)

    scripts = ("board.js", "label.js")
    page = AppPage("Label images", scripts, "board.css", open_page, handle_action)
    app.write()
    serve(page, images, server=server, people=people, allow_anyone=allow_anyone, on_ready=on_ready)
