"""Lists of points: written ones, smooth ones, and leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corpus_scenes.canvas import Point

CURVE_STEPS = 12


def xy(text: str) -> list[Point]:
    """Points written as in a drawing file.

    Example:
        >>> xy("84,106 82.5,-28")
        [(84.0, 106.0), (82.5, -28.0)]
    """
    pairs = (pair.split(",") for pair in text.split())
    return [(float(x), float(y)) for x, y in pairs]


def curve(points: Sequence[Point], closed: bool = False) -> list[Point]:
    """Points of the smooth (Catmull-Rom) curve through the given ones.

    Args:
        points: At least two.
        closed: Whether the curve returns to its start.

    Returns:
        `CURVE_STEPS` points for each stretch.
    """
    count = len(points)
    ends = [points[-1], *points, points[0], points[1]]
    if not closed:
        ends = [points[0], *points, points[-1]]
    stretches = range(count if closed else count - 1)
    path = [
        _between(ends[index : index + 4], step / CURVE_STEPS)
        for index in stretches
        for step in range(CURVE_STEPS)
    ]
    return path if closed else [*path, points[-1]]


def _between(corners: Sequence[Point], share: float) -> Point:
    before, start, end, after = corners
    x, y = (
        0.5
        * (
            2 * b
            + (c - a) * share
            + (2 * a - 5 * b + 4 * c - d) * share**2
            + (3 * b - a - 3 * c + d) * share**3
        )
        for a, b, c, d in zip(before, start, end, after, strict=True)
    )
    return x, y


def leaf(x: float, y: float, length: float, breadth: float, angle: float) -> list[Point]:
    """Outline of a leaf that starts at (x, y) and points along `angle` (degrees, 0 is right)."""
    along, across = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    profile = [(0, 0), (0.3, 0.42), (0.6, 0.5), (1, 0), (0.6, -0.5), (0.3, -0.42)]
    return [
        (
            x + u * length * along - v * breadth * across,
            y + u * length * across + v * breadth * along,
        )
        for u, v in profile
    ]
