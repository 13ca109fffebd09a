"""Friedman's test, Kendall's W and tau-b, tests of pairs: other programs' figures, the paper's."""

from __future__ import annotations

from itertools import accumulate, combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import friedmanchisquare, kendalltau, rankdata

from echo_hf._infra.bootstrap import Unscored
from echo_hf.scores import PairTest, dunn, friedman, kendalls_w, siegel_castellan, tau_b
from echo_hf.scores.agreement import break_ties
from echo_hf.scores.ranks import Resampling, _test_pairs, ratios, sample_taus

# Hollander and Wolfe (1973), pp. 140: seconds of 22 players to round first base in three ways.
ROUNDING_TIMES = np.array([
    5.40, 5.50, 5.55,  5.85, 5.70, 5.75,  5.20, 5.60, 5.50,  5.55, 5.50, 5.40,
    5.90, 5.85, 5.70,  5.45, 5.55, 5.60,  5.40, 5.40, 5.35,  5.45, 5.50, 5.35,
    5.25, 5.15, 5.00,  5.85, 5.80, 5.70,  5.25, 5.20, 5.10,  5.65, 5.55, 5.45,
    5.60, 5.35, 5.45,  5.05, 5.00, 4.95,  5.50, 5.50, 5.40,  5.45, 5.55, 5.50,
    5.55, 5.55, 5.35,  5.45, 5.50, 5.55,  5.50, 5.45, 5.25,  5.65, 5.60, 5.40,
    5.70, 5.65, 5.55,  6.30, 6.30, 6.25,
]).reshape(-1, 3)  # fmt: skip
# The `anxiety` ratings of R's package irr: three raters, twenty people.
ANXIETY = np.array(
    [
        [3, 3, 3, 4, 5, 5, 2, 3, 5, 2, 2, 6, 1, 5, 2, 2, 1, 2, 4, 3],
        [3, 6, 4, 6, 2, 4, 2, 4, 3, 3, 2, 3, 3, 3, 2, 2, 1, 3, 3, 4],
        [2, 1, 4, 4, 3, 2, 1, 6, 1, 1, 1, 2, 3, 3, 1, 1, 3, 3, 2, 2],
    ],
    dtype=float,
)


def test_rounding_first_base() -> None:
    found = friedman(ROUNDING_TIMES)
    assert found.statistic == pytest.approx(11.1428571429, abs=1e-9)
    assert (found.degrees, found.blocks, found.incomplete) == (2, 22, 0)
    assert found.p_value == pytest.approx(0.003805, abs=5e-7)


def test_anxiety_rated_by_three() -> None:
    """What `kendall(anxiety, correct = TRUE)` of R's irr gives, to its last figure."""
    assert kendalls_w(ANXIETY) == pytest.approx(0.53965687595437, abs=1e-14)


@given(
    st.integers(3, 6).flatmap(
        lambda k: st.lists(st.lists(st.integers(0, 4), min_size=k, max_size=k), min_size=2)
    )
)
def test_any_blocks_as_scipy_says(blocks: list[list[int]]) -> None:
    assume(any(len(set(block)) > 1 for block in blocks))
    found, expected = friedman(blocks), friedmanchisquare(*np.array(blocks).T)
    assert found.statistic == pytest.approx(expected.statistic, abs=1e-9)
    assert found.p_value == pytest.approx(expected.pvalue, abs=1e-12)
    assert found.w == pytest.approx(expected.statistic / (len(blocks) * found.degrees), abs=1e-12)


def test_a_block_with_a_gap_is_left_out_and_counted() -> None:
    gap = np.vstack([ROUNDING_TIMES, [[5.0, np.nan, 5.1]]])
    found = friedman(gap)
    assert found.statistic == friedman(ROUNDING_TIMES).statistic
    assert (found.blocks, found.incomplete) == (22, 1)
    assert kendalls_w(gap) == kendalls_w(ROUNDING_TIMES)


@pytest.mark.parametrize("blocks", [[[1, 1, 1], [2, 2, 2]], np.empty((0, 3))])
def test_ties_alone_are_no_evidence(blocks: object) -> None:
    found = friedman(blocks)
    assert (found.statistic, found.p_value, found.w) == (None, None, None)
    assert found.reason is Unscored.NO_ORDER
    assert kendalls_w(blocks) is None
    assert kendalls_w([[1, 2, 3]]) is None


# ECHO's table C.1: z, p, Bonferroni's p, mark.
TABLE_C1 = [
    (4.377, 0.000012, 0.000337, "***"),
    (4.011, 0.000061, 0.001694, "**"),
    (3.418, 0.000631, 0.017675, "*"),
    (3.052, 0.002274, 0.063676, "-"),
]
WAYS = ("round out", "narrow", "wide")


def z_test(z: float) -> PairTest:
    errors = np.full(28, np.inf)
    errors[0] = 1
    return _test_pairs("abcdefgh", np.array([0, z, 0, 0, 0, 0, 0, 0]), errors)[0]


@pytest.mark.parametrize(("z", "p_value", "corrected", "mark"), TABLE_C1)
def test_the_published_table(z: float, p_value: float, corrected: float, mark: str) -> None:
    most, least, half_a_digit = z_test(z - 0.0005), z_test(z + 0.0005), 5.001e-7
    assert least.p_value - half_a_digit <= p_value <= most.p_value + half_a_digit
    assert least.bonferroni - half_a_digit <= corrected <= most.bonferroni + half_a_digit
    assert z_test(z).stars == mark


def by_pair(tests: tuple[PairTest, ...]) -> dict[frozenset[str], PairTest]:
    return {frozenset((one.better, one.worse)): one for one in tests}


