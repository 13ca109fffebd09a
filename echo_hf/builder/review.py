"""What a person has to look at before a benchmark is published, and what was decided about it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError

from echo_hf._infra.atomic import complete
from echo_hf._infra.text import MARK, counted
from echo_hf.builder.build import BuildRun, opened
from echo_hf.config.checks import first_error
from echo_hf.config.loading import Config
from echo_hf.curate.decisions import (
    FILE,
    Changes,
    Decided,
    Decision,
    Decisions,
    append_decisions,
    cleaned_in,
    images_of,
    read_decisions,
)
from echo_hf.curate.edits import Edit, checked_changes, edited_sample, reviewed_rows
from echo_hf.curate.privacy import CLEANED_SAMPLES, in_clean
from echo_hf.curate.splits import Splits
from echo_hf.errors import ReviewError, RunError, unknown
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Doubt, Notice, Reject, Status
from echo_hf.samples.boxes import MENDED, Convention
from echo_hf.samples.held_boxes import HeldBoxes
from echo_hf.samples.spans import squeezed
from echo_hf.tables import SAMPLES

BEFORE = "privacy"  # the stage whose samples are reviewed
IN_CONTEXT = "safety"  # the last one whose samples have their posts
TOLD_BY = ("roles", "screenshots", "feedback", "safety", "privacy")
DECISIONS = get_args(Decided)
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    row: Row
    context: Sequence[Row] = ()
    notices: Sequence[tuple[str, str | None]] = ()
    taken: frozenset[str] = field(default=frozenset(), repr=False)


def samples_of(run: BuildRun) -> pa.Table:
    """The samples of the last build, before anything is drawn from them."""
    file = complete(run.folder.stage(BEFORE)) / "kept.parquet"
    if not file.exists():
        raise RunError(
            f"{str(run.folder.root)!r} has no samples to review: run `echo-hf build` first"
        )
    names = pq.read_schema(file).names
    table = pq.read_table(file, columns=[one for one in CLEANED_SAMPLES.columns if one in names])
    # One of an earlier version lacks columns.
    return pa.concat_tables([SAMPLES.empty(), table], promote_options="default")


def read_cases(run: BuildRun) -> dict[str, Case]:
    table = samples_of(run)
    contexts = {row["id"]: row["context"] for row in _read(run, IN_CONTEXT, "id", "context")}
    notices: dict[str, list[tuple[str, str | None]]] = {}
    for stage in TOLD_BY:
        for row in _read(run, stage, "_parent", "_reason", "_detail", part="notices"):
            for name in row["_parent"]:
                notices.setdefault(name, []).append((row["_reason"], row["_detail"]))
    decisions = read_decisions(run.folder.root / FILE)
    owners: dict[str, set[str]] = {}
    for row in reviewed_rows(table, decisions).table.to_pylist():
        # Of Trash every image of its posts is listed, whosoever it is.
        if row["quality"] != "Trash":
            for digest in (*(row["input_images"] or ()), *(row["output_images"] or ())):
                owners.setdefault(digest, set()).add(row["id"])
    cases = {}
    for row in table.to_pylist():
        context = in_clean(contexts.get(row["id"], []), cleaned_in(row))
        around = {one["sha256"] for post in context for one in post["pictures"] or ()}
        shown = around.union(images_of(row))
        taken = frozenset(one for one in shown if owners.get(one, set()) - {row["id"]})
        cases[row["id"]] = Case(row, context, notices.get(row["id"], ()), taken)
    return cases


def made_decision(
    row: Row,
    decided: str,
    *,
    note: str | None = None,
    reviewer: str | None = None,
    changes: Changes | None = None,
    event: int | None = None,
    at: datetime.datetime | None = None,
) -> Decision:
    if decided not in DECISIONS:
        raise ReviewError(unknown("decision", decided, DECISIONS))
    when = at or datetime.datetime.now(datetime.UTC)
    after = edited_sample(row, changes)[0] if changes else row
    values = {
        "id": row["id"],
        "sample_digest": row["sample_digest"],
        "decision": decided,
        "reasons": tuple(row["review"] or ()),
        "doubts": tuple(dict.fromkeys([*(row["doubts"] or ()), *(after["doubts"] or ())])),
        "pictures": images_of(row),
        "note": note or None,
        "at": when.isoformat(timespec="seconds"),
        "reviewer": reviewer,
        "changes": changes,
        "event": event,
    }
    try:
        return Decision.model_validate(values)
    except ValidationError as error:
        raise ReviewError(first_error(error, f"sample {row['id']!r}", Decision)) from None


def boxes_edit(row: Row, convention: Convention) -> Edit:
    """The edit that cuts a sample's screenshot by its held boxes, as `screenshots` would have."""
    boxes_held = HeldBoxes.of(row)
    if boxes_held is None:
        raise ReviewError(f"sample {row['id']!r} has no boxes that wait for a convention")
    boxes = boxes_held.read_as(convention)
    if not boxes.usable:
        notice, told = next(one for one in boxes.findings if one[0] not in MENDED)
        raise ReviewError(f"sample {row['id']!r}: {told}, read as {convention}: {notice.meaning}")
    read = (boxes_held.prompt or "").strip()
    is_new = not MARK.search(read) and squeezed(read) not in ("", squeezed(row["prompt"]))
    # Inputs in a screenshot take the place of those that were posted beside it.
    roles = dict.fromkeys(row["input_images"] or (), "neither") if boxes.inputs else {}
    crops = [("input", box) for box in boxes.inputs] + [("output", box) for box in boxes.outputs]
    return Edit(read if is_new else None, row["quality"], roles, crops)


