"""Take a table in any of its usual forms: the columns that are read, with their declared types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from numpy.typing import ArrayLike, NDArray

from echo_hf.errors import TableError
from echo_hf.tables import Table, arrow_rows

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]
# How often a sample is drawn, and sums of halves over samples: exact below 2**23 samples.
Weights = NDArray[np.float32]


def divided(part: ArrayLike, whole: ArrayLike) -> Floats:
    """One array by another, and NaN where there is nothing to divide by."""
    parts, wholes = np.broadcast_arrays(part, whole)
    found: Floats = np.full(parts.shape, np.nan)
    np.divide(parts, wholes, out=found, where=wholes > 0)
    return found


FORMS = "a datasets.Dataset, a pyarrow Table, a data frame, a list of dicts or a dict of columns"
EXPECTED = {
    "string": "text",
    "double": "numbers",
    "int64": "whole numbers",
    "bool": "true or false",
}


def read_columns(
    source: Any, table: Table, required: Sequence[str], optional: Sequence[str] = ()
) -> pa.Table:
    """The columns of a table that a measure reads, cast to their declared types."""
    given = _as_arrow(source, table.name, required, (*required, *optional))
    names = [name for name in (*required, *optional) if name in given.column_names]
    schema = table.schema
    columns = {name: _cast(given[name], schema.field(name).type, table, name) for name in names}
    for name in (*table.key, "outcome"):
        if name in columns and columns[name].null_count:
            row = pc.index(columns[name].is_null(), True).as_py()
            raise TableError(f"{table.name}: {name!r} is null in row {row}: expected a value")
    return pa.table(columns)


def encoded(*columns: pa.ChunkedArray) -> tuple[tuple[str, ...], list[Integers]]:
    """Distinct values of text columns, and each column as positions among them."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    joined = pa.chunked_array(chunks, pa.string()).dictionary_encode().combine_chunks()
    values = joined.dictionary.to_pylist() if len(joined) else []
    order = sorted(range(len(values)), key=values.__getitem__)
    position = np.full(len(values) + 1, -1)
    position[order] = np.arange(len(values))
    indices = joined.indices.fill_null(len(values)) if len(joined) else pa.array([], pa.int32())
    codes = position[indices.to_numpy(zero_copy_only=False)]
    ends = np.cumsum([len(column) for column in columns])[:-1]
    return tuple(values[at] for at in order), np.split(codes, ends)


def _as_arrow(source: Any, table: str, required: Sequence[str], wanted: Sequence[str]) -> pa.Table:
    try:
        if isinstance(source, Dataset):
            _check_names(source.column_names, table, required)
            kept = [name for name in wanted if name in source.column_names]
            return arrow_rows(source, kept)
        if hasattr(source, "__arrow_c_stream__"):
            given = pa.table(source)
            _check_names(given.column_names, table, required)
            return given
        if isinstance(source, Mapping):
            _check_names(list(source), table, required)
            return pa.table({name: source[name] for name in wanted if name in source})
        if isinstance(source, Sequence) and not isinstance(source, str | bytes):
            return _from_rows(source, table, required, wanted)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise TableError(f"{table}: not a table with one type a column: {reason}") from error
    raise TableError(f"{table}: {type(source).__name__!r} is not a table: expected {FORMS}")


def _check_names(names: Sequence[str], table: str, required: Sequence[str]) -> None:
    missing = [name for name in required if name not in names]
    if missing:
        raise TableError(
            f"{table}: no column {missing[0]!r} among {list(names)!r}: expected "
            f"{', '.join(required)}"
        )


def _from_rows(
    rows: Sequence[Any], table: str, required: Sequence[str], wanted: Sequence[str]
) -> pa.Table:
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TableError(f"{table}: row {number} is {row!r}: expected a dict")
        absent = next((name for name in required if name not in row), None)
        if absent:
            raise TableError(f"{table}: row {number} has no {absent!r}, only {list(row)!r}")
    named = [name for name in wanted if name in required or any(name in row for row in rows)]
    return pa.table({name: [row.get(name) for row in rows] for name in named})


def _cast(column: pa.ChunkedArray, wanted: pa.DataType, table: Table, name: str) -> pa.ChunkedArray:
    if _fits(column.type, wanted):
        return column.cast(wanted)
    raise TableError(
        f"{table.name}: column {name!r} has type {str(column.type)!r}: expected "
        f"{EXPECTED[str(wanted)]}"
    )


def _fits(given: pa.DataType, wanted: pa.DataType) -> bool:
    is_a = pa.types
    if is_a.is_dictionary(given):
        given = given.value_type
    if is_a.is_null(given):
        return True
    if is_a.is_string(wanted):
        return bool(
            is_a.is_string(given) or is_a.is_large_string(given) or is_a.is_string_view(given)
        )
    if is_a.is_integer(wanted):
        return bool(is_a.is_integer(given))
    if is_a.is_boolean(wanted):
        return bool(is_a.is_boolean(given))
    return bool(is_a.is_integer(given) or is_a.is_floating(given) or is_a.is_decimal(given))
