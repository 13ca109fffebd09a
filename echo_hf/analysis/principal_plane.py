"""The plane in which points lie widest apart: principal components, the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DIMENSIONS = 2


@dataclass(frozen=True)
class Plane:
    """Points in their principal plane.

    Attributes:
        points: Array [point, 2].
        explained: Shares of the variance along the two axes, 0 to 1.
    """

    points: Floats
    explained: tuple[float, float]


def principal_plane(vectors: NDArray[np.floating]) -> Plane:
    """Projects points onto the two directions of largest variance.

    Args:
        vectors: Array [point, dimension], one dimension or more.

    Returns:
        The points; of each axis the component of largest size is positive, so that the picture is
        not mirrored from one machine to the next.

    Example:
        >>> found = principal_plane(np.array([[0.0, 0.0], [3.0, 0.0], [6.0, 0.0]]))
        >>> found.points.round(6).tolist(), found.explained
        ([[-3.0, 0.0], [0.0, 0.0], [3.0, 0.0]], (1.0, 0.0))
    """
    given = np.asarray(vectors, dtype=np.float64)
    centred = given - given.mean(axis=0) if len(given) else given
    values, directions = np.linalg.eigh(centred.T @ centred)
    axes = directions[:, ::-1][:, :DIMENSIONS]
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.where(axes[largest, range(axes.shape[1])] < 0, -1.0, 1.0)
    points = np.zeros((len(given), DIMENSIONS))
    points[:, : axes.shape[1]] = centred @ axes
    first, second = (_share(values, at) for at in range(DIMENSIONS))
    return Plane(points, (first, second))


def _share(ascending: Floats, at: int) -> float:
    values = np.maximum(ascending[::-1], 0.0)
    total = float(values.sum())
    return float(values[at]) / total if total and at < len(values) else 0.0
