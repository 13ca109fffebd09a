"""Colors as people see them: CIELAB, and the distance between two colors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# IEC 61966-2-1: the light of the three channels as XYZ.
_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
_OF_WHITE = _XYZ / _XYZ.sum(axis=1, keepdims=True)


def lab_of(levels: ArrayLike) -> Floats:
    """Levels of sRGB (IEC 61966-2-1) as CIELAB."""
    share = np.asarray(levels, np.float64) / 255
    light = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    of_white = light @ _OF_WHITE.T
    bent = np.where(of_white > 216 / 24389, np.cbrt(of_white), (24389 / 27 * of_white + 16) / 116)
    x, y, z = np.moveaxis(bent, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def ciede2000(first: ArrayLike, second: ArrayLike) -> Floats:
    """How different two colors look: CIEDE2000 (CIE 142-2001), with all weights 1."""
    (l_1, a_1, b_1), (l_2, a_2, b_2) = (
        np.moveaxis(np.asarray(one, np.float64), -1, 0) for one in (first, second)
    )
    stretch = 1.5 - _near_grey((np.hypot(a_1, b_1) + np.hypot(a_2, b_2)) / 2) / 2
    c_1, c_2 = np.hypot(stretch * a_1, b_1), np.hypot(stretch * a_2, b_2)
    chroma = (c_1 + c_2) / 2
    squared = ((l_1 + l_2) / 2 - 50) ** 2
    lightness = (l_2 - l_1) / (1 + 0.015 * squared / np.sqrt(20 + squared))
    strength = (c_2 - c_1) / (1 + 0.045 * chroma)
    # The mean of both hues, and the shorter way from one to the other.
    whole = 2 * np.pi
    hue_1, hue_2 = (np.arctan2(b, stretch * a) for a, b in ((a_1, b_1), (a_2, b_2)))
    turn = hue_2 % whole - hue_1 % whole
    turn = np.where(turn > np.pi, turn - whole, np.where(turn < -np.pi, turn + whole, turn))
    hue = np.degrees(hue_1 + turn / 2) % 360
    waves = np.multiply.outer(hue, [1, 2, 3, 4]) + np.array([-30, 0, 6, -63])
    weight = 1 + np.cos(np.radians(waves)) @ np.array([-0.17, 0.24, 0.32, -0.20])
    # Of a grey there is no hue, and this is 0.
    shade = 2 * np.sqrt(c_1 * c_2) * np.sin(turn / 2) / (1 + 0.015 * chroma * weight)
    angle = 60 * np.exp(-(((hue - 275) / 25) ** 2))
    rotation = -2 * _near_grey(chroma) * np.sin(np.radians(angle))
    squares = lightness**2 + strength**2 + shade**2 + rotation * strength * shade
    found: Floats = np.sqrt(np.maximum(squares, 0.0))  # rounding may leave a little less than 0
    return found


def _near_grey(chroma: Floats) -> Floats:
    return np.sqrt(chroma**7 / (chroma**7 + 25.0**7))
