"""The pooled shift: all images as two large ones, drawn sample by sample."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap, norm
from scipy.stats import t as student

from echo_hf.metrics.color_histograms import Integers, histograms
from echo_hf.metrics.color_shift import pool
from tests.metrics.images_for_metrics import Levels, noise, trimmed_mean, trimmed_shift

IMAGES = [
    (noise(seed, size=(5 + seed, 9)), noise(seed + 90, high=230 + 2 * seed, size=(8, 7)))
    for seed in range(12)
]
PAIRS = [np.stack([histograms(one) for one in pair]) for pair in IMAGES]
LEVELS: list[tuple[Levels, Levels]] = [(np.asarray(a), np.asarray(b)) for a, b in IMAGES]
NOTHING: Integers = np.zeros((3, 256), np.int64)


def _shift(samples: list[tuple[Levels, Levels]]) -> float:
    return trimmed_shift([one for one, _ in samples], [one for _, one in samples])


def test_the_shift_is_that_of_all_pixels_together() -> None:
    """Larger images count for more, and each sample alone has its own shift."""
    found = pool(PAIRS, n_boot=0, seed=0)
    assert found.shift == pytest.approx(_shift(LEVELS))
    assert found.per_sample == tuple(pytest.approx(_shift([one])) for one in LEVELS)
    assert found.interval is None


def test_the_interval_draws_samples_with_both_their_sides() -> None:
    """As scipy's paired bootstrap of the pooled shift does, at the level expanded for 12."""
    found = pool(PAIRS, n_boot=20_000, seed=0)
    numbers = np.arange(len(LEVELS))
    expected = bootstrap(
        (numbers,),
        lambda drawn: _shift([LEVELS[at] for at in drawn]),
        vectorized=False,
        confidence_level=1 - 2 * norm.cdf(np.sqrt(12 / 11) * student.ppf(0.025, 11)),
        n_resamples=3000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert found.interval == pytest.approx((expected.low, expected.high), rel=0.04)


def test_what_is_pooled_on_one_side_alone_is_no_sample() -> None:
    """It counts in the mean color of its side, not towards the ten that an interval needs."""
    alone = [np.stack([pair[0], NOTHING]) for pair in PAIRS[:3]]
    nine = pool([*PAIRS[3:], *alone], n_boot=50, seed=0)
    means = [trimmed_mean([one[side] for one in LEVELS[3 * side :]]) for side in (0, 1)]
    assert nine.shift == pytest.approx(np.linalg.norm(means[1] - means[0]))
    assert nine.per_sample[9:] == (None, None, None)
    assert nine.interval is None
    ten = pool([*PAIRS[2:], *alone], n_boot=50, seed=0)
    assert ten.interval is not None


def test_without_images_there_is_no_shift() -> None:
    """And none where a channel has no level that is kept."""
    white = np.zeros((2, 3, 256), np.int64)
    white[:, :, 255] = 9
    for pairs in ([], [white], [white] * 20):
        assert pool(pairs, n_boot=10, seed=0)[:2] == (None, None)
    both = pool([white, PAIRS[0]], n_boot=0, seed=0)
    assert both.shift == both.per_sample[1]
    assert both.per_sample[0] is None
