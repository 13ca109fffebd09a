"""Ratings as predictions, before `evaluate` has them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from datasets import Dataset

from echo_hf.errors import TableError
from echo_hf.hub.evaluate_configs import AT_ONCE, COLUMNS, RATING_ROWS, store_ratings

ROW: dict[str, Any] = {"sample_id": "s", "system": "a", "judge": "j", "rating": 5}


def _rows(given: Any) -> list[dict[str, Any]]:
    return [row for part in store_ratings(given) for row in part["predictions"]]


def test_a_rating_has_every_column_that_a_measure_reads() -> None:
    """Null where it was not given; the number is a float."""
    (row,) = _rows([ROW])
    assert tuple(sorted(row)) == tuple(sorted(COLUMNS))
    assert {name: row[name] for name in ROW} == {**ROW, "rating": 5.0}
    assert {row[name] for name in COLUMNS if name not in ROW} == {None}


@pytest.mark.parametrize("count", [0, 1, AT_ONCE, 2 * AT_ONCE + 1])
def test_parts_hold_every_rating_once(count: int) -> None:
    """In order, ten thousand at most."""
    rows = [{**ROW, "sample_id": f"s{number}"} for number in range(count)]
    parts = [part["predictions"] for part in store_ratings(rows)]
    assert all(0 < len(part) <= AT_ONCE for part in parts)
    assert [row["sample_id"] for part in parts for row in part] == [r["sample_id"] for r in rows]


def test_every_form_of_a_table_is_taken() -> None:
    """And columns of the table of ratings that no measure reads may be there."""
    table = Dataset.from_list([{**ROW, "explanation": "Sharp."}])
    expected = _rows([ROW])
    for given in (table, table.to_pandas(), table.to_dict(), table.with_format("arrow")[:]):
        assert _rows(given) == expected


def test_an_unknown_column_is_refused_by_its_name() -> None:
    """With the one that may be meant."""
    for given in (
        [ROW, {**ROW, "rubrik": "overall"}],
        pa.table({**{k: [v] for k, v in ROW.items()}, "rubrik": ["x"]}),
    ):
        with pytest.raises(TableError, match="unknown column 'rubrik'; did you mean 'rubric'"):
            _rows(given)


def test_columns_that_were_not_given_are_left_out_again() -> None:
    """So that a measure sees the table that there was."""
    (part,) = store_ratings([ROW, {**ROW, "rubric": "overall", "sample_id": "t"}][1:])
    schema = RATING_ROWS.features.arrow_schema
    stored = pa.Table.from_pydict(dict(part), schema)["predictions"].combine_chunks()
    (table,) = RATING_ROWS.read(predictions=stored)
    assert set(table.column_names) == {*ROW, "rubric"}
