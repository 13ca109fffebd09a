"""Read a table of a run, which may be of somebody's own making."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf.errors import RunError
from echo_hf.tables import Table

# Without these a table says nothing; what else is missing is null, or the usual.
NEEDED: Mapping[str, tuple[str, ...]] = {
    "outputs": ("sample_id", "system", "outcome"),
    "ratings": ("sample_id", "system", "judge", "rating"),
    "comparisons": ("sample_id", "system_a", "system_b", "judge", "order", "winner"),
    "applicability": ("sample_id",),
    "human": ("sample_id", "rater", "system", "rank"),
}
USUAL: Mapping[str, Any] = {"rubric": "overall", "repeat": 0}
PAGE = "dataset_card/tables.md lists them"


def read_table(root: Path, table: Table) -> pa.Table | None:
    """Reads a table of a run.

    Args:
        root: The run's folder.
        table: The table.

    Returns:
        Its rows with all its columns, null when there is no such file. A column that the file
        lacks is null; a rating without a rubric is one by `overall`, and the first.

    Raises:
        RunError: The file cannot be read, lacks a column that it needs, or has one of another type.
    """
    path = root / f"{table.name}.parquet"
    if not path.exists():
        return None
    try:
        rows = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        said = " ".join(str(error).split())
        raise RunError(
            f"{str(path)!r} is no table of {table.name} ({said}): make it again, or move it away"
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
            raise pa.ArrowInvalid("text is no number, and a number no text")
        return column.cast(field.type)
    except (pa.ArrowException, ValueError):
        raise RunError(
            f"{str(path)!r}: column {field.name!r} is of type {str(column.type)[:80]!r}, expected "
            f"{str(field.type)[:80]!r}: {PAGE}"
        ) from None
