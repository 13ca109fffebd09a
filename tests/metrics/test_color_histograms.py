"""What histograms say, against numpy's and scipy's own counts of the pixels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from PIL import Image
from scipy.stats import wasserstein_distance

from echo_hf.metrics.color_histograms import (
    color_distance,
    histograms,
    kept_pixels,
    mean_levels,
    pooled,
    wasserstein,
)
from tests.metrics.published_colors import INPUTS, PUBLISHED

Levels = NDArray[np.uint8]
IMAGES = arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3)))


@pytest.mark.parametrize("system", PUBLISHED)
def test_the_published_shifts_follow_from_the_published_colors(system: str) -> None:
    """All eight, to the two decimals that are printed."""
    color, shift = PUBLISHED[system]
    assert round(float(color_distance(INPUTS, color)), 2) == shift


@given(IMAGES)
def test_levels_are_counted_as_numpy_counts_them(levels: Levels) -> None:
    """Every channel on its own."""
    expected = [np.bincount(one.ravel(), minlength=256) for one in np.moveaxis(levels, -1, 0)]
    assert np.array_equal(histograms(Image.fromarray(levels)), expected)


@given(IMAGES, st.integers(0, 255), st.integers(0, 255))
def test_means_are_those_of_the_pixels_within_the_range(
    levels: Levels, first: int, last: int
) -> None:
    """Both ends belong to it, and a channel without such pixels has no mean."""
    found = mean_levels(kept_pixels(histograms(Image.fromarray(levels)), first, last))
    for channel, mean in enumerate(found):
        values = levels[..., channel]
        kept = values[(values >= first) & (values <= last)]
        assert mean == pytest.approx(kept.mean() if len(kept) else np.nan, nan_ok=True)


def test_levels_from_5_to_250_are_kept() -> None:
    """Of the two levels at each end, one counts."""
    ends = np.array([[[4] * 3, [5] * 3, [250] * 3, [251] * 3]], np.uint8)
    assert kept_pixels(histograms(Image.fromarray(ends))).tolist() == [[2, 255]] * 3


@given(IMAGES, IMAGES)
def test_the_distance_is_scipys(first: Levels, second: Levels) -> None:
    """Of any two images, of whatever sizes."""
    found = wasserstein(*(histograms(Image.fromarray(one)) for one in (first, second)))
    expected = [
        wasserstein_distance(first[..., channel].ravel(), second[..., channel].ravel())
        for channel in range(3)
    ]
    assert found == pytest.approx(expected, abs=1e-9)


@given(IMAGES, IMAGES)
def test_the_distance_is_never_less_than_how_far_the_mean_moves(
    first: Levels, second: Levels
) -> None:
    """And it is the same in both directions."""
    one, two = (histograms(Image.fromarray(levels)) for levels in (first, second))
    means = [levels.reshape(-1, 3).mean(axis=0) for levels in (first, second)]
    assert (wasserstein(one, two) >= np.abs(means[0] - means[1]) - 1e-9).all()
    assert wasserstein(one, two) == pytest.approx(wasserstein(two, one))


@given(st.lists(IMAGES, max_size=4))
def test_pooled_images_are_one(several: list[Levels]) -> None:
    """The counts of all pixels laid side by side."""
    pixels = np.concatenate([np.empty((0, 3), np.uint8), *(one.reshape(-1, 3) for one in several)])
    found = pooled([histograms(Image.fromarray(one)) for one in several])
    assert np.array_equal(found, [np.bincount(one, minlength=256) for one in pixels.T])


def test_a_large_image_does_not_overflow() -> None:
    """As many white pixels as are decoded at all, ten times over."""
    counts = np.zeros((3, 256), np.int64)
    counts[:, 250] = 10 * 100_000_000
    assert mean_levels(kept_pixels(counts)).tolist() == [250.0] * 3