def boxes_changes(case: Case, convention: Convention, images: ImageStore) -> Changes | None:
    """What follows from reading the held boxes of a sample so; their crops are kept."""
    edit = boxes_edit(case.row, convention)
    return checked_changes(case.row, case.context, edit, images, case.taken)


def _read(run: BuildRun, stage: str, *columns: str, part: str = "kept") -> list[Row]:
    file = complete(run.folder.stage(stage)) / f"{part}.parquet"
    return pq.read_table(file, columns=list(columns)).to_pylist() if file.exists() else []


def doubts_in(row: Row) -> tuple[str, ...]:
    """The doubts that keep a sample from being a candidate of the benchmark."""
    return tuple(row["doubts"] or ()) if row["quality"] == "Benchmark" else ()


def turn_of(row: Row) -> tuple[bool, bool]:
    """Boxes that wait for a convention come first: one decision is about many samples."""
    doubts = doubts_in(row)
    return Doubt.ASSUMED_BOXES not in doubts, not doubts


@dataclass(frozen=True)
class OpenReview:
    id: str
    reasons: tuple[str, ...]
    prompt: str
    images: tuple[Path, ...]


@dataclass(frozen=True)
class Reviews:
    open: tuple[OpenReview, ...]
    file: Path
    cut: tuple[int, ...]


def open_reviews(config: Config | Path | str, *, runs: Path | str | None = None) -> Reviews:
    with opened(config, runs, writes=False) as run:
        root = run.folder.root
        placed = Splits.from_config(run.config, run.folder.images).in_run(root)
        table = samples_of(run)
        samples = placed(table).to_pylist()
        kept = (one for one in samples if one["_status"] == Status.KEPT)
        waiting = [one for one in kept if one["review"] or doubts_in(one)]
        unclean = {one["_parent"][0] for one in samples if one["_reason"] == Reject.NOT_CLEANED}
        rows = table.filter(pc.is_in(table["id"], pa.array(unclean, pa.string()))).to_pylist()
        waiting += [{**row, "review": placed.decisions.open_reasons(row)} for row in rows]
        path = run.folder.images.path
        found = []
        for one in sorted(waiting, key=turn_of):
            images = tuple(map(path, images_of(one)))
            why = (*doubts_in(one), *one["review"])
            found.append(OpenReview(one["id"], why, one["prompt"], images))
        return Reviews(tuple(found), root / FILE, placed.decisions.cut)


