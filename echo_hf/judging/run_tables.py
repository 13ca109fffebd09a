"""What is scored: the tasks of a benchmark, and the tables of a run about them."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import Field, ValidationError

from echo_hf.config.checks import Section, Words, first_error
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import RunError, TableError
from echo_hf.hub.run_tables import DIGEST, SAMPLE, left_out_reasons
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import IgnoredRating, LeftOut, Outcome, Reason
from echo_hf.scores.rating_table import read_outputs
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import Benchmark
from echo_hf.tables import APPLICABILITY, COMPARISONS, HUMAN, OUTPUTS, RATINGS, Table

# Without these a table says nothing; what else is missing is null, or the usual.
NEEDED: Mapping[str, tuple[str, ...]] = {
    "outputs": ("sample_id", "system", "outcome"),
    "ratings": ("sample_id", "system", "judge", "rating"),
    "comparisons": ("sample_id", "system_a", "system_b", "judge", "order", "winner"),
    "applicability": ("sample_id",),
    "human": ("sample_id", "rater", "system", "rank"),
}
USUAL: Mapping[str, Any] = {"rubric": "overall", "repeat": 0}
PAGE = "https://echo-hf.github.io/echo-hf/reference/tables/ lists them"


def read_table(root: Path, table: Table) -> pa.Table | None:
    path = root / f"{table.name}.parquet"
    if not path.exists():
        return None
    try:
        rows = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        said = " ".join(str(error).split())
        raise RunError(
            f"{str(path)!r} is not a table of {table.name} ({said}): make it again, or move it away"
        ) from None
    missing = [name for name in NEEDED.get(table.name, table.key) if name not in rows.column_names]
    if missing:
        raise RunError(f"{str(path)!r} has no column {', '.join(map(repr, missing))}: {PAGE}")
    columns = [_column(rows, field, path) for field in table.schema]
    return pa.table(columns, schema=table.schema)


def _column(rows: pa.Table, field: pa.Field, path: Path) -> pa.ChunkedArray | pa.Array:
    if field.name not in rows.column_names:
        usual = pa.scalar(USUAL.get(field.name), field.type)
        return pa.repeat(usual, rows.num_rows)
    column = rows[field.name]
    try:
        is_text = pa.types.is_string(column.type) != pa.types.is_string(field.type)
        if is_text and not pa.types.is_null(column.type):
            raise pa.ArrowInvalid("text is not a number, and a number no text")
        return column.cast(field.type)
    except (pa.ArrowException, ValueError):
        raise RunError(
            f"{str(path)!r}: column {field.name!r} is of type {str(column.type)[:80]!r}, expected "
            f"{str(field.type)[:80]!r}: {PAGE}"
        ) from None


SCORED = (OUTPUTS, RATINGS, APPLICABILITY, COMPARISONS)
RUBRICS = ("overall", "text_rendering", "reference")
# Of tables of judgements: where the verdict stands, and for each system which image it is about.
VERDICTS: Mapping[str, str] = {"ratings": "rating", "comparisons": "winner"}
SHOWN: Mapping[str, Mapping[str, str]] = {
    "ratings": {"system": "output_sha256"},
    "comparisons": {"system_a": "output_a_sha256", "system_b": "output_b_sha256"},
}
Row = Mapping[str, Any]


@dataclass(frozen=True)
class RunTables:
    tasks: Mapping[str, tuple[Task, ...]]
    outputs: pa.Table | None
    ratings: pa.Table | None
    applicability: pa.Table | None
    comparisons: pa.Table | None
    left_out: Mapping[str, Mapping[Reason, int]]

    def of_split(self, table: pa.Table | None, split: str) -> pa.Table | None:
        if table is None:
            return None
        ids = pa.array([task.sample_id for task in self.tasks[split]], pa.string())
        return table.filter(pc.is_in(table["sample_id"], ids))


def read_run(benchmark: Benchmark, folder: RunFolder) -> RunTables:
    tables = {table.name: read_table(folder.root, table) for table in SCORED}
    if tables["outputs"] is not None:
        read_outputs(tables["outputs"].select(["sample_id", "system", "outcome"]))
    if tables["outputs"] is None and tables["ratings"] is None:
        raise RunError(
            f"there is nothing to score in {str(folder.root)!r}: run `echo-hf generate`, or put "
            "outputs.parquet and ratings.parquet there"
        )
    every = benchmark.tasks(folder.images).tasks
    digests = {task.sample_id: task.sample_digest for task in every}
    reasons: dict[str, list[Reason | None]] = {
        name: list(left_out_reasons(_with_digests(rows, digests), digests))
        for name, rows in tables.items()
        if rows is not None
    }
    outputs = _kept(tables["outputs"], reasons.get("outputs", []))
    for name in VERDICTS:
        _mark_unscored(name, tables[name], outputs, reasons.get(name, []))
    kept = {name: _kept(rows, reasons.get(name, [])) for name, rows in tables.items()}
    left_out = {name: Counter(filter(None, found)) for name, found in reasons.items()}
    tasks = {name: tuple(task for task in every if task.split == name) for name in BENCHMARKS}
    return RunTables(tasks, **kept, left_out={name: one for name, one in left_out.items() if one})


def _with_digests(rows: pa.Table, digests: Mapping[str, str]) -> pa.Table:
    """Rows of which those that state no digest are taken to be about the sample as it is now."""
    if DIGEST not in rows.column_names:
        return rows
    keys = rows.select([SAMPLE, DIGEST]).to_pylist()
    known = [one[DIGEST] or digests.get(one[SAMPLE]) for one in keys]
    at = rows.column_names.index(DIGEST)
    return rows.set_column(at, DIGEST, pa.array(known, pa.string()))


def systems_in(tables: Collection[pa.Table | None]) -> list[str]:
    columns = (table["system"] for table in tables if table is not None)
    return sorted({name for column in columns for name in column.unique().to_pylist()})


def _mark_unscored(
    name: str,
    judged: pa.Table | None,
    outputs: pa.Table | None,
    reasons: list[Reason | None],
) -> None:
    rows = [] if judged is None else judged.to_pylist()
    made = None
    if outputs is not None:
        made = {(row["sample_id"], row["system"]): row for row in outputs.to_pylist()}
    for at, row in enumerate(rows):
        if reasons[at] is None and row[VERDICTS[name]] is not None:
            reasons[at] = _unscored(row, SHOWN[name], made)


def _unscored(
    row: Row, systems: Mapping[str, str], made: Mapping[tuple[str, str], Row] | None
) -> Reason | None:
    if row.get("rubric", RUBRICS[0]) not in RUBRICS:
        return IgnoredRating.OTHER_RUBRIC
    if made is None:
        return None
    outputs = [
        (made.get((row["sample_id"], row[one])), row[shown]) for one, shown in systems.items()
    ]
    return next(filter(None, (_unseen(output, shown) for output, shown in outputs)), None)


def _unseen(output: Row | None, shown: str | None) -> Reason | None:
    if output is None:
        return IgnoredRating.NO_OUTPUT
    if output["outcome"] != Outcome.OK:
        return IgnoredRating.NO_IMAGE
    now = output["image"]
    return LeftOut.OTHER_OUTPUT if None not in (shown, now) and shown != now else None


def _kept(rows: pa.Table | None, reasons: Sequence[Reason | None]) -> pa.Table | None:
    return (
        None
        if rows is None
        else rows.filter(pa.array([one is None for one in reasons], pa.bool_()))
    )


Records = Iterator[tuple[int, Any]]


class HumanRow(Section):
    """One person's place for one system's output.

    Attributes:
        sample_id: The sample.
        rater: Pseudonym of the person.
        system: The system.
        rank: From 1, equal ranks are ties; null when it cannot be ranked.
        cannot_rank: Whether the person found the outputs impossible to rank; null: not said.
    """

    sample_id: Words
    rater: Words
    system: Words
    rank: Annotated[int, Field(ge=1)] | None = None
    cannot_rank: bool | None = None


def read_human_file(path: Path) -> pa.Table:
    if path.suffix.lower() not in FORMS:
        raise TableError(f"{str(path)!r} holds no ranks: expected a file named .jsonl or .csv")
    records, strict = FORMS[path.suffix.lower()]
    try:
        rows = [_row(record, f"{path}:{line}", strict) for line, record in records(path)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{str(path)!r} cannot be read ({error}): expected UTF-8 text") from None
    return pa.Table.from_pylist([row.model_dump() for row in rows], HUMAN.schema)


def _json_lines(path: Path) -> Records:
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield number, _parsed(line, f"{path}:{number}")


def _parsed(line: str, place: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TableError(f"{place}: no JSON ({error}): expected an object a line") from None


def _csv_lines(path: Path) -> Records:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        rows = csv.DictReader(lines, restkey="(too many fields)", strict=True)
        for row in rows:
            yield rows.line_num, {name: value or None for name, value in row.items()}


def _row(record: Any, place: str, strict: bool) -> HumanRow:
    if not isinstance(record, Mapping):
        raise TableError(
            f"{place}: {record!r} is not an object: expected {', '.join(HUMAN.columns)}"
        )
    try:
        return HumanRow.model_validate(record, strict=strict)
    except ValidationError as error:
        raise TableError(first_error(error, place, HumanRow)) from None


# In JSON a rank is a number; CSV has nothing but text.
FORMS: Mapping[str, tuple[Callable[[Path], Records], bool]] = {
    ".jsonl": (_json_lines, True),
    ".csv": (_csv_lines, False),
}
