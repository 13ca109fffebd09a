"""A picture as a ViT is given it: a small square."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Levels = NDArray[np.uint8]
RESAMPLING = Image.Resampling.BILINEAR


@dataclass(frozen=True, slots=True, eq=False)
class Squashed:
    """A picture as a ViT is given it.

    Attributes:
        pixels: Array [size, size, channel] of levels.
        digest: Of the pixels: pictures that share it look the same to the ViT.
    """

    pixels: Levels
    digest: bytes


def squashed(picture: Image.Image, size: int) -> Squashed:
    """Makes a picture a square, whatever its shape was, in 8 bits.

    Args:
        picture: In mode RGB.
        size: Pixels a side.

    Returns:
        The square, with its digest.

    Example:
        >>> wide = Image.new("RGB", (40, 10), (1, 2, 3))
        >>> squashed(wide, 2).pixels.tolist()
        [[[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [1, 2, 3]]]
        >>> squashed(wide, 2).digest == squashed(wide.resize((8, 8)), 2).digest
        True
    """
    pixels = np.asarray(picture.resize((size, size), RESAMPLING))
    return Squashed(pixels, sha256(pixels.tobytes()).digest())
