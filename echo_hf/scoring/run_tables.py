"""What is scored: the tasks of a benchmark, and what a run holds about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.benchmark import Benchmark
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import RunError
from echo_hf.hub.run_tables import DIGEST, SAMPLE, left_out_reasons
from echo_hf.reasons import IgnoredRating, LeftOut, Outcome, Reason
from echo_hf.run_folder import RunFolder
from echo_hf.scores.rated_outputs import read_outputs
from echo_hf.scoring.table_file import read_table
from echo_hf.systems.base import Task
from echo_hf.tables import APPLICABILITY, COMPARISONS, OUTPUTS, RATINGS

SCORED = (OUTPUTS, RATINGS, APPLICABILITY, COMPARISONS)
RUBRICS = ("overall", "text_rendering", "reference")
# Of tables of judgements: where the verdict stands, and for each system which picture it is about.
VERDICTS: Mapping[str, str] = {"ratings": "rating", "comparisons": "winner"}
SHOWN: Mapping[str, Mapping[str, str]] = {
    "ratings": {"system": "output_sha256"},
    "comparisons": {"system_a": "output_a_sha256", "system_b": "output_b_sha256"},
}
Row = Mapping[str, Any]


@dataclass(frozen=True)
class RunTables:
    """A run's tables, as far as they are about the benchmark as it is now.

    Attributes:
        tasks: The tasks of each split, in the order of the benchmark.
        outputs: Rows of `OUTPUTS`, null when there is no such file.
        ratings: Rows of `RATINGS`, likewise.
        applicability: Rows of `APPLICABILITY`, likewise.
        comparisons: Rows of `COMPARISONS`, likewise.
        left_out: For each table, rows about other samples or older ones, by reason.
    """

    tasks: Mapping[str, tuple[Task, ...]]
    outputs: pa.Table | None
    ratings: pa.Table | None
    applicability: pa.Table | None
    comparisons: pa.Table | None
    left_out: Mapping[str, Mapping[Reason, int]]

    def of_split(self, table: pa.Table | None, split: str) -> pa.Table | None:
        """The rows of a table about the samples of a split; null where there is no such table."""
        if table is None:
            return None
        ids = pa.array([task.sample_id for task in self.tasks[split]], pa.string())
        return table.filter(pc.is_in(table["sample_id"], ids))


def read_run(benchmark: Benchmark, folder: RunFolder) -> RunTables:
    """Reads what is scored.

    Args:
        benchmark: What the systems were run on.
        folder: The run's folder.

    Returns:
        Its tables, without rows about samples that the benchmark does not hold as they are.

    Raises:
        RunError: There is nothing to score, or a file cannot be read.
        ScoreError: Two outputs are of the same sample and system, or an outcome is unknown.
        EchoError: The benchmark cannot be read.
    """
    tables = {table.name: read_table(folder.root, table) for table in SCORED}
    if tables["outputs"] is not None:
        read_outputs(tables["outputs"].select(["sample_id", "system", "outcome"]))
    if tables["outputs"] is None and tables["ratings"] is None:
        raise RunError(
            f"there is nothing to score in {str(folder.root)!r}: run `echo-hf generate`, or put "
            "outputs.parquet and ratings.parquet there"
        )
    every = benchmark.tasks(folder.pictures).tasks
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
    """The systems that some tables speak of, in alphabetical order."""
    columns = (table["system"] for table in tables if table is not None)
    return sorted({name for column in columns for name in column.unique().to_pylist()})


def _mark_unscored(
    name: str,
    judged: pa.Table | None,
    outputs: pa.Table | None,
    reasons: list[Reason | None],
) -> None:
    """Marks verdicts by unknown rubrics, and about pictures that are gone or others by now."""
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
        return IgnoredRating.NO_PICTURE
    now = output["image"]
    return LeftOut.OTHER_OUTPUT if None not in (shown, now) and shown != now else None


def _kept(rows: pa.Table | None, reasons: Sequence[Reason | None]) -> pa.Table | None:
    return (
        None
        if rows is None
        else rows.filter(pa.array([one is None for one in reasons], pa.bool_()))
    )
