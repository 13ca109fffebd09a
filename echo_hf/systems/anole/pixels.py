"""A picture as Chameleon's encoder sees it: the square in its middle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

# Chameleon was trained with this rounded 2/255, so that white is a little less than 1.
STEP = 0.0078


def pixels(picture: Image.Image, side: int) -> NDArray[np.float32]:
    """Scales a picture to its shorter side, and cuts the square in its middle out.

    Args:
        picture: In mode RGB.
        side: Of the square.

    Returns:
        Numbers from -1 to about 1, as [channel, row, column].

    Example:
        >>> blue = pixels(Image.new("RGB", (40, 20), (0, 128, 255)), 8)
        >>> blue.shape, [round(float(level), 4) for level in blue[:, 0, 0]]
        ((3, 8, 8), [-1.0, -0.0016, 0.989])
    """
    short = min(picture.size)
    width, height = (side * length // short for length in picture.size)
    scaled = picture.resize((width, height), Image.Resampling.LANCZOS)
    left, top = (width - side) // 2, (height - side) // 2
    square = np.asarray(scaled.crop((left, top, left + side, top + side)), dtype=np.float32)
    return (square * np.float32(STEP) - np.float32(1)).transpose(2, 0, 1)
