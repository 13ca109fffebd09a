"""Ratings as an array: what is missing, repeated, refused or left out."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from echo_hf.errors import ScoreError
from echo_hf.scores.rating_table import read_ratings
from tests.scores.ratings_for_tests import JUDGES, Row, one_judge, rows_of

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
    """Rows of judges who saw this version of the samples."""
    return [{**row, "sample_digest": digest} for row in rows]


def test_every_rating_has_its_place() -> None:
    """The array is [judge, system, sample] in alphabetical order, whatever the order of rows."""
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
    """A judge's lowest rating may be 0."""
    (ratings,) = read_ratings(one_judge(ash=[0, nothing])).ratings
    np.testing.assert_array_equal(ratings, [[0, math.nan]])


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_an_infinite_rating_is_refused(value: float) -> None:
    """The message has the value and its key."""
    with pytest.raises(
        ScoreError,
        match=f"^ratings: {value!r} is the rating of sample_id 's001', system 'ash', judge "
        "'judge': expected a finite number, or null where there is none$",
    ):
        read_ratings(one_judge(ash=[1, value]))


def test_a_key_that_is_given_twice_is_refused() -> None:
    """Also when the ratings are equal, or one is null: nobody knows which one is meant."""
    rows = one_judge(ash=[1, 2], birch=[3, 4])
    for again in (rows[3], {**rows[3], "rating": None}):
        with pytest.raises(
            ScoreError,
            match=r"^ratings: sample_id 's001', system 'birch', judge 'judge' is rated twice: "
            r"expected one row for each sample, system, judge, rubric and repeat$",
        ):
            read_ratings([*rows, again])


def test_a_repeat_that_is_given_twice_is_refused() -> None:
    """The key has the repeat in it."""
    rows = [{**row, "repeat": repeat} for repeat in (0, 1) for row in one_judge(ash=[1])]
    with pytest.raises(ScoreError, match="judge 'judge', repeat 1 is rated twice"):
        read_ratings([*rows, rows[1]])


def test_repeats_are_averaged() -> None:
    """The mean is of the ratings that there are."""
    rated = {0: 6, 1: None, 2: 9}
    rows = [{**one_judge(ash=[value])[0], "repeat": repeat} for repeat, value in rated.items()]
    assert read_ratings(rows).ratings.tolist() == [[[7.5]]]


def test_another_rubric_is_left_out_and_named() -> None:
    """Only ratings of the rubric that is scored count."""
    rows = [
        {**row, "rubric": rubric, "rating": rating}
        for row in one_judge(ash=[1], birch=[1])
        for rubric, rating in (("overall", 3), ("text_rendering", 8))
    ]
    table, text = read_ratings(rows), read_ratings(rows, rubric="text_rendering")

    assert table.ratings.tolist() == [[[3], [3]]]
    assert text.ratings.tolist() == [[[8], [8]]]
    assert table.ignored == {"other_rubric": (("s000", "ash", "judge"), ("s000", "birch", "judge"))}


def test_a_rubric_that_nobody_used_is_refused() -> None:
    """The message says which there are."""
    rows = [{**row, "rubric": "text_rendering"} for row in one_judge(ash=[1])]
    with pytest.raises(ScoreError, match=r"unknown rubric 'overall'.*known: text_rendering"):
        read_ratings(rows)


def test_judges_stand_in_the_order_that_is_asked_for() -> None:
    """Otherwise in alphabetical order."""
    rows = rows_of({judge: {"ash": [at]} for at, judge in enumerate(JUDGES)})
    asked = read_ratings(rows, judges=["lark", "jay", "kite"])
    assert asked.judges == ("lark", "jay", "kite")
    assert asked.ratings.ravel().tolist() == [2, 0, 1]


@pytest.mark.parametrize("judges", [["jay"], ["jay", "kite", "kite"], ["jay", "kite", "owl"], []])
def test_other_judges_than_there_are_are_refused(judges: list[str]) -> None:
    """Leaving a judge out by naming the others would change every rate without a word."""
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
    """A row without a digest is taken as it is, and so are outputs without one."""
    rows = with_digest(rows_of(CUBE), digest)
    bare = [{name: row[name] for name in ("sample_id", "system", "outcome")} for row in OUTPUTS]
    for outputs in (OUTPUTS, bare):
        assert read_ratings(rows, outputs).ignored == {}


def test_a_rating_of_an_unknown_output_is_left_out_and_named() -> None:
    """The outputs say which samples and systems there are."""
    rows = [*rows_of(CUBE), *rows_of({"jay": {"cedar": [5]}})]
    table = read_ratings(rows, OUTPUTS[:4])

    assert table.systems == ("ash", "birch")
    assert table.samples == ("s000", "s001")
    assert table.ignored == {
        "no_output": (
            ("s000", "cedar", "jay"),
            ("s002", "ash", "jay"),
            ("s002", "ash", "kite"),
            ("s002", "birch", "jay"),
            ("s002", "birch", "kite"),
        )
    }


def test_outputs_that_nobody_rated_have_their_place() -> None:
    """A system that made nothing, and a sample that no judge saw, are missing, not gone."""
    more = [*OUTPUTS, {**OUTPUTS[0], "sample_id": "s999", "system": "cedar", "outcome": "failed"}]
    table = read_ratings(rows_of(CUBE), more)
    assert table.systems == ("ash", "birch", "cedar")
    assert np.isnan(table.ratings[:, 2]).all()
    assert np.isnan(table.ratings[:, :, table.samples.index("s999")]).all()


@pytest.mark.parametrize("outcome", ["refused", "no_image", "failed", "unsupported", "retired"])
def test_what_has_no_image_has_no_rating(outcome: str) -> None:
    """A rating of it is left out and named, a row without a rating is no rating."""
    outputs = [{**row, "outcome": outcome} if row is OUTPUTS[0] else row for row in OUTPUTS]
    rows = rows_of({"jay": {"ash": [1, 2, 3]}, "kite": {"ash": [None, 2, 3]}})
    table = read_ratings(rows, outputs)

    assert np.isnan(table.ratings[:, 0, 0]).all()
    assert table.ignored == {"no_picture": (("s000", "ash", "jay"),)}
    assert table.lost is not None
    assert table.lost.sum() == table.lost[0, 0] == (outcome in ("refused", "no_image"))


def test_of_no_outputs_there_are_no_ratings() -> None:
    """All of them are left out and named."""
    table = read_ratings(with_digest(rows_of(CUBE), "d"), [])
    assert table.systems == table.samples == ()
    assert {reason: len(rows) for reason, rows in table.ignored.items()} == {"no_output": 12}


def test_an_unknown_outcome_is_refused() -> None:
    """The message has the nearest name."""
    with pytest.raises(ScoreError, match="unknown outcome 'refuse'; did you mean 'refused'"):
        read_ratings(rows_of(CUBE), [{**OUTPUTS[0], "outcome": "refuse"}])


def test_two_outputs_of_one_sample_and_system_are_refused() -> None:
    """Ratings say nothing of which one they are of."""
    with pytest.raises(
        ScoreError, match=r"^outputs: system 'ash' has 2 outputs for sample 's000': expected one$"
    ):
        read_ratings(rows_of(CUBE), [*OUTPUTS, OUTPUTS[0]])
