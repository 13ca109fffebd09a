"""Drawings of what the tiny networks take for faces, and what they make of them, by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 128
CELL = 32
GREY = Image.new("RGB", (SIDE, SIDE), (90, 90, 90))
Color = tuple[int, int, int]


def drawn(cells: Mapping[tuple[int, int], Sequence[Color]]) -> Image.Image:
    levels = np.array(GREY)
    levels[-1, -1] = 120
    half = CELL // 2
    for (row, column), quarters in cells.items():
        for number, color in enumerate(quarters):
            top, left = CELL * row + half * (number // 2), CELL * column + half * (number % 2)
            levels[top : top + half, left : left + half] = color
    return Image.fromarray(levels)


def embedding(quarters: Sequence[Color]) -> NDArray[np.float64]:
    return (np.array(quarters, np.float64).T.reshape(-1) - 127.5) / 127.5


def cosine(one: Sequence[Color], other: Sequence[Color]) -> float:
    first, second = embedding(one), embedding(other)
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))
