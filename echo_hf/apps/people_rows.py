"""Write what people did in an app into a table of the run, beside rows from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf._infra.atomic import lock_file, replace_file
from echo_hf.errors import RunError
from echo_hf.systems.run_tables import read_table
from echo_hf.tables import Row, Table

MAX_LOCK_SECONDS = 60


class WrittenRows(NamedTuple):
    """The file of a table, and how many of its rows are from elsewhere."""

    path: Path
    kept: int


def write_people_rows(
    root: Path, table: Table, rows: Iterable[Row], is_own: Callable[[Row], bool]
) -> WrittenRows:
    """Write rows in place of an app's own earlier ones; the others stay."""
    path, lock = root / f"{table.name}.parquet", root / f".{table.name}.lock"
    busy = RunError(
        f"another process has held {str(lock)!r} for {MAX_LOCK_SECONDS} s: end it, and begin again"
    )
    with lock_file(lock, busy, MAX_LOCK_SECONDS):
        previous = read_table(root, table)
        others = [] if previous is None else previous.to_pylist()
        others = [row for row in others if not is_own(row)]
        merged = sorted((*others, *rows), key=lambda row: [str(row[key]) for key in table.key])
        written = pa.Table.from_pylist(merged, table.schema)
        if written != previous and (merged or previous is not None):
            with replace_file(path) as partial_file:
                pq.write_table(written, partial_file)
    return WrittenRows(path, len(others))
