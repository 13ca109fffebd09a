"""How often numbers are, as a smooth curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import gaussian_kde

POINTS = 81


def density(values: Sequence[float], low: float, high: float, points: int = POINTS) -> list[float]:
    """A Gaussian kernel density, Scott's bandwidth, as a share of its highest point.

    It is cut at the smallest and the largest number, so that it claims none that are not there.

    Args:
        values: At least two numbers, not all equal.
        low: Where the curve begins.
        high: Where it ends.
        points: How many places it is computed at.

    Returns:
        Heights from 0 to 1, `points` of them.

    Example:
        >>> [round(one, 2) for one in density([0, 1, 1, 2], 0, 2, points=3)]
        [0.61, 1.0, 0.61]
    """
    at = np.linspace(low, high, points)
    heights = gaussian_kde(np.asarray(values, np.float64))(at)
    step = (high - low) / (points - 1)
    outside = (at < min(values) - step) | (at > max(values) + step)
    heights = np.where(outside, 0.0, heights)
    highest = float(heights.max())
    return [float(one / highest) if highest else 0.0 for one in heights]
