"""Friedman's test and Kendall's W: R's figures, scipy's, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare

from echo_hf.errors import ScoreError
from echo_hf.reasons import Unscored
from echo_hf.scores import friedman, kendalls_w
from echo_hf.scores.friedman import concordances
from tests.scores.published_data import ANXIETY, ROUNDING_TIMES


def test_rounding_first_base() -> None:
    """What R's `friedman.test` prints for its own example."""
    found = friedman(ROUNDING_TIMES)
    assert found.statistic == pytest.approx(11.1428571429, abs=1e-9)
    assert (found.degrees, found.blocks, found.incomplete) == (2, 22, 0)
    assert found.p_value == pytest.approx(0.003805, abs=5e-7)


def test_anxiety_rated_by_three() -> None:
    """What `kendall(anxiety, correct = TRUE)` of R's irr gives, to its last figure."""
    assert kendalls_w(ANXIETY) == pytest.approx(0.53965687595437, abs=1e-14)


def test_w_by_hand() -> None:
    """Ranks 1 2 3 4 and 2 1 3 4: sums 3 3 6 8, squares off the mean 5 are 18; 12 * 18 / 240."""
    assert kendalls_w([[1, 2, 3, 4], [2, 1, 3, 4]]) == pytest.approx(0.9)


@given(
    st.integers(3, 6).flatmap(
        lambda k: st.lists(st.lists(st.integers(0, 4), min_size=k, max_size=k), min_size=2)
    )
)
def test_any_blocks_as_scipy_says(blocks: list[list[int]]) -> None:
    """With ties within blocks; and W is the statistic as a share of its most."""
    assume(any(len(set(block)) > 1 for block in blocks))
    found, expected = friedman(blocks), friedmanchisquare(*np.array(blocks).T)
    assert found.statistic == pytest.approx(expected.statistic, abs=1e-9)
    assert found.p_value == pytest.approx(expected.pvalue, abs=1e-12)
    assert found.w == pytest.approx(expected.statistic / (len(blocks) * found.degrees), abs=1e-12)


def test_two_systems_are_tested_too() -> None:
    """9 of 10 blocks prefer one: the statistic is that of the sign test, (9 - 1)**2 / 10."""
    assert friedman([[1, 2]] * 9 + [[2, 1]]).statistic == pytest.approx(6.4)


def test_a_block_with_a_gap_is_left_out_and_counted() -> None:
    """The others give what they give alone."""
    gap = np.vstack([ROUNDING_TIMES, [[5.0, np.nan, 5.1]]])
    found = friedman(gap)
    assert found.statistic == friedman(ROUNDING_TIMES).statistic
    assert (found.blocks, found.incomplete) == (22, 1)
    assert kendalls_w(gap) == kendalls_w(ROUNDING_TIMES)


@pytest.mark.parametrize("blocks", [[[1, 1, 1], [2, 2, 2]], np.empty((0, 3))])
def test_ties_alone_are_no_evidence(blocks: object) -> None:
    """Neither is nothing: no number, and a reason."""
    found = friedman(blocks)
    assert (found.statistic, found.p_value, found.w) == (None, None, None)
    assert found.reason is Unscored.NO_ORDER
    assert kendalls_w(blocks) is None


def test_one_person_agrees_with_nobody() -> None:
    """W of a single person says nothing."""
    assert kendalls_w([[1, 2, 3]]) is None


def test_each_sample_has_the_w_of_who_ranked_all_of_it() -> None:
    """Of three people one left out a system of the second sample, and two all of the third."""
    ranks = np.array(
        [[[1, 1, 1], [2, 2, 2]], [[1, 2, 1], [2, 1, 2]], [[1, 1, 1], [2, 2, 2]]], float
    )
    ranks[2, 1, 1] = np.nan
    ranks[1:, :, 2] = np.nan
    np.testing.assert_allclose(concordances(ranks), [1.0, 0.0, np.nan])


@pytest.mark.parametrize("wrong", [[1, 2, 3], [[1], [2]]])
def test_what_is_no_table_is_one_line(wrong: list[object]) -> None:
    """It says what shape was given."""
    with pytest.raises(ScoreError, match="expected a row for each block"):
        friedman(wrong)
