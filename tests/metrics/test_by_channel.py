"""The distance of two histograms, channel by channel."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from echo_hf.metrics.color_histograms import histograms
from echo_hf.metrics.color_shift import wasserstein_of
from tests.metrics.images_for_metrics import noise


def test_each_channel_is_the_mean_of_scipys_distances() -> None:
    """Over the samples that count, with an interval."""
    images = [(noise(seed), noise(seed + 50, high=150 + seed)) for seed in range(12)]
    pairs = [np.stack([histograms(one) for one in pair]) for pair in images]
    found = wasserstein_of([*pairs, None], n_boot=300, seed=0)
    for channel, estimate in enumerate((found.red, found.green, found.blue)):
        expected = [
            wasserstein_distance(*(np.asarray(one)[..., channel].ravel() for one in pair))
            for pair in images
        ]
        assert estimate.per_sample == (*(pytest.approx(one) for one in expected), None)
        assert estimate.value == pytest.approx(np.mean(expected))
        assert estimate.interval is not None
        assert estimate.interval[0] < np.mean(expected) < estimate.interval[1]


def test_contrast_is_seen_where_the_mean_stays() -> None:
    """Half black and half white is 127.5 levels away from grey, whose mean it nearly has."""
    counts = np.zeros((2, 3, 256), np.int64)
    counts[0, :, 128] = 10
    counts[1, :, [0, 255]] = 5
    found = wasserstein_of([counts], n_boot=0, seed=0)
    assert (found.red.value, found.green.value, found.blue.value) == (127.5, 127.5, 127.5)
