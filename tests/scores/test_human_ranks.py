"""People's ranks as an array, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import Dataset

from echo_hf.errors import ScoreError, TableError
from echo_hf.scores.ranks import read_human
from echo_hf.tables import HUMAN
from tests.scores.ranks_for_tests import Row, human_rows

GIVEN = {"ada": [(1, 2, 2), (3, 1, 2)], "ben": [(None, None, None), (1, None, 2)]}


def test_every_rank_stands_in_its_place() -> None:
    """Whatever the order of the rows; what is not ranked is marked."""
    rows = human_rows(GIVEN)
    found = read_human(rows[::-1])
    assert found.raters == ("ada", "ben")
    assert found.systems == ("ash", "birch", "cedar")
    assert found.samples == ("s000", "s001")
    expected = np.array(
        [[[1, 3], [2, 1], [2, 2]], [[np.nan, 1], [np.nan, np.nan], [np.nan, 2]]], float
    )
    np.testing.assert_array_equal(found.ranks, expected)
    np.testing.assert_array_equal(found.refused, [[False, False], [True, False]])
    np.testing.assert_array_equal(found.complete, [[True, True], [False, False]])


def test_a_sample_that_a_person_was_not_shown_is_not_refused() -> None:
    """Ben has no row about the first sample."""
    rows = [row for row in human_rows(GIVEN) if (row["rater"], row["sample_id"]) != ("ben", "s000")]
    assert not read_human(rows).refused.any()


@pytest.mark.parametrize(
    "form",
    [
        list,
        Dataset.from_list,
        pa.Table.from_pylist,
        lambda rows: pd.DataFrame(rows).astype({"rank": "Int64"}),
        lambda rows: pa.Table.from_pylist(rows).to_pydict(),
        lambda rows: pa.Table.from_pylist(rows, HUMAN.schema),
    ],
)
def test_a_table_may_have_any_form(form: object) -> None:
    """With the same outcome."""
    assert callable(form)
    rows = human_rows(GIVEN)
    np.testing.assert_array_equal(read_human(form(rows)).ranks, read_human(rows).ranks)


def changed(**values: object) -> list[Row]:
    """The rows, the first one with other values."""
    first, *rest = human_rows(GIVEN)
    return [{**first, **values}, *({**row, **dict.fromkeys(values)} | row for row in rest)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (changed(rank=0), "0 is the rank of sample_id 's000', rater 'ada', system 'ash': expected"),
        (changed(cannot_rank=True), "1 is the rank of .*: expected no rank where cannot_rank is"),
        (changed(rank=None, cannot_rank=False), "None is the rank of .*: expected a rank where"),
        ([*human_rows(GIVEN), human_rows(GIVEN)[4]], "system 'birch' is ranked twice: expected"),
        (human_rows({"ada": [(1,)]}), r"ranks are of \['ash'\]: expected two systems or more"),
    ],
)
def test_ranks_that_contradict_are_one_line(rows: list[Row], said: str) -> None:
    """It names sample, rater and system."""
    with pytest.raises(ScoreError, match=said):
        read_human(rows)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"sample_id": "s", "rater": "ada", "rank": 1}], "row 0 has no 'system'"),
        (changed(rater=None), "'rater' is null in row 0"),
        ([{**human_rows(GIVEN)[0], "rank": "first"}], "'rank' has type 'string': expected whole"),
        ([{**human_rows(GIVEN)[0], "cannot_rank": "no"}], "type 'string': expected true or false"),
    ],
)
def test_a_table_of_other_columns_is_one_line(rows: list[Row], said: str) -> None:
    """As for every table."""
    with pytest.raises(TableError, match=said):
        read_human(rows)
