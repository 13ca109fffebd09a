"""Draws of whole samples, and the intervals that they make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, t

from echo_hf._infra import bootstrap
from echo_hf._infra.bootstrap import compute_interval, draw_weights, generator, tail_share
from echo_hf.errors import ScoreError


def test_each_draw_takes_as_many_samples_as_there_are() -> None:
    (weights,) = draw_weights(20, 4000, seed=0)
    assert (weights.sum(axis=1) == 20).all()
    assert weights.mean(axis=0) == pytest.approx(np.ones(20), abs=0.1)
    assert weights.var(axis=0) == pytest.approx(np.full(20, 19 / 20), abs=0.15)


def test_batches_hold_all_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = draw_weights(20, 7, seed=0)
    monkeypatch.setattr(bootstrap, "CELLS_PER_BATCH", 50)
    batches = list(draw_weights(20, 7, seed=0))
    assert [len(weights) for weights in batches] == [2, 2, 2, 1]
    assert np.array_equal(np.concatenate(batches), whole)


@pytest.mark.parametrize("samples", [2, 10, 26, 400])
def test_the_interval_of_few_samples_is_students(samples: int) -> None:
    """For draws that spread as those of a mean, the ends are where Student's interval has them.

    The draws' standard deviation is that of the samples with n in place of n - 1, by sqrt(n).
    """
    deviation = 3.0
    spread = deviation * np.sqrt((samples - 1) / samples) / np.sqrt(samples)
    end = spread * norm.isf(tail_share(0.025, samples))
    assert end == pytest.approx(t.isf(0.025, samples - 1) * deviation / np.sqrt(samples))


def test_the_ends_are_quantiles_of_the_draws() -> None:
    draws = np.random.default_rng(1).normal(size=2000)
    with_gaps = np.concatenate([draws, [np.nan] * 50])
    tail = tail_share(0.025, 40)
    expected = pytest.approx(np.quantile(draws, [tail, 1 - tail]), rel=1e-14)
    assert compute_interval(with_gaps, 40) == (expected, None)


@pytest.mark.parametrize(
    ("draws", "samples", "reason"),
    [
        ([], 50, "no_draws"),
        ([np.nan, np.nan], 50, "no_draws"),
        ([0.1, 0.2], 9, "few_samples"),
        ([0.3, 0.1 + 0.2], 50, "no_spread"),
    ],
)
def test_what_has_no_interval_has_a_reason(draws: list[float], samples: int, reason: str) -> None:
    assert compute_interval(np.array(draws), samples) == (None, reason)


def test_what_is_no_seed_or_number_of_draws_is_refused() -> None:
    wrong: Any
    for wrong in (-1, "a", 1.5, True, None):
        with pytest.raises(ScoreError, match=f"seed is {wrong!r}: expected a whole number"):
            generator(wrong)
    for wrong in (-1, 2.0, "10"):
        with pytest.raises(ScoreError, match="expected a whole number of draws"):
            list(draw_weights(0, wrong, seed=0))
