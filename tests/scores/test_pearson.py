"""Pearson's correlation of judges, against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr

from echo_hf.scores.agreement import PearsonR, pearson, pearson_table
from echo_hf.scores.ranks import JudgeRatings


def test_it_is_scipys_over_what_both_rated() -> None:
    """Gaps on either side are left out."""
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 11, (2, 3, 40)).astype(float)
    one[0, :5], other[1, 3:9] = np.nan, np.nan
    common = ~np.isnan(one) & ~np.isnan(other)
    expected = pearsonr(one[common], other[common])
    found = pearson(one, other)
    assert (found.r, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.outputs == 120 - 11


@pytest.mark.parametrize("one", [[5.0, 5.0, 5.0], [1.0, np.nan, np.nan], [np.nan] * 3])
def test_a_judge_who_says_one_thing_correlates_with_nobody(one: list[float]) -> None:
    """There is no number, and no warning."""
    count = int((~np.isnan(one)).sum())
    assert pearson(np.array(one), np.array([1.0, 2.0, 3.0])) == PearsonR(None, None, count)


def test_each_two_judges_are_there_once() -> None:
    """In the order of the judges."""
    ratings = np.random.default_rng(1).random((3, 2, 5))
    found = pearson_table(JudgeRatings(("x", "y", "z"), ratings, 0))
    assert {one: list(row) for one, row in found.items()} == {"x": ["y", "z"], "y": ["z"]}
    assert found["x"]["z"] == pearson(ratings[0], ratings[2])
