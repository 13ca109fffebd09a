"""Output rows in the order of the input, whatever the order in which they are found."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.stage import CONTROL_SCHEMA, StageRows
from echo_hf.reasons import Failed, Notice, Reject, Status
from echo_hf.tables import STRING, Column, Table

PAIRS = Table("pairs", "a pair", ("name",), {name: Column(STRING, name) for name in ("name", "of")})


def found(rows: StageRows) -> list[tuple[Any, ...]]:
    """Parents, status, reason, detail, request and name of each row."""
    columns = ("_parent", "_status", "_reason", "_detail", "_request", "name")
    return [tuple(row[name] for name in columns) for row in rows.table().to_pylist()]


def test_what_becomes_of_a_row() -> None:
    """By hand: a kept row, a remark, a reject and a failed call, each with its input row."""
    rows = StageRows(PAIRS)
    rows.failed(2, "c", Failure(Failed.CUT, "length", "ff"))
    rows.say(1, "b", Status.REJECTED, Reject.TRASH)
    rows.say(0, "a", Status.NOTED, Notice.NEITHER, "x")
    rows.keep(0, "a", {"name": "first", "of": "a"})

    assert found(rows) == [
        (["a"], "kept", None, None, None, "first"),
        (["a"], "noted", "neither", "x", None, None),
        (["b"], "rejected", "trash", None, None, None),
        (["c"], "quarantined", "cut", "length", "ff", None),
    ]


def test_nothing_found_keeps_the_declared_columns() -> None:
    """An empty table has the stage's columns and those of control."""
    made = StageRows(PAIRS).table()
    assert (made.num_rows, made.schema.names) == (0, ["name", "of", *CONTROL_SCHEMA.names])


def test_columns_are_those_declared() -> None:
    """What a row does not say is null, and what no column is for is left out."""
    rows = StageRows(PAIRS)
    rows.keep(0, "a", {"name": "first", "unknown": 1})

    assert rows.table().select(["name", "of"]).to_pylist() == [{"name": "first", "of": None}]


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=12))
def test_rows_stand_in_the_order_of_the_input(calls: list[tuple[int, bool]]) -> None:
    """Sorted by input row, kept ones before remarks, each kind in the order it was found."""
    rows = StageRows(PAIRS)
    for number, (row, keeps) in enumerate(calls):
        if keeps:
            rows.keep(row, f"k{row}", {"name": str(number), "of": None})
        else:
            rows.say(row, f"k{row}", Status.NOTED, Notice.NEITHER, str(number))
    expected = sorted(enumerate(calls), key=lambda one: (one[1][0], not one[1][1]))

    assert [(parents, name or detail) for parents, _, _, detail, _, name in found(rows)] == [
        ([f"k{row}"], str(number)) for number, (row, _) in expected
    ]
