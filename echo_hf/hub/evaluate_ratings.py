"""Judges' ratings as predictions: one row each, checked when they are added."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from datasets import Features

from echo_hf.errors import TableError, unknown
from echo_hf.hub.evaluate_columns import EvaluateColumns, Stored
from echo_hf.scores.columns import read_columns
from echo_hf.scores.rating_table import OPTIONAL, REQUIRED
from echo_hf.tables import RATINGS

COLUMNS = (*REQUIRED, *OPTIONAL)


AT_ONCE = 10_000


def store(predictions: Any) -> Iterator[Stored]:
    """Ratings as `evaluate` stores them: with null where an optional column is not given.

    Args:
        predictions: Ratings in any form that `read_columns` takes. Columns of the table of
            ratings that no measure reads, such as explanations, may be there.

    Yields:
        One dict a rating, ten thousand at once.

    Raises:
        TableError: A column is missing, of another type, or none of the table of ratings.
    """
    table = read_columns(predictions, RATINGS, REQUIRED, OPTIONAL)
    for name in _names(predictions):
        if name not in RATINGS.columns:
            raise TableError(unknown("column", name, RATINGS.columns, RATINGS.name))
    absent = dict.fromkeys(OPTIONAL)
    for part in table.to_batches(AT_ONCE):
        yield {"predictions": [{**absent, **row} for row in part.to_pylist()]}


def read(*, predictions: Any) -> tuple[pa.Table]:
    """Stored ratings as the measures take them.

    Args:
        predictions: The stored rows, in Arrow.

    Returns:
        The table, without the optional columns that were not given.
    """
    table = pa.Table.from_struct_array(predictions)
    empty = [name for name in OPTIONAL if table[name].null_count == table.num_rows]
    return (table.drop_columns(empty),)


def _names(source: Any) -> list[Any]:
    if isinstance(source, Mapping):
        return list(source)
    if hasattr(source, "column_names"):
        return list(source.column_names)
    if hasattr(source, "columns"):
        return list(source.columns)
    rows = source if isinstance(source, Sequence) else ()
    return list(dict.fromkeys(name for row in rows for name in row))


RATING_ROWS = EvaluateColumns(
    Features({"predictions": {name: RATINGS.features[name] for name in COLUMNS}}),
    {
        "predictions": f"one dict a rating with {', '.join(REQUIRED)} and, where there are any, "
        f"{', '.join(OPTIONAL)}; a Dataset, a data frame or a dict of columns, too"
    },
    store,
    read,
    at_once=AT_ONCE,
)
