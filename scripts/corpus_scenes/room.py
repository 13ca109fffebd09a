"""A small bedroom at night, drawn without a vanishing point."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corpus_scenes.brushes import Disc, Fade, Glow, Placed, Scatter, Shape, Stroke
from corpus_scenes.canvas import Brush, Point, Scene
from corpus_scenes.outlines import xy

WOOD = ("#b9825a", "#8a5b3c", "#9d6a46")
LINEN = ("#f7f1ff", "#cbbfe0", "#ded3ee")


def iso(x: float, y: float, z: float) -> Point:
    """Where a point of the room lies in the image: x to the right, y to the left, z up."""
    return 192 + (x - y) * 0.866, 214 + (x + y) * 0.5 - z


def block(at: Sequence[float], size: Sequence[float], colors: Sequence[str]) -> list[Brush]:
    """A box in the room; its colors are those of the top, the left and the right side."""
    (x, y, z), (w, d, h) = at, size
    top = [iso(x, y, z + h), iso(x + w, y, z + h), iso(x + w, y + d, z + h), iso(x, y + d, z + h)]
    left = [iso(x, y + d, z + h), iso(x + w, y + d, z + h), iso(x + w, y + d, z), iso(x, y + d, z)]
    right = [iso(x + w, y, z + h), iso(x + w, y + d, z + h), iso(x + w, y + d, z), iso(x + w, y, z)]
    return [Shape(side, fill) for side, fill in zip((top, left, right), colors, strict=True)]


LAMP = (
    Disc(0, 0, 7, "#3a2f4a", ry=3.5),
    Stroke([(0, 0), (0, -14)], "#3a2f4a", 2.5),
    Shape(xy("-12,-12 12,-12 7,-30 -7,-30"), "#ffe29a"),
    Disc(0, -12, 12, "#fff4d0", ry=3),
)


def wall(points: Sequence[tuple[float, float, float]], fill: str) -> Shape:
    """A flat piece of the room."""
    return Shape([iso(*point) for point in points], fill)


def rug(radius: float, fill: str) -> Shape:
    """A round rug on the floor."""
    turns = [math.tau * step / 36 for step in range(36)]
    edge = [iso(105 + radius * math.cos(t), 118 + radius * math.sin(t), 1) for t in turns]
    return Shape(edge, fill)


def shell(left: str, right: str) -> list[Brush]:
    """Floor and walls."""
    rim = [(0, 0), (160, 0), (160, -6), (-6, -6), (-6, 160), (0, 160)]
    return [
        *block((-6, -6, -10), (166, 166, 10), ("#71597f", "#3d3054", "#4a3b63")),
        wall([(0, 0, 0), (160, 0, 0), (160, 0, 130), (0, 0, 130)], right),
        wall([(0, 0, 0), (0, 160, 0), (0, 160, 130), (0, 0, 130)], left),
        wall([(x, y, 130) for x, y in rim], "#d9c9ee"),
        *(Stroke([iso(0, y, 0), iso(160, y, 0)], "#5c4a6b", 1.2) for y in range(20, 160, 20)),
    ]


WINDOW = (
    wall([(0, 44, 48), (0, 116, 48), (0, 116, 112), (0, 44, 112)], "#f1e8fb"),
    wall([(0, 49, 53), (0, 111, 53), (0, 111, 107), (0, 49, 107)], "#1b2a5e"),
    Disc(*iso(0, 84, 86), 11, "#fff3c9"),
    Disc(*iso(0, 80, 89), 9.5, "#1b2a5e"),
    Stroke([iso(0, 80, 53), iso(0, 80, 107)], "#f1e8fb", 2.5),
    Stroke([iso(0, 49, 80), iso(0, 111, 80)], "#f1e8fb", 2.5),
)
DESK = (
    *block((92, 6, 0), (5, 34, 42), WOOD),
    *block((148, 6, 0), (5, 34, 42), WOOD),
    *block((88, 4, 42), (70, 40, 5), WOOD),
    *block((96, 12, 47), (18, 24, 4), ("#d96b6b", "#a44848", "#b95555")),
    Glow(*iso(136, 20, 62), 62, "#ffd98088"),
    Placed(LAMP, *iso(136, 20, 47)),
    *block((112, 62, 0), (22, 22, 22), ("#8a74b8", "#57467f", "#6a5796")),
)


def room(walls: tuple[str, str], carpet: str, blanket: Sequence[str]) -> Scene:
    """A bedroom at night, seen from a corner."""
    bed = [
        *block((8, 90, 0), (62, 62, 12), WOOD),
        *block((10, 92, 12), (60, 58, 12), LINEN),
        *block((30, 91, 14), (42, 61, 14), blanket),
        *block((13, 98, 24), (14, 46, 8), ("#ffffff", "#d8cdea", "#e8dff5")),
    ]
    night = [Fade("#171532", "#2a2450"), Scatter(60, (0, 0, 384, 384), 1.2, "#ffffff55", seed=9)]
    floor = [rug(34, carpet), rug(21, "#ffffff55")]
    return Scene((384, 384), [*night, *shell(*walls), *WINDOW, *floor, *bed, *DESK])


SCENES = {
    "iso_room.png": room(("#8f79b8", "#a48fc9"), "#e8a0a8", ("#e0b03a", "#a87c1c", "#c4942a")),
    "iso_room_green.png": room(
        ("#789f90", "#8fb5a6"), "#f0d9a8", ("#d9a637", "#9c741d", "#bb8c28")
    ),
}
