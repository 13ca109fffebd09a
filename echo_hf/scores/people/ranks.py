"""Ranks as arrays: from any values to places, with what ties share."""

from __future__ import annotations

import numpy as np

from echo_hf.bootstrap import generator
from echo_hf.scores.arrays import Floats


def mid_ranks(values: Floats) -> Floats:
    """Places along the last axis, 1 for the smallest value; ties share the mean of theirs.

    Args:
        values: Array [..., system], NaN where there is none.

    Returns:
        Array of the same shape, NaN where there is no value.

    Example:
        >>> mid_ranks(np.array([3.0, 1.0, 3.0, np.nan])).tolist()
        [2.5, 1.0, 2.5, nan]
    """
    one, other = values[..., :, None], values[..., None, :]
    below, equal = (one > other).sum(axis=-1), (one == other).sum(axis=-1)
    return np.asarray(np.where(np.isnan(values), np.nan, below + (equal + 1) / 2))


def without_ties(values: Floats, seed: int) -> Floats:
    """Places along the last axis, where chance puts equal values in an order.

    Args:
        values: Array [..., system], NaN where there is none.
        seed: Of the draws.

    Returns:
        Array of the same shape of 1, 2, 3 and so on, NaN where there is no value.

    Raises:
        ScoreError: The seed is none.

    Example:
        >>> sorted(without_ties(np.array([5.0, 5.0, 1.0]), seed=0).tolist())
        [1.0, 2.0, 3.0]
        >>> without_ties(np.array([5.0, np.nan, 1.0]), seed=0).tolist()
        [2.0, nan, 1.0]
    """
    chance = generator(seed).random(values.shape)
    places = np.lexsort((chance, values), axis=-1).argsort(axis=-1) + 1.0
    return np.asarray(np.where(np.isnan(values), np.nan, places))
