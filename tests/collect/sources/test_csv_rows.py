"""Rows of comma-separated text: what is no row costs nothing but its own line."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.collect.sources.table import csv_rows, delimiter_of

CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=8)


@given(st.lists(st.lists(CELLS, min_size=2, max_size=4), max_size=6))
def test_what_a_writer_wrote_is_read_as_it_was(rows: list[list[str]]) -> None:
    """Quotation marks, delimiters and line feeds in cells included."""
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerows(rows)
    lines = io.StringIO(file.getvalue(), newline="\n")

    assert [cells for _, cells in csv_rows(lines, ",")] == rows


def test_a_row_is_named_by_its_first_line() -> None:
    """Also where a cell before it holds line ends."""
    lines = ["a,b\n", '"one\n', "two\n", 'three",x\n', "\n", "c,d\n"]

    assert list(csv_rows(lines, ",")) == [
        (1, ["a", "b"]),
        (2, ["one\ntwo\nthree", "x"]),
        (5, []),
        (6, ["c", "d"]),
    ]


@pytest.mark.parametrize("rows", [3, 20_000])
def test_an_open_quotation_mark_costs_one_line(rows: int) -> None:
    """Whether the text ends before the longest cell is full, or long after."""
    good = [f"{number},a fox\n" for number in range(rows)]
    read = list(csv_rows(['0,"open\n', *good], ","))

    assert read[0][0] == 1
    assert isinstance(read[0][1], str)
    assert read[1:] == [(number + 2, [str(number), "a fox"]) for number in range(rows)]


def test_a_quotation_mark_that_closes_in_a_later_row_joins_no_rows() -> None:
    """The two lines with quotation marks are told, and the one between is read."""
    lines = ['1,"open\n', "2,b\n", '3,"c"\n', "4,d\n"]
    read = list(csv_rows(lines, ","))

    assert [number for number, _ in read] == [1, 2, 3, 4]
    assert isinstance(read[0][1], str)
    assert [cells for _, cells in read[1:]] == [["2", "b"], ["3", "c"], ["4", "d"]]


@pytest.mark.parametrize(
    ("header", "columns", "expected"),
    [
        ("link,text\n", ["link"], ","),
        ("link;text\n", ["link"], ";"),
        ("link\n", ["link"], ","),
        ('"text, short";link\n', ["link"], ";"),
        ("text;short,link\n", ["link"], ","),
        ('"text, short";link\n', ["nothing"], ";"),
        ("", ["link"], ","),
    ],
)
def test_the_delimiter_is_the_one_that_gives_the_columns(
    header: str, columns: list[str], expected: str
) -> None:
    """Where none does, one that stands in the line, for a message with its names."""
    assert delimiter_of(header, columns, [",", ";", "\t"]) == expected
