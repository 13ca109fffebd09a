"""The samples of the last build as a reviewer needs them: with the posts around each."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from echo_hf.config_check import first_error
from echo_hf.curate.changes import Changes
from echo_hf.curate.decision import Decided, Decision, cleaned_in, pictures_of
from echo_hf.curate.decision_file import FILE, read_decisions
from echo_hf.curate.privacy import CLEANED_SAMPLES, in_clean
from echo_hf.curate.reviewed import reviewed_rows
from echo_hf.errors import ReviewError, RunError, unknown
from echo_hf.pipeline import Pipeline
from echo_hf.swap import complete

BEFORE = "privacy"  # the stage whose samples are reviewed
IN_CONTEXT = "safety"  # the last one whose samples have their posts
TOLD_BY = ("roles", "screenshots", "feedback", "safety", "privacy")
DECISIONS = get_args(Decided)
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A sample for a reviewer.

    Attributes:
        row: Its row, as the model and the rules made it.
        context: The posts around it, depth first.
        notices: What the stages noticed about it: reason and detail.
        taken: Digests of pictures that other samples have.
    """

    row: Row
    context: Sequence[Row] = ()
    notices: Sequence[tuple[str, str | None]] = ()
    taken: frozenset[str] = field(default=frozenset(), repr=False)


def samples_of(pipeline: Pipeline) -> pa.Table:
    """The samples of the last build, before anything is drawn from them.

    Args:
        pipeline: The run.

    Returns:
        Rows of `CLEANED_SAMPLES`; builds from before images were cleaned lack its last column.

    Raises:
        RunError: Nothing was built yet.
    """
    file = complete(pipeline.folder.stage(BEFORE)) / "kept.parquet"
    if not file.exists():
        raise RunError(
            f"{str(pipeline.folder.root)!r} has no samples to review: run `echo-hf build` first"
        )
    names = pq.read_schema(file).names
    return pq.read_table(file, columns=[one for one in CLEANED_SAMPLES.columns if one in names])


def read_cases(pipeline: Pipeline) -> dict[str, Case]:
    """The samples of the last build with all that a reviewer is shown.

    Args:
        pipeline: The run.

    Returns:
        The samples by id, in the order of the table.

    Raises:
        RunError: Nothing was built yet.
    """
    table = samples_of(pipeline)
    contexts = {row["id"]: row["context"] for row in _read(pipeline, IN_CONTEXT, "id", "context")}
    notices: dict[str, list[tuple[str, str | None]]] = {}
    for name, notice in _notices(pipeline):
        notices.setdefault(name, []).append(notice)
    decisions = read_decisions(pipeline.folder.root / FILE)
    owners = owners_of(reviewed_rows(table, decisions).table.to_pylist())
    return {
        row["id"]: Case(
            row,
            context := in_clean(contexts.get(row["id"], []), cleaned_in(row)),
            notices.get(row["id"], ()),
            frozenset(_taken(row, context, owners)),
        )
        for row in table.to_pylist()
    }


def owners_of(rows: Sequence[Row]) -> dict[str, set[str]]:
    """Which samples have a picture as input or output.

    Args:
        rows: Rows of samples.

    Returns:
        Ids of samples by the digest of the picture.

    Example:
        >>> rows = [{"id": "a", "input_images": ["x"], "output_images": [], "quality": "Benchmark"}]
        >>> rows += [{"id": "b", "input_images": ["x"], "output_images": ["y"], "quality": "Trash"}]
        >>> owners_of(rows)
        {'x': {'a'}}
    """
    owners: dict[str, set[str]] = {}
    for row in rows:
        # Of Trash every picture of its posts is listed, whosoever it is.
        if row["quality"] != "Trash":
            for digest in (*(row["input_images"] or ()), *(row["output_images"] or ())):
                owners.setdefault(digest, set()).add(row["id"])
    return owners


def _taken(row: Row, context: Sequence[Row], owners: Mapping[str, set[str]]) -> Iterator[str]:
    around = {one["sha256"] for post in context for one in post["pictures"] or ()}
    for digest in around.union(pictures_of(row)):
        if owners.get(digest, set()) - {row["id"]}:
            yield digest


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
    """A decision about a sample as it is.

    Args:
        row: Its row, as the model and the rules made it.
        decided: keep, remove, flag, edit or withdraw.
        note: The reviewer's words.
        reviewer: Who, by a pseudonym.
        changes: What is changed of it.
        event: Number of the last event about it in the log of the app.
        at: When; null for now.

    Returns:
        The decision; what a change brings in counts as seen.

    Raises:
        ReviewError: There is no such decision, or no such note or pseudonym can be written down.
    """
    if decided not in DECISIONS:
        raise ReviewError(unknown("decision", decided, DECISIONS))
    when = at or datetime.datetime.now(datetime.UTC)
    values = {
        "id": row["id"],
        "sample_digest": row["sample_digest"],
        "decision": decided,
        "reasons": tuple(row["review"] or ()),
        "pictures": pictures_of(row),
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


def _notices(pipeline: Pipeline) -> Iterator[tuple[str, tuple[str, str | None]]]:
    for stage in TOLD_BY:
        for row in _read(pipeline, stage, "_parent", "_reason", "_detail", part="notices"):
            for name in row["_parent"]:
                yield name, (row["_reason"], row["_detail"])


def _read(pipeline: Pipeline, stage: str, *columns: str, part: str = "kept") -> list[Row]:
    file = complete(pipeline.folder.stage(stage)) / f"{part}.parquet"
    return pq.read_table(file, columns=list(columns)).to_pylist() if file.exists() else []
