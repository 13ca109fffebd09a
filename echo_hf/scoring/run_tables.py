"""What is scored: the tasks of a benchmark, and what a run holds about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from echo_hf.benchmark import Benchmark
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import RunError
from echo_hf.hub.run_tables import left_out_reasons
from echo_hf.reasons import LeftOut
from echo_hf.run_folder import RunFolder
from echo_hf.systems.base import Task
from echo_hf.tables import APPLICABILITY, OUTPUTS, RATINGS, Table

SCORED = (OUTPUTS, RATINGS, APPLICABILITY)


@dataclass(frozen=True)
class RunTables:
    """A run's tables, as far as they are about the benchmark as it is now.

    Attributes:
        tasks: The tasks of each split, in the order of the benchmark.
        outputs: Rows of `OUTPUTS`, null when there is no such file.
        ratings: Rows of `RATINGS`, likewise.
        applicability: Rows of `APPLICABILITY`, likewise.
        left_out: For each table, rows about other samples or older ones, by reason.
    """

    tasks: Mapping[str, tuple[Task, ...]]
    outputs: pa.Table | None
    ratings: pa.Table | None
    applicability: pa.Table | None
    left_out: Mapping[str, Mapping[LeftOut, int]]

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
        EchoError: The benchmark cannot be read.
    """
    tables = {table.name: read_table(folder.root, table) for table in SCORED}
    if tables["outputs"] is None and tables["ratings"] is None:
        raise RunError(
            f"there is nothing to score in {str(folder.root)!r}: run `echo-hf generate`, or put "
            "outputs.parquet and ratings.parquet there"
        )
    every = benchmark.tasks(folder.pictures).tasks
    digests = {task.sample_id: task.sample_digest for task in every}
    reasons = {
        name: list(left_out_reasons(rows, digests))
        for name, rows in tables.items()
        if rows is not None
    }
    _mark_redrawn(tables["ratings"], tables["outputs"], reasons.get("ratings", []))
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
        RunError: The file cannot be read, or lacks a column.
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


def _mark_redrawn(
    ratings: pa.Table | None, outputs: pa.Table | None, reasons: list[LeftOut | None]
) -> None:
    """Marks ratings of pictures in whose place others stand by now."""
    if ratings is None or outputs is None:
        return
    keys = ["sample_id", "system"]
    image = {(row["sample_id"], row["system"]): row["image"] for row in outputs.to_pylist()}
    for at, row in enumerate(ratings.select([*keys, "output_sha256"]).to_pylist()):
        shown, now = row["output_sha256"], image.get((row["sample_id"], row["system"]))
        if reasons[at] is None and None not in (shown, now) and shown != now:
            reasons[at] = LeftOut.OTHER_OUTPUT


def _kept(rows: pa.Table | None, reasons: Sequence[LeftOut | None]) -> pa.Table | None:
    return None if rows is None else rows.filter(pa.array([one is None for one in reasons]))
