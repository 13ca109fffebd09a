"""What histograms of levels say about colors; each function takes many of them at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

CHANNELS, LEVELS = 3, 256
FIRST_LEVEL, LAST_LEVEL = 5, 250
_EVERY_LEVEL = np.arange(LEVELS)


def histograms(image: Image.Image) -> Integers:
    """How many pixels have each level."""
    return np.array(image.histogram(), np.int64).reshape(CHANNELS, LEVELS)


def kept_pixels(counts: Integers, first: int = FIRST_LEVEL, last: int = LAST_LEVEL) -> Integers:
    """Of the pixels within a range of levels: how many, and the sum of their levels."""
    kept = counts[..., first : last + 1]
    return np.stack([kept.sum(-1), kept @ _EVERY_LEVEL[first : last + 1]], axis=-1)


def mean_levels(pixels: ArrayLike) -> Floats:
    numbers, sums = np.moveaxis(np.asarray(pixels, np.float64), -1, 0)
    means: Floats = np.full(numbers.shape, np.nan)
    np.divide(sums, numbers, out=means, where=numbers > 0)
    return means


def color_distance(first: ArrayLike, second: ArrayLike) -> Floats:
    """How far apart two mean colors are: the Euclidean distance of their levels."""
    found: Floats = np.linalg.norm(np.asarray(second, float) - np.asarray(first, float), axis=-1)
    return found


def wasserstein(first: Integers, second: Integers) -> Floats:
    """How far the levels of one image's pixels have to be moved to become the other's."""
    one, two = (np.cumsum(counts, axis=-1) for counts in (first, second))
    apart: Floats = np.abs(one / one[..., -1:] - two / two[..., -1:]).sum(-1)
    return apart