def decide(
    config: Config | Path | str,
    *,
    keep: Iterable[str] = (),
    remove: Iterable[str] = (),
    flag: Iterable[str] = (),
    withdraw: Iterable[str] = (),
    edits: Mapping[str, Edit] | None = None,
    boxes: str | None = None,
    note: str | None = None,
    reviewer: str | None = None,
    runs: Path | str | None = None,
) -> list[Decision]:
    edits, given = dict(edits or {}), dict[str, str]()
    asked = {"keep": keep, "remove": remove, "flag": flag, "withdraw": withdraw}
    for what, names in asked.items():
        for name in names:
            if (first := given.setdefault(name, what)) != what:
                raise ReviewError(f"sample {name!r} is given to {first} and to {what}: choose one")
    given = {**dict.fromkeys(edits, "edit"), **given}
    with opened(config, runs, writes=False) as run:
        cases, file = read_cases(run), run.folder.root / FILE
        before, made = read_decisions(file), []
        if unknown_names := [name for name in given if name not in cases]:
            raise ReviewError(
                f"no sample {unknown_names[0]!r} in the last build: `echo-hf review` lists what is "
                "open"
            )
        if boxes is not None:
            made += _boxes_decided(run, cases, before, boxes, note, reviewer)
        for name, decided in given.items():
            case, changes = cases[name], None
            if decided != "withdraw" and name in edits:
                images = run.folder.images
                changes = checked_changes(case.row, case.context, edits[name], images, case.taken)
            elif decided != "withdraw" and (earlier := before.changes(case.row)):
                changes = earlier.changed
            row = case.row
            made.append(made_decision(row, decided, note=note, reviewer=reviewer, changes=changes))
        append_decisions(file, made)
    return made


def may_read_boxes(row: Row, last: Decision | None, reviewer: str | None) -> bool:
    """Whether a sample is undecided, or changed by nobody but the same person."""
    if last is None or last.decision == "withdraw" or not last.is_about(row):
        return True
    return last.decision == "edit" and last.reviewer == reviewer


def _boxes_decided(
    run: BuildRun,
    cases: Mapping[str, Case],
    before: Decisions,
    boxes: str,
    note: str | None,
    reviewer: str | None,
) -> list[Decision]:
    """An edit of each sample whose held boxes can be read so, and that nobody else decided on."""
    if boxes not in [str(one) for one in Convention]:
        raise ReviewError(unknown("convention", boxes, [str(one) for one in Convention]))
    waiting = [case for case in cases.values() if HeldBoxes.of(case.row)]
    if not waiting:
        raise ReviewError("no boxes wait for a convention: there is nothing to read")
    made = []
    for case in waiting:
        if not may_read_boxes(case.row, before.by_id.get(case.row["id"]), reviewer):
            continue
        with suppress(ReviewError):  # it stays open, and doubtful
            changes = boxes_changes(case, Convention(boxes), run.folder.images)
            made.append(
                made_decision(case.row, "edit", note=note, reviewer=reviewer, changes=changes)
            )
    if not made:
        raise ReviewError(
            f"of {counted(len(waiting), 'sample')} with boxes that wait, none can be cut as "
            f"{boxes}: somebody decided on it, or its boxes cannot be right; `echo-hf review "
            "--app` shows them"
        )
    return made


SHORT_PROMPT, LONG_PROMPT = 3, 300  # words
MANY_INPUTS = 5
UNSPACED = re.compile("[\u3040-\u9fff\uac00-\ud7af]")
# What was noticed on the way and changes what the task is.
DOUBTFUL = frozenset(
    {
        Notice.TWO_ROLES,
        Notice.IMAGE_USED_TWICE,
        Notice.IMAGE_NOT_THERE,
        Notice.BLANK_LEFT,
        Notice.TEMPLATE_LEFT,
        Notice.NOT_COMPLETED,
        Notice.CLAMPED_BOX,
        Notice.DUPLICATE_BOX,
        Notice.REPLACED_INPUT,
        Notice.UNKNOWN_HAZARD,
        Notice.PARTS_DISAGREE,
        Notice.EDIT_NOT_APPLIED,
    }
)
PERSONAL = {
    "may_show_minor": "a real person in an image may be under 18",
    "personal_data": "the prompt holds personal data, such as an address or an account's name",
    "image_metadata": "an image may say where it was taken, or by whom, and cannot be cleaned",
    "removed_earlier": "an earlier version of it was removed",
    "edited_earlier": "an earlier version of it was changed; that change is not in it",
    "edited_unscreened": "no safety model has seen what was brought in: is it harmless?",
    "second_look": "somebody left it to you: read their note",
}


