"""How far each prompt is from the nearest of others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

AT_ONCE = 1024  # rows; as many similarities as others are in memory for each


@dataclass(frozen=True)
class Nearest:
    """The nearest of others.

    Attributes:
        distance: Array [row], cosine distance from 0 to 2.
        place: Array [row], which of the others it is; the first of equal ones.
    """

    distance: NDArray[np.float64]
    place: NDArray[np.int64]


def nearest(rows: NDArray[np.floating], others: NDArray[np.floating]) -> Nearest:
    """Finds the nearest of others for each row, by comparing it with all of them.

    Args:
        rows: Array [row, dimension], each of length 1.
        others: Array [other, dimension], likewise, one or more.

    Returns:
        Distances and places.

    Example:
        >>> found = nearest(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0], [0.6, 0.8]]))
        >>> found.distance.round(6).tolist(), found.place.tolist()
        ([0.4], [1])
    """
    places, distances = [np.empty(0, np.int64)], [np.empty(0)]
    for start in range(0, len(rows), AT_ONCE):
        alike = rows[start : start + AT_ONCE] @ others.T
        best = alike.argmax(axis=1)
        places.append(best)
        similarity = alike[np.arange(len(best)), best].astype(np.float64)
        distances.append(1.0 - similarity.clip(-1.0, 1.0))
    return Nearest(np.concatenate(distances), np.concatenate(places))
