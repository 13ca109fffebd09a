"""Kendall's tau-b against scipy's, and means over samples with their intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kendalltau, rankdata

from echo_hf.reasons import Unscored
from echo_hf.scores import tau_b
from echo_hf.scores.rank_correlation import Draws, ratios, sample_taus

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
    found = ratios(parts[None], wholes[None], Draws(n_boot=4000))[0]
    assert found.interval == pytest.approx((ratio - 1.968 * error, ratio + 1.968 * error), abs=4e-3)
