"""Means and bootstrap intervals: against scipy, and in every order of the samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap, norm
from scipy.stats import t as student

from echo_hf.errors import ScoreError
from echo_hf.metrics.result import mean_of, means_of

VALUES = st.lists(st.none() | st.floats(-1000, 1000), max_size=30)


@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_of_samples_changes_nothing(values: list[float | None], random: object) -> None:
    """Mean and interval are the same to the last bit."""
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = (mean_of(one, n_boot=50, seed=1) for one in (values, shuffled))
    assert (first.value, first.interval) == (second.value, second.interval)
    assert second.per_sample == tuple(shuffled)


@given(VALUES)
def test_missing_numbers_are_no_zeros(values: list[float | None]) -> None:
    """The mean is that of the numbers that there are, and there is none without any."""
    known = [one for one in values if one is not None]
    found = mean_of(values, n_boot=0, seed=0)
    assert found.interval is None
    assert found.value == (pytest.approx(np.mean(known), abs=1e-9) if known else None)


def test_the_interval_is_that_of_scipy() -> None:
    """A percentile bootstrap at the level that is expanded for 200 samples, up to chance."""
    values = np.random.default_rng(4).gamma(2.0, 3.0, 200)
    found = mean_of(values.tolist(), n_boot=20_000, seed=0).interval
    expected = bootstrap(
        (values,),
        np.mean,
        confidence_level=1 - 2 * norm.cdf(np.sqrt(200 / 199) * student.ppf(0.025, 199)),
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(9),
    ).confidence_interval
    assert found == pytest.approx((expected.low, expected.high), abs=0.02)


@pytest.mark.parametrize("samples", [10, 20])
def test_intervals_of_few_samples_hold_the_truth(samples: int) -> None:
    """95 times in 100: 2,500 trials leave a standard error of 0.44, of which three are allowed."""
    trials, truth = 2500, 3.0
    values = np.random.default_rng(samples).normal(truth, 2.0, (trials, samples)).tolist()
    held = 0
    for seed, sample in enumerate(values):
        low, high = mean_of(sample, n_boot=1000, seed=seed).interval or (truth, truth)
        held += low < truth < high
    assert held / trials == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / trials))


def test_the_same_seed_gives_the_same_interval() -> None:
    """And another seed another one."""
    values = np.random.default_rng(4).normal(size=30).tolist()
    first, again, other = (mean_of(values, n_boot=200, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first.interval != other.interval


@pytest.mark.parametrize("values", [[1.0, 2.0] * 4 + [3.0], [5.0] * 40, [None] * 40, []], ids=repr)
def test_what_says_nothing_of_others_has_no_interval(values: list[float | None]) -> None:
    """Nine samples, samples that are all the same, and none at all."""
    assert mean_of(values, n_boot=100, seed=0).interval is None


def test_ten_samples_have_an_interval() -> None:
    """The first number of samples that has one."""
    low, high = mean_of([float(n) for n in range(10)], n_boot=500, seed=0).interval or (0, 0)
    assert 0 < low < 4.5 < high < 9


@pytest.mark.parametrize("n_boot", [-1, 2.5, "9", None])
def test_draws_are_a_number(n_boot: object) -> None:
    """Also where there is nothing to draw."""
    for values in ([1.0, 2.0], []):
        with pytest.raises(ScoreError, match=r"n_boot is .*: expected a whole number of draws"):
            mean_of(values, n_boot=n_boot, seed=0)  # type: ignore[arg-type]


def test_several_numbers_are_each_a_mean() -> None:
    """A sample without them has none of them."""
    first, second = means_of([(1.0, -1.0), None, (3.0, -5.0)], 2, n_boot=0, seed=0)
    assert (first.value, first.per_sample) == (2.0, (1.0, None, 3.0))
    assert (second.value, second.per_sample) == (-3.0, (-1.0, None, -5.0))
