"""Find the signatures that may have the colours of another, without comparing all with all.

The mean over a part of a picture differs by no more than the mean of what its blocks may differ
by. So whatever has the same colours is near in the means of a few large cells, and a tree of those
finds it; what the tree finds besides is for the full comparison to drop.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from echo_hf.collect.block_signature import BLOCKS, EDGES, FLAT, Contrasts, Means

CELLS = 4
# How much may differ grows with contrast: among pictures with little of it, less is near.
BANDS = (1.0, 2.0, 4.0, 8.0)
ROUNDING = 1e-3


class SignatureIndex:
    """An index of signatures.

    Args:
        means: Means of all signatures, along the first axis.
        contrasts: Their contrasts.
    """

    def __init__(self, means: Means, contrasts: Contrasts) -> None:
        self._places = _cells(means)
        # The most that edges allow anywhere in the picture.
        self._slack = (_cells(contrasts) * np.tile(EDGES, CELLS * CELLS)).max(-1, initial=0.0)
        bands = np.digitize(self._slack, BANDS)
        self._members = [np.flatnonzero(bands == band) for band in np.unique(bands)]
        self._trees = [cKDTree(self._places[members]) for members in self._members]

    def near(self, number: int) -> list[int]:
        """Those that may have the same colours.

        Args:
            number: Number of a signature.

        Returns:
            Numbers in order, without its own; none with the same colours is left out.
        """
        found: set[int] = set()
        for members, tree in zip(self._members, self._trees, strict=True):
            reach = FLAT + (self._slack[number] + self._slack[members].max()) / 2 + ROUNDING
            near = tree.query_ball_point(self._places[number], reach, p=np.inf)
            found.update(members[near].tolist())
        return sorted(found - {number})


def _cells(blocks: Means | Contrasts) -> NDArray[np.float64]:
    """Means over the cells of each picture, cell by cell and channel by channel in one row."""
    side = BLOCKS // CELLS
    split = blocks.reshape(len(blocks), CELLS, side, CELLS, side, -1)
    means: NDArray[np.float64] = split.mean((2, 4), dtype=np.float64)
    return means.reshape(len(blocks), CELLS * CELLS * blocks.shape[-1])
