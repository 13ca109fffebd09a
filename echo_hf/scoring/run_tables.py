"""What is scored: the tasks of a benchmark, and what a run holds about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from echo_hf.benchmark import Benchmark
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import RunError
from echo_hf.hub.run_tables import left_out_reasons
from echo_hf.reasons import IgnoredRating, LeftOut, Outcome, Reason
from echo_hf.run_folder import RunFolder
from echo_hf.scores.rated_outputs import read_outputs
from echo_hf.systems.base import Task
from echo_hf.tables import APPLICABILITY, COMPARISONS, OUTPUTS, RATINGS, Table

SCORED = (OUTPUTS, RATINGS, APPLICABILITY, COMPARISONS)
# Columns of tables of judgements: a system, and the digest of the picture that stood for it.
SHOWN: Mapping[str, Mapping[str, str]] = {
    "ratings": {"system": "output_sha256"},
    "comparisons": {"system_a": "output_a_sha256", "system_b": "output_b_sha256"},
}


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
        """The rows of a table about the samples of a split; null where there is none."""
        if table is None:
            return None
        ids = pa.array([task.sample_id for task in self.tasks[split]], pa.string())
        rows = table.filter(pc.is_in(table["sample_id"], ids))
        return rows if rows.num_rows else None


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
        name: list(left_out_reasons(rows, digests))
        for name, rows in tables.items()
        if rows is not None
    }
    for name, systems in SHOWN.items():
        _mark_unseen(tables[name], tables["outputs"], systems, reasons.get(name, []))
    kept = {name: _kept(rows, reasons.get(name, [])) for name, rows in tables.items()}
    left_out = {name: Counter(filter(None, found)) for name, found in reasons.items()}
    tasks = {name: tuple(task for task in every if task.split == name) for name in BENCHMARKS}
    return RunTables(tasks, **kept, left_out={name: one for name, one in left_out.items() if one})


def read_table(root: Path, table: Table) -> pa.Table | None:
    """Reads a table of a run.

    Args:
        root: The run's folder.
        table: The table.

    Returns:
        Its rows, null when there is no such file.

    Raises:
        RunError: The file is no such table.
    """
    path = root / f"{table.name}.parquet"
    if not path.exists():
        return None
    try:
        return pq.read_table(path).select(list(table.columns)).cast(table.schema)
    except (OSError, KeyError, pa.ArrowException) as error:
        said = " ".join(str(error).split())
        raise RunError(
            f"{str(path)!r} is no table of {table.name} ({said}): make it again, or move it away"
        ) from None


def systems_in(tables: Collection[pa.Table | None]) -> list[str]:
    """The systems that some tables speak of, in alphabetical order."""
    columns = (table["system"] for table in tables if table is not None)
    return sorted({name for column in columns for name in column.unique().to_pylist()})


def _mark_unseen(
    judged: pa.Table | None,
    outputs: pa.Table | None,
    systems: Mapping[str, str],
    reasons: list[Reason | None],
) -> None:
    """Marks rows about pictures that are not there, or in whose place others stand by now."""
    if judged is None or outputs is None:
        return
    made = {(row["sample_id"], row["system"]): row for row in outputs.to_pylist()}
    columns = ["sample_id", *systems, *systems.values()]
    for at, row in enumerate(judged.select(columns).to_pylist()):
        for system, shown in systems.items():
            output = made.get((row["sample_id"], row[system]))
            reasons[at] = reasons[at] or _unseen(row[shown], output)


def _unseen(shown: str | None, output: Mapping[str, Any] | None) -> Reason | None:
    if output is None:
        return IgnoredRating.NO_OUTPUT
    if output["outcome"] != Outcome.OK:
        return IgnoredRating.NO_PICTURE
    is_other = None not in (shown, output["image"]) and shown != output["image"]
    return LeftOut.OTHER_OUTPUT if is_other else None


def _kept(rows: pa.Table | None, reasons: Sequence[Reason | None]) -> pa.Table | None:
    return None if rows is None else rows.filter(pa.array([one is None for one in reasons]))