class Fitness(StrEnum):
    """What a sample is fit for, in the order in which people should look."""

    MANUAL = "Manual review"
    BENCHMARK = "Benchmark"
    DISCARD = "Discard"


@dataclass(frozen=True)
class Triage:
    verdict: Fitness
    look_at: tuple[str, ...] = ()
    doubted: bool = False
    assumed: bool = False

    @property
    def turn(self) -> tuple[bool, int, bool, int]:
        """Whose turn it is: first what settles many, then by verdict, doubts, how much to see."""
        order = list(Fitness).index(self.verdict)
        return not self.assumed, order, not self.doubted, -len(self.look_at)


def triage(
    row: Row, notices: Sequence[tuple[str, str | None]] = (), duplicate_of: str | None = None
) -> Triage:
    lost = f"equal to sample {duplicate_of}" if duplicate_of else None
    if row["quality"] not in ("Benchmark", "Analysis"):
        lost = "its quality is Trash: no clear task, off topic, or another model's"
    elif row["has_nsfw"]:
        categories = ", ".join((row["safety"] or {}).get("categories") or ())
        lost = f"flagged by the safety model: {categories or 'no label'}"
    open_reasons = [PERSONAL.get(one, one) for one in row["review"] or ()]
    if lost:
        return Triage(Fitness.DISCARD, (lost, *open_reasons))
    known = {str(one): one for one in DOUBTFUL}
    noticed = dict.fromkeys(reason for reason, _ in notices if reason in known)
    doubts = doubts_in(row)
    # What is to be done about a screenshot is told with it.
    named = [Doubt(one).meaning for one in doubts if one != Doubt.SCREENSHOT_WHOLE]
    look_at = (*named, *open_reasons, *_to_see(row), *(known[one].meaning for one in noticed))
    if row["quality"] != "Benchmark" and not open_reasons:
        return Triage(Fitness.DISCARD, ("for analysis only: not in the benchmark", *look_at))
    verdict = Fitness.MANUAL if look_at else Fitness.BENCHMARK
    assumed = not {Doubt.ASSUMED_BOXES, Doubt.ROLES_ASSUMED}.isdisjoint(doubts)
    return Triage(verdict, look_at, bool(doubts), assumed)


def _to_see(row: Row) -> list[str]:
    prompt, safety = row["prompt"] or "", row["safety"]
    words, inputs = len(prompt.split()), len(row["input_images"] or ())
    hazards = ", ".join(safety.get("categories") or ()) if safety else ""
    is_cut = row["is_screenshot"]
    # Words of a script that writes no spaces cannot be counted so.
    is_short = words < SHORT_PROMPT and not UNSPACED.search(prompt)
    checks = (
        (row["screenshot"] and not is_cut, "its screenshot is not cut: draw the boxes"),
        (row["screenshot"] and is_cut, "it was cut from a screenshot: check the boxes"),
        (safety is None, "no safety model has seen it"),
        (safety and safety["flagged"], f"hazards named: {hazards or 'no label'}"),
        (not row["output_images"], "no output: nothing shows what the target made of it"),
        (row["prompt_modified"], "the prompt has words that nobody wrote in the thread"),
        (row["prompt_fill_blank"], "a template's blanks were filled in: compare with the output"),
        (is_short, f"a prompt of {counted(words, 'word')}: is it the whole task?"),
        (words > LONG_PROMPT, f"a prompt of {words} words: is all of it the task?"),
        (inputs >= MANY_INPUTS, f"{inputs} inputs: is each of them given to the model?"),
    )
    return [said for is_so, said in checks if is_so]
