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

from echo_hf.errors import ScoreError
from echo_hf.scores.rating_table import read_columns, read_ratings
from echo_hf.tables import RATINGS
from tests.scores.ratings_for_tests import Row, one_judge, rows_of

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


def test_null_and_nan_are_missing_zero_is_a_rating_and_repeats_are_averaged() -> None:
    (ratings,) = read_ratings(one_judge(ash=[0, None, math.nan])).ratings
    np.testing.assert_array_equal(ratings, [[0, math.nan, math.nan]])
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


DRAWN = [
    {**row, "draw": draw, "rating": None if row["rating"] is None else row["rating"] + 3 * draw}
    for row in one_judge(ash=[1, 2.5, None], birch=[0, None, 3])
    for draw in range(3)
]


def test_of_several_draws_the_first_counts_or_the_mean_rating_of_all() -> None:
    frame = pd.DataFrame(DRAWN)
    for draws, rows in (("first", frame[frame["draw"] == 0]), ("all", frame)):
        means = rows.groupby(["system", "sample_id"])["rating"].mean()
        table = read_ratings(DRAWN, draws=draws)  # type: ignore[arg-type]
        expected = [[means[name, sample] for sample in table.samples] for name in table.systems]
        assert table.ratings[0] == pytest.approx(np.array(expected), nan_ok=True)


def test_a_table_without_draws_or_with_null_is_of_the_first() -> None:
    rows = one_judge(ash=[1, 2.5, None], birch=[0, None, 3])
    plain = read_ratings(rows)
    for named in ([{**row, "draw": None} for row in rows], [{**row, "draw": 0} for row in rows]):
        for draws in ("first", "all"):
            table = read_ratings(named, draws=draws)  # type: ignore[arg-type]
            assert table.ratings == pytest.approx(plain.ratings, nan_ok=True)
    with pytest.raises(ScoreError, match="unknown draws 'last'"):
        read_ratings(rows, draws="last")  # type: ignore[arg-type]


def test_a_sample_is_lost_where_no_draw_has_an_image() -> None:
    outcomes = {"s000": ["refused", "ok"], "s001": ["refused", "no_image"], "s002": ["ok", "ok"]}
    outputs = [
        {"sample_id": sample, "system": system, "draw": draw, "outcome": outcome}
        for system in ("ash", "birch")
        for sample, of_draws in outcomes.items()
        for draw, outcome in enumerate(of_draws)
    ]
    rows = [row for row in DRAWN if row["draw"] == 0]
    first, every = (read_ratings(rows, outputs, draws=draws) for draws in ("first", "all"))
    assert first.lost is not None
    assert every.lost is not None
    assert first.lost.tolist() == [[True, True, False]] * 2
    assert every.lost.tolist() == [[False, True, False]] * 2
    with pytest.raises(ScoreError, match="2 outputs for sample 's000', draw 1: expected one"):
        read_ratings(rows, [*outputs, outputs[1]])


def test_a_rating_of_a_draw_without_an_image_does_not_count() -> None:
    outputs = [
        {"sample_id": "s000", "system": "ash", "draw": 0, "outcome": "ok"},
        {"sample_id": "s000", "system": "ash", "draw": 1, "outcome": "refused"},
    ]
    row = {"sample_id": "s000", "system": "ash", "judge": "j"}
    rows = [{**row, "draw": 0, "rating": 4.0}, {**row, "draw": 1, "rating": 9.0}]
    table = read_ratings(rows, outputs, draws="all")
    assert table.ratings.tolist() == [[[4.0]]]
    assert {reason: len(keys) for reason, keys in table.ignored.items()} == {"no_picture": 1}