# scikit-posthocs 0.17.1, posthoc_dunn and posthoc_siegel_friedman: p values of the pairs
# (0, 1), (0, 2), (1, 2).
@pytest.mark.parametrize(
    ("test", "values", "expected"),
    [
        (dunn, ANXIETY.T, (0.8523677475360022, 0.05180793218586458, 0.03310360511435641)),
        (siegel_castellan, ANXIETY.T, (0.69263278404196, 0.0398326192447415, 0.0142552913557)),
        (dunn, ROUNDING_TIMES, (0.8809202901635685, 0.27311163544970607, 0.21286441763715747)),
        (siegel_castellan, ROUNDING_TIMES, (0.36571229628151, 0.00154620347708074, 0.02373851525)),
    ],
)
def test_p_values_are_those_of_scikit_posthocs(
    test: Any, values: np.ndarray, expected: tuple[float, ...]
) -> None:
    """With ties, raw and adjusted: three times, at most 1, and by the steps of Holm's method."""
    found = by_pair(test(values, WAYS))
    pairs = [found[frozenset(pair)] for pair in combinations(WAYS, 2)]
    assert [one.p_value for one in pairs] == pytest.approx(expected, rel=1e-10)
    assert [one.bonferroni for one in pairs] == pytest.approx([min(1, 3 * p) for p in expected])
    first, second, third = sorted(expected)
    steps = accumulate((3 * first, 2 * second, third), max)
    assert sorted(one.holm for one in pairs) == pytest.approx([min(1, one) for one in steps])


@pytest.mark.parametrize("test", [dunn, siegel_castellan])
def test_what_has_no_value_is_in_no_pair(test: Any) -> None:
    assert test(np.empty((0, 3)), "abc") == ()
    assert test(np.full((2, 3), np.nan), "abc") == ()
    values = np.array([[1.0, 2.0, np.nan], [1.0, 3.0, np.nan]])
    assert [frozenset((one.better, one.worse)) for one in dunn(values, "abc")] == [frozenset("ab")]


VALUES = st.lists(st.integers(-2, 2).map(float) | st.just(float("nan")), min_size=1, max_size=9)


@given(VALUES, st.integers(0, 99))
def test_broken_ties_leave_no_tie_and_no_other_order(values: list[float], seed: int) -> None:
    """Places are 1 to n, and smaller values stay in front of larger ones."""
    found = break_ties(np.array(values), seed)
    there = ~np.isnan(values)
    assert sorted(found[there]) == list(range(1, there.sum() + 1))
    assert np.isnan(found[~there]).all()
    in_order = np.array(values)[there][found[there].argsort()]
    assert (np.diff(in_order) >= 0).all()


def test_two_systems_are_tested_too() -> None:
    """9 of 10 blocks prefer one: the statistic is that of the sign test, (9 - 1)**2 / 10."""
    assert friedman([[1, 2]] * 9 + [[2, 1]]).statistic == pytest.approx(6.4)


RANK = st.integers(1, 4).map(float) | st.just(float("nan"))


def scipy_tau(one: np.ndarray, other: np.ndarray) -> float:
    common = ~np.isnan(one) & ~np.isnan(other)
    if common.sum() < 2:
        return float("nan")
    return float(kendalltau(one[common], other[common]).statistic)


@given(arrays(float, (2, 5, 3), elements=RANK), arrays(float, (2, 5, 3), elements=RANK))
def test_each_sample_is_scipys(ones: np.ndarray, others: np.ndarray) -> None:
    expected = [
        [[scipy_tau(one[:, at], other[:, at]) for at in range(3)] for other in others]
        for one in ones
    ]
    np.testing.assert_allclose(sample_taus(ones, others), expected, atol=1e-12)


def rankings(samples: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    one = rng.integers(0, 4, (samples, 5)).astype(float)
    return one, np.round(one + rng.normal(0, noise, one.shape))


def test_tau_is_the_mean_over_samples_and_pooled_is_of_one_list() -> None:
    """The pooled one ranks within each sample first, as places of a sample are 1 to 5."""
    one, other = rankings(40, 2)
    found = tau_b(one, other)
    single = [scipy_tau(*pair) for pair in zip(one, other, strict=True)]
    assert found.tau == pytest.approx(np.nanmean(single), abs=1e-12)
    assert found.samples == np.isfinite(single).sum()
    whole = kendalltau(rankdata(one, axis=1).ravel(), rankdata(other, axis=1).ravel())
    assert (found.pooled, found.pooled_p) == pytest.approx((whole.statistic, whole.pvalue))
    assert found.interval is not None
    assert found.interval[0] < found.tau < found.interval[1]


def test_ties_alone_have_no_order() -> None:
    """No tau, no p, and a reason; not 0, which would say that there is no agreement."""
    found = tau_b([[1, 1, 1]] * 20, [[1, 2, 3]] * 20)
    assert (found.tau, found.p_value, found.samples, found.pooled) == (None, None, 0, None)
    assert found.reason is Unscored.NO_ORDER


def test_the_interval_of_a_ratio_is_that_of_the_delta_method() -> None:
    rng = np.random.default_rng(1)
    wholes = rng.uniform(1, 3, 300)
    parts = 0.7 * wholes + rng.normal(0, 0.5, 300)
    ratio = parts.sum() / wholes.sum()
    error = (parts - ratio * wholes).std(ddof=1) / np.sqrt(300) / wholes.mean()
    found = ratios(parts[None], wholes[None], Resampling(n_boot=4000))[0]
    assert found.interval == pytest.approx((ratio - 1.968 * error, ratio + 1.968 * error), abs=4e-3)
