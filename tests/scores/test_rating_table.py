"""Tables of ratings in all their forms as an array: what is missing, refused or left out."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import Dataset

from echo_hf.errors import ScoreError, TableError
from echo_hf.scores.rating_table import encoded, read_columns, read_ratings
from echo_hf.tables import RATINGS
from tests.scores.ratings_for_tests import JUDGES, Row, one_judge, rows_of

KEY = ("sample_id", "system", "judge", "repeat")
NEEDED = ("sample_id", "system", "judge", "rating")
ROWS = one_judge(ash=[1, 2.5, None], birch=[0, None, 3])


def columns_of(rows: list[Row]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


FORMS: dict[str, Callable[[list[Row]], Any]] = {
    "list of dicts": list,
    "dict of columns": columns_of,
    "dataset": Dataset.from_list,
    "shuffled dataset": lambda rows: Dataset.from_list(rows[::-1]).select(range(len(rows))[::-1]),
    "arrow": pa.Table.from_pylist,
    "arrow in pieces": lambda rows: pa.concat_tables(
        [pa.Table.from_pylist(rows).slice(at, 1) for at in range(len(rows))]
    ),
    "dictionaries": lambda rows: pa.table(
        {
            name: pa.array(values).dictionary_encode() if name != "rating" else values
            for name, values in columns_of(rows).items()
        }
    ),
    "data frame": pd.DataFrame,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_the_same(form: str) -> None:
    read = read_columns(FORMS[form](ROWS), RATINGS, NEEDED)

    assert read.schema.types == [pa.string(), pa.string(), pa.string(), pa.float64()]
    assert read["sample_id"].to_pylist() == [row["sample_id"] for row in ROWS]
    nan = math.nan
    assert read["rating"].to_numpy() == pytest.approx([1, 2.5, nan, 0, nan, 3], nan_ok=True)


def test_other_columns_are_left_alone() -> None:
    rows = [{**row, "explanation": object(), "repeat": 0} for row in ROWS]
    read = read_columns(rows, RATINGS, NEEDED, ("rubric", "repeat"))
    assert read.column_names == [*NEEDED, "repeat"]


@pytest.mark.parametrize("form", ["dict of columns", "dataset", "arrow", "data frame"])
def test_a_missing_column_is_named(form: str) -> None:
    renamed = [{"score" if name == "rating" else name: row[name] for name in row} for row in ROWS]
    expected = r"among \[.*'score'\]: expected sample_id, system, judge, rating$"
    with pytest.raises(TableError, match=rf"^ratings: no column 'rating' {expected}"):
        read_columns(FORMS[form](renamed), RATINGS, NEEDED)


def _changed(name: str, value: object, row: int = 0) -> list[Row]:
    rows = [{**one, "repeat": 0} for one in ROWS]
    rows[row][name] = value
    return rows


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ([*ROWS, {"sample_id": "s", "system": "a"}], r"ratings: row 6 has no 'judge', only \['sam"),
        ([("s", "ash")], r"ratings: row 0 is \('s', 'ash'\): expected a dict$"),
        ([_changed("rating", "8")[0]], "column 'rating' has type 'string': expected numbers$"),
        ([_changed("rating", True)[0]], "column 'rating' has type 'bool': expected numbers$"),
        ([_changed("system", 4)[0]], "column 'system' has type 'int64': expected text$"),
        (_changed("repeat", 0.5), "column 'repeat' has type 'double': expected whole numbers$"),
        (_changed("rating", "8"), "ratings: not a table with one type a column: .+$"),
        (_changed("rating", object()), "ratings: not a table with one type a column: .+$"),
        (_changed("rating", [1]), "ratings: not a table with one type a column: .+$"),
        *((_changed(name, None, 2), f"{name!r} is null in row 2: exp") for name in KEY),
        *(
            (one, r"is not a table: expected a datasets\.Dataset, a")
            for one in (None, 5, "a.jsonl")
        ),
        (iter(ROWS), r"is not a table: expected a datasets\.Dataset, a"),
    ],
)
def test_what_is_no_such_table_is_one_line(source: Any, said: str) -> None:
    with pytest.raises(TableError, match=said) as caught:
        read_columns(source, RATINGS, NEEDED, ("repeat",))
    assert str(caught.value).startswith("ratings: ")
    assert "\n" not in str(caught.value)


def test_codes_are_shared_by_columns() -> None:
    one, other = pa.chunked_array([["c"], ["a", None]]), pa.chunked_array([["b", "a"]])
    names, (first, second) = encoded(one, other)
    assert names == ("a", "b", "c")
    assert first.tolist() == [2, 0, -1]
    assert second.tolist() == [1, 0]


CUBE = {
    "jay": {"ash": [1, 0, None], "birch": [4, 5, 6]},
    "kite": {"ash": [7, 8, 9], "birch": [0, 0, 0]},
}
OUTPUTS = [
    {"sample_id": f"s{number:03}", "system": system, "outcome": "ok", "sample_digest": "d"}
    for number in range(3)
    for system in ("ash", "birch")
]


def with_digest(rows: list[Row], digest: str | None) -> list[Row]:
    return [{**row, "sample_digest": digest} for row in rows]


def test_every_rating_has_its_place() -> None:
    rows = rows_of(CUBE)
    random.Random(1).shuffle(rows)
    table = read_ratings(rows)

    assert (table.judges, table.systems) == (("jay", "kite"), ("ash", "birch"))
    assert table.samples == ("s000", "s001", "s002")
    expected = [[[1, 0, math.nan], [4, 5, 6]], [[7, 8, 9], [0, 0, 0]]]
    np.testing.assert_array_equal(table.ratings, expected)
    assert table.lost is None
    assert table.ignored == {}


@pytest.mark.parametrize("nothing", [None, math.nan])
def test_null_and_nan_are_missing_and_zero_is_a_rating(nothing: float | None) -> None:
    (ratings,) = read_ratings(one_judge(ash=[0, nothing])).ratings
    np.testing.assert_array_equal(ratings, [[0, math.nan]])


def test_a_rating_is_finite_and_given_once() -> None:
    rows = one_judge(ash=[1, 2], birch=[3, 4])
    where = "sample_id 's001', system 'birch', judge 'judge'"
    once = "expected one row for each sample, system, judge, rubric and repeat"
    for again in (rows[3], {**rows[3], "rating": None}):
        with pytest.raises(ScoreError, match=f"^ratings: {where} is rated twice: {once}$"):
            read_ratings([*rows, again])
    for value in (math.inf, -math.inf):
        said = f"{value!r} is the rating of {where}: expected a finite number, or null where there"
        with pytest.raises(ScoreError, match=f"^ratings: {said}"):
            read_ratings([*rows[:3], {**rows[3], "rating": value}])


def test_repeats_are_averaged() -> None:
    rated = {0: 6, 1: None, 2: 9}
    rows = [{**one_judge(ash=[value])[0], "repeat": repeat} for repeat, value in rated.items()]
    assert read_ratings(rows).ratings.tolist() == [[[7.5]]]


def test_another_rubric_is_left_out_and_named() -> None:
    rows = [
        {**row, "rubric": rubric, "rating": rating}
        for row in one_judge(ash=[1], birch=[1])
        for rubric, rating in (("overall", 3), ("text_rendering", 8))
    ]
    table, text = read_ratings(rows), read_ratings(rows, rubric="text_rendering")

    assert table.ratings.tolist() == [[[3], [3]]]
    assert text.ratings.tolist() == [[[8], [8]]]
    assert table.ignored == {"other_rubric": (("s000", "ash", "judge"), ("s000", "birch", "judge"))}
    with pytest.raises(ScoreError, match=r"unknown rubric 'overal'; did you mean 'overall'"):
        read_ratings(rows, rubric="overal")


def test_judges_stand_in_the_order_that_is_asked_for() -> None:
    rows = rows_of({judge: {"ash": [at]} for at, judge in enumerate(JUDGES)})
    asked = read_ratings(rows, judges=["lark", "jay", "kite"])
    assert asked.judges == ("lark", "jay", "kite")
    assert asked.ratings.ravel().tolist() == [2, 0, 1]


@pytest.mark.parametrize("judges", [["jay"], ["jay", "kite", "kite"], ["jay", "kite", "owl"], []])
def test_other_judges_than_there_are_are_refused(judges: list[str]) -> None:
    with pytest.raises(ScoreError, match=r"^judges is \[.*\]: expected each judge of the ratings"):
        read_ratings(rows_of(CUBE), judges=judges)


def test_a_rating_of_another_digest_is_left_out_and_named() -> None:
    """The task has changed since the judge saw it; its row may stand beside a new one."""
    rows = with_digest(rows_of(CUBE), "d")
    stale = [{**rows[0], "sample_digest": "old", "rating": 9}]
    table = read_ratings([*stale, *rows], OUTPUTS)

    assert table.ratings[0, 0, 0] == 1
    assert table.ignored == {"other_digest": (("s000", "ash", "jay"),)}


@pytest.mark.parametrize("digest", [None, "d"])
def test_digests_are_compared_where_both_are_given(digest: str | None) -> None:
    rows = with_digest(rows_of(CUBE), digest)
    bare = [{name: row[name] for name in ("sample_id", "system", "outcome")} for row in OUTPUTS]
    for outputs in (OUTPUTS, bare):
        assert read_ratings(rows, outputs).ignored == {}


def test_a_rating_of_an_unknown_output_is_left_out_and_named() -> None:
    rows = [*rows_of(CUBE), *rows_of({"jay": {"cedar": [5]}})]
    table = read_ratings(rows, OUTPUTS[:4])

    assert table.systems == ("ash", "birch")
    assert table.samples == ("s000", "s001")
    of_gone = product(("s002",), ("ash", "birch"), ("jay", "kite"))
    assert table.ignored == {"no_output": (("s000", "cedar", "jay"), *of_gone)}


@pytest.mark.parametrize("outcome", ["refused", "no_image", "failed", "unsupported", "retired"])
def test_what_has_no_image_has_no_rating(outcome: str) -> None:
    outputs = [{**row, "outcome": outcome} if row is OUTPUTS[0] else row for row in OUTPUTS]
    rows = rows_of({"jay": {"ash": [1, 2, 3]}, "kite": {"ash": [None, 2, 3]}})
    table = read_ratings(rows, outputs)

    assert np.isnan(table.ratings[:, 0, 0]).all()
    assert table.ignored == {"no_picture": (("s000", "ash", "jay"),)}
    assert table.lost is not None
    assert table.lost.sum() == table.lost[0, 0] == (outcome in ("refused", "no_image"))


def test_outputs_that_make_no_sense_are_one_line() -> None:
    with pytest.raises(ScoreError, match="unknown outcome 'refuse'; did you mean 'refused'"):
        read_ratings(rows_of(CUBE), [{**OUTPUTS[0], "outcome": "refuse"}])
    said = r"^outputs: system 'ash' has 2 outputs for sample 's000': expected one$"
    with pytest.raises(ScoreError, match=said):
        read_ratings(rows_of(CUBE), [*OUTPUTS, OUTPUTS[0]])
