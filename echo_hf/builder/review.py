"""List what people have to review before a benchmark is published, and decide about it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError

from echo_hf._infra.atomic import find_complete
from echo_hf._infra.text import MARK, pluralize
from echo_hf.builder.build import BuildRun, open_run
from echo_hf.config.checks import first_error
from echo_hf.config.loading import Config
from echo_hf.curate.decisions import (
    DECISIONS_FILE,
    Changes,
    Decision,
    DecisionKind,
    ReviewDecisions,
    append_decisions,
    cleaned_images,
    read_decisions,
    sample_images,
)
from echo_hf.curate.edits import SampleEdit, apply_changes, apply_decisions, check_edit
from echo_hf.curate.privacy import CLEANED_SAMPLES, replace_with_cleaned
from echo_hf.curate.splits import SampleReject, Splits
from echo_hf.errors import ReviewError, RunError, unknown
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.stage_order import load_stage_class
from echo_hf.reasons import Fact, Status
from echo_hf.samples.boxes import REPAIRED_NOTICES, Convention
from echo_hf.samples.extract import TRASH
from echo_hf.samples.held_boxes import StoredBoxes
from echo_hf.samples.sample import Doubt
from echo_hf.samples.spans import squeeze
from echo_hf.tables import SAMPLES, Row

DECISIONS = get_args(DecisionKind)
SHORT_PROMPT, LONG_PROMPT = 3, 300  # words
MANY_INPUTS = 5
UNSPACED = re.compile("[\u3040-\u9fff\uac00-\ud7af]")
REASON_MEANINGS = {
    "may_show_minor": "a real person in an image may be under 18",
    "personal_data": "the prompt holds personal data, such as an address or an account's name",
    "image_metadata": "an image may say where it was taken, or by whom, and cannot be cleaned",
    "removed_earlier": "an earlier version of it was removed",
    "edited_earlier": "an earlier version of it was changed; that change is not in it",
    "edited_unscreened": "no safety model has seen what was brought in: is it harmless?",
    "second_look": "somebody left it to you: read their note",
}


@dataclass(frozen=True)
class ReviewCase:
    row: Row
    context: Sequence[Row] = ()
    notices: Sequence[tuple[str, str | None]] = ()
    taken: frozenset[str] = field(default=frozenset(), repr=False)
    added: Sequence[str] = ()  # columns of stages of other packages


def read_built_samples(run: BuildRun) -> pa.Table:
    """Read the samples of the last build, before the draw."""
    file = find_complete(run.folder.stage_folder(_list_reviewed(run)[-1])) / "kept.parquet"
    if not file.exists():
        raise RunError(
            f"{str(run.folder.root)!r} has no samples to review: run `echo-hf build` first"
        )
    names = pq.read_schema(file).names
    known = (*CLEANED_SAMPLES.columns, *run.added_columns)
    table = pq.read_table(file, columns=[name for name in known if name in names])
    # A table of an earlier version lacks columns.
    return pa.concat_tables([SAMPLES.make_empty(), table], promote_options="default")


def _list_reviewed(run: BuildRun) -> list[str]:
    """Return the stages of samples before the draw; those of the last one are reviewed."""
    before_draw = run.stages[: run.stages.index(Splits.name)]
    return [name for name in before_draw if load_stage_class(name).inputs.key == SAMPLES.key]


def read_cases(run: BuildRun) -> dict[str, ReviewCase]:
    table = read_built_samples(run)
    stages = _list_reviewed(run)
    tables = {name: load_stage_class(name).outputs.columns for name in stages}
    with_posts = [name for name, columns in tables.items() if "context" in columns][-1]
    contexts = {row["id"]: row["context"] for row in _read(run, with_posts, "id", "context")}
    notices: dict[str, list[tuple[str, str | None]]] = {}
    for stage in stages:
        for row in _read(run, stage, "_parent", "_reason", "_detail", part="notices"):
            for name in row["_parent"]:
                notices.setdefault(name, []).append((row["_reason"], row["_detail"]))
    decisions = read_decisions(run.folder.root / DECISIONS_FILE)
    owners: dict[str, set[str]] = {}
    for row in apply_decisions(table, decisions).table.to_pylist():
        # Trash lists all images of its posts, also those of other samples.
        if row["quality"] != TRASH:
            for digest in (*(row["input_images"] or ()), *(row["output_images"] or ())):
                owners.setdefault(digest, set()).add(row["id"])
    cases = {}
    for row in table.to_pylist():
        context = replace_with_cleaned(contexts.get(row["id"], []), cleaned_images(row))
        context_digests = {image["sha256"] for post in context for image in post["pictures"] or ()}
        digests = context_digests.union(sample_images(row))
        taken = frozenset(digest for digest in digests if owners.get(digest, set()) - {row["id"]})
        cases[row["id"]] = ReviewCase(
            row, context, notices.get(row["id"], ()), taken, tuple(run.added_columns)
        )
    return cases


def build_decision(
    row: Row,
    kind: str,
    *,
    note: str | None = None,
    reviewer: str | None = None,
    changes: Changes | None = None,
    event: int | None = None,
    at: datetime.datetime | None = None,
) -> Decision:
    if kind not in DECISIONS:
        raise ReviewError(unknown("decision", kind, DECISIONS))
    decided_at = at or datetime.datetime.now(datetime.UTC)
    edited_row = apply_changes(row, changes)[0] if changes else row
    values = {
        "id": row["id"],
        "sample_digest": row["sample_digest"],
        "decision": kind,
        "reasons": tuple(row["review"] or ()),
        "doubts": tuple(dict.fromkeys([*(row["doubts"] or ()), *(edited_row["doubts"] or ())])),
        "pictures": sample_images(row),
        "note": note or None,
        "at": decided_at.isoformat(timespec="seconds"),
        "reviewer": reviewer,
        "changes": changes,
        "event": event,
    }
    try:
        return Decision.model_validate(values)
    except ValidationError as error:
        raise ReviewError(first_error(error, f"sample {row['id']!r}", Decision)) from None


def build_boxes_edit(row: Row, convention: Convention) -> SampleEdit:
    """Return the edit that cuts a screenshot by its stored boxes, as `screenshots` would."""
    stored_boxes = StoredBoxes.from_sample(row)
    if stored_boxes is None:
        raise ReviewError(f"sample {row['id']!r} has no boxes that wait for a convention")
    boxes = stored_boxes.read_as(convention)
    if not boxes.usable:
        problems = (finding for finding in boxes.findings if finding[0] not in REPAIRED_NOTICES)
        notice, detail = next(problems)
        raise ReviewError(f"sample {row['id']!r}: {detail}, read as {convention}: {notice.meaning}")
    prompt = (stored_boxes.prompt or "").strip()
    is_new = not MARK.search(prompt) and squeeze(prompt) not in ("", squeeze(row["prompt"]))
    # Inputs in a screenshot replace those that were posted beside it.
    roles = dict.fromkeys(row["input_images"] or (), "neither") if boxes.inputs else {}
    crops = [("input", box) for box in boxes.inputs] + [("output", box) for box in boxes.outputs]
    return SampleEdit(prompt if is_new else None, row["quality"], roles, crops)


def build_box_changes(
    case: ReviewCase, convention: Convention, images: ImageStore
) -> Changes | None:
    """Return the changes that follow from reading stored boxes so; store the crops."""
    edit = build_boxes_edit(case.row, convention)
    return check_edit(case.row, case.context, edit, images, case.taken)


def _read(run: BuildRun, stage: str, *columns: str, part: str = "kept") -> list[Row]:
    file = find_complete(run.folder.stage_folder(stage)) / f"{part}.parquet"
    return pq.read_table(file, columns=list(columns)).to_pylist() if file.exists() else []


def select_doubts(row: Row) -> tuple[str, ...]:
    """Return the doubts that keep a sample from being a candidate of the benchmark."""
    return tuple(row["doubts"] or ()) if row["quality"] == "Benchmark" else ()


def review_order(row: Row) -> tuple[bool, bool]:
    """Return a sort key: stored boxes first, since one decision is about many samples."""
    doubts = select_doubts(row)
    return Doubt.ASSUMED_BOXES not in doubts, not doubts


@dataclass(frozen=True)
class OpenReview:
    id: str
    reasons: tuple[str, ...]
    prompt: str
    images: tuple[Path, ...]


@dataclass(frozen=True)
class OpenReviews:
    open: tuple[OpenReview, ...]
    file: Path
    cut: tuple[int, ...]


def open_reviews(config: Config | Path | str, *, runs: Path | str | None = None) -> OpenReviews:
    with open_run(config, runs, writes=False) as run:
        root = run.folder.root
        splits = Splits.from_config(run.config, run.folder.images).in_run(root)
        table = read_built_samples(run)
        samples = splits(table).to_pylist()
        kept = (sample for sample in samples if sample["_status"] == Status.KEPT)
        waiting = [sample for sample in kept if sample["review"] or select_doubts(sample)]
        unclean_rows = [row for row in samples if row["_reason"] == SampleReject.NOT_CLEANED]
        unclean = {row["_parent"][0] for row in unclean_rows}
        rows = table.filter(pc.is_in(table["id"], pa.array(unclean, pa.string()))).to_pylist()
        waiting += [{**row, "review": splits.decisions.open_reasons(row)} for row in rows]
        path = run.folder.images.path
        reviews = []
        for row in sorted(waiting, key=review_order):
            images = tuple(map(path, sample_images(row)))
            reasons = (*select_doubts(row), *row["review"])
            reviews.append(OpenReview(row["id"], reasons, row["prompt"], images))
        return OpenReviews(tuple(reviews), root / DECISIONS_FILE, splits.decisions.cut)


def decide(
    config: Config | Path | str,
    *,
    keep: Iterable[str] = (),
    remove: Iterable[str] = (),
    flag: Iterable[str] = (),
    withdraw: Iterable[str] = (),
    edits: Mapping[str, SampleEdit] | None = None,
    boxes: str | None = None,
    note: str | None = None,
    reviewer: str | None = None,
    runs: Path | str | None = None,
) -> list[Decision]:
    edits, kind_of_sample = dict(edits or {}), dict[str, str]()
    names_of_kind = {"keep": keep, "remove": remove, "flag": flag, "withdraw": withdraw}
    for kind, names in names_of_kind.items():
        for name in names:
            if (first := kind_of_sample.setdefault(name, kind)) != kind:
                raise ReviewError(f"sample {name!r} is given to {first} and to {kind}: choose one")
    kind_of_sample = {**dict.fromkeys(edits, "edit"), **kind_of_sample}
    with open_run(config, runs, writes=False) as run:
        cases, file = read_cases(run), run.folder.root / DECISIONS_FILE
        decisions, new = read_decisions(file), []
        if unknown_names := [name for name in kind_of_sample if name not in cases]:
            raise ReviewError(
                f"no sample {unknown_names[0]!r} in the last build: `echo-hf review` lists what is "
                "open"
            )
        if boxes is not None:
            new += _decide_boxes(run, cases, decisions, boxes, note, reviewer)
        for name, kind in kind_of_sample.items():
            case, changes = cases[name], None
            if kind != "withdraw" and name in edits:
                images = run.folder.images
                changes = check_edit(case.row, case.context, edits[name], images, case.taken)
            elif kind != "withdraw" and (earlier := decisions.find_edit(case.row)):
                changes = earlier.edits
            row = case.row
            new.append(build_decision(row, kind, note=note, reviewer=reviewer, changes=changes))
        append_decisions(file, new)
    return new


def can_reread_boxes(row: Row, last: Decision | None, reviewer: str | None) -> bool:
    """Return whether a sample is undecided, or changed by the same person only."""
    if last is None or last.decision == "withdraw" or not last.is_about(row):
        return True
    return last.decision == "edit" and last.reviewer == reviewer


def _decide_boxes(
    run: BuildRun,
    cases: Mapping[str, ReviewCase],
    decisions: ReviewDecisions,
    boxes: str,
    note: str | None,
    reviewer: str | None,
) -> list[Decision]:
    """Return an edit of each sample whose stored boxes fit the convention and nobody decided on."""
    conventions = [str(convention) for convention in Convention]
    if boxes not in conventions:
        raise ReviewError(unknown("convention", boxes, conventions))
    uncut_cases = [case for case in cases.values() if StoredBoxes.from_sample(case.row)]
    if not uncut_cases:
        raise ReviewError("no boxes wait for a convention: there is nothing to read")
    new = []
    for case in uncut_cases:
        if not can_reread_boxes(case.row, decisions.by_id.get(case.row["id"]), reviewer):
            continue
        with suppress(ReviewError):  # the sample stays open
            changes = build_box_changes(case, Convention(boxes), run.folder.images)
            new.append(
                build_decision(case.row, "edit", note=note, reviewer=reviewer, changes=changes)
            )
    if not new:
        raise ReviewError(
            f"of {pluralize(len(uncut_cases), 'sample')} with boxes that wait, none can be cut "
            f"as {boxes}: somebody decided on it, or its boxes cannot be right; `echo-hf review "
            "--app` shows them"
        )
    return new


class Fitness(StrEnum):
    """The use that a sample is fit for, in the order in which people should look."""

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
        """The sort key: first what settles many samples, then by verdict, doubts, and length."""
        order = list(Fitness).index(self.verdict)
        return not self.assumed, order, not self.doubted, -len(self.look_at)


def triage(
    row: Row, notices: Sequence[tuple[str, str | None]] = (), duplicate_of: str | None = None
) -> Triage:
    discard_reason = f"equal to sample {duplicate_of}" if duplicate_of else None
    if row["quality"] not in ("Benchmark", "Analysis"):
        discard_reason = "its quality is Trash: no clear task, off topic, or another model's"
    elif row["has_nsfw"]:
        categories = ", ".join((row["safety"] or {}).get("categories") or ())
        discard_reason = f"flagged by the safety model: {categories or 'no label'}"
    open_reasons = [REASON_MEANINGS.get(reason, reason) for reason in row["review"] or ()]
    if discard_reason:
        return Triage(Fitness.DISCARD, (discard_reason, *open_reasons))
    by_value = {str(notice): notice for notice in Fact.CHANGES_TASK.reasons}
    noticed = dict.fromkeys(reason for reason, _ in notices if reason in by_value)
    doubts = select_doubts(row)
    # `_list_checks` has a line for an uncut screenshot.
    texts = [Doubt(doubt).meaning for doubt in doubts if doubt != Doubt.SCREENSHOT_WHOLE]
    meanings = [by_value[text].meaning for text in noticed]
    look_at = (*texts, *open_reasons, *_list_checks(row), *meanings)
    if row["quality"] != "Benchmark" and not open_reasons:
        return Triage(Fitness.DISCARD, ("for analysis only: not in the benchmark", *look_at))
    verdict = Fitness.MANUAL if look_at else Fitness.BENCHMARK
    assumed = not {Doubt.ASSUMED_BOXES, Doubt.ROLES_ASSUMED}.isdisjoint(doubts)
    return Triage(verdict, look_at, bool(doubts), assumed)


def _list_checks(row: Row) -> list[str]:
    prompt, safety = row["prompt"] or "", row["safety"]
    words, inputs = len(prompt.split()), len(row["input_images"] or ())
    hazards = ", ".join(safety.get("categories") or ()) if safety else ""
    is_cut = row["is_screenshot"]
    # A script without spaces has no words to count.
    is_short = words < SHORT_PROMPT and not UNSPACED.search(prompt)
    checks = (
        (row["screenshot"] and not is_cut, "its screenshot is not cut: draw the boxes"),
        (row["screenshot"] and is_cut, "it was cut from a screenshot: check the boxes"),
        (safety is None, "no safety model has seen it"),
        (safety and safety["flagged"], f"hazards named: {hazards or 'no label'}"),
        (not row["output_images"], "no output: nothing shows what the target made of it"),
        (row["prompt_modified"], "the prompt has words that nobody wrote in the thread"),
        (row["prompt_fill_blank"], "a template's blanks were filled in: compare with the output"),
        (is_short, f"a prompt of {pluralize(words, 'word')}: is it the whole task?"),
        (words > LONG_PROMPT, f"a prompt of {words} words: is all of it the task?"),
        (inputs >= MANY_INPUTS, f"{inputs} inputs: is each of them given to the model?"),
    )
    return [text for is_so, text in checks if is_so]
