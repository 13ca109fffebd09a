"""Means over samples, with intervals that take samples for what is independent."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from echo_hf.reasons import Unscored
from echo_hf.scores.rank_correlation import Draws, means, ratios


def test_the_interval_of_a_mean_is_about_students() -> None:
    """Of 200 normal values; samples without a value change nothing."""
    values = np.random.default_rng(0).normal(3, 1, 200)
    low, high = student.interval(0.95, 199, values.mean(), values.std(ddof=1) / np.sqrt(200))
    rows = np.vstack([np.append(values, np.full(20, np.nan)), np.append(values, np.zeros(20))])
    found = means(rows, Draws(n_boot=4000))
    assert found[0].value == pytest.approx(values.mean())
    assert found[0].samples == 200
    assert found[0].interval == pytest.approx((low, high), abs=0.02)
    assert found[1].samples == 220


def test_a_ratio_is_of_two_sums_over_the_same_samples() -> None:
    """(1 + 3) / (2 + 6); the third sample has no value, whatever its whole is."""
    found = ratios(np.array([[1.0, 3.0, np.nan]]), np.array([[2.0, 6.0, 9.0]]), Draws(n_boot=0))[0]
    assert (found.value, found.samples, found.interval) == (0.5, 2, None)


def test_the_interval_of_a_ratio_is_that_of_the_delta_method() -> None:
    """Of 300 samples whose parts rise with their wholes."""
    rng = np.random.default_rng(1)
    wholes = rng.uniform(1, 3, 300)
    parts = 0.7 * wholes + rng.normal(0, 0.5, 300)
    ratio = parts.sum() / wholes.sum()
    error = (parts - ratio * wholes).std(ddof=1) / np.sqrt(300) / wholes.mean()
    found = ratios(parts[None], wholes[None], Draws(n_boot=4000))[0]
    assert found.interval == pytest.approx((ratio - 1.968 * error, ratio + 1.968 * error), abs=4e-3)


@pytest.mark.parametrize(
    ("values", "draws", "reason"),
    [
        ([np.nan] * 12, 100, Unscored.NO_ORDER),
        ([1.0, 2.0] * 4, 100, Unscored.FEW_SAMPLES),
        ([1.0] * 12, 100, Unscored.NO_SPREAD),
        ([1.0, 2.0] * 6, 0, Unscored.NO_DRAWS),
        ([1.0, 2.0] * 6, 100, None),
    ],
)
def test_no_interval_has_a_reason(values: list[float], draws: int, reason: Unscored | None) -> None:
    """And an interval has none."""
    found = means(np.array([values]), Draws(n_boot=draws))[0]
    assert found.reason is reason
    assert (found.interval is None) == (reason is not None)
    assert (found.value is None) == (reason is Unscored.NO_ORDER)
