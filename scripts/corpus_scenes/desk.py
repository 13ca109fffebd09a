"""A sad desk, and the same desk full of plants."""

from __future__ import annotations

from collections.abc import Sequence

from corpus_scenes.brushes import Disc, Fade, Glow, Panel, Placed, Shape, Sheet, Stroke
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import leaf, xy

ROOM: Sequence[Brush] = (
    Fade("#c4c8cc", "#b0b5ba"),
    Panel((0, 196, 384, 214), "#c9b497"),
    Panel((0, 212, 384, 218), "#9c8868"),
    Fade("#8a8f96", "#74797f", (0, 218, 384, 288)),
    *(Panel((x, 216, x + 12, 288), "#7a6a52") for x in (24, 348)),
    Stroke(xy("200,196 204,236 240,262 250,288"), "#2f3236", 3, smooth=True),
    Stroke(xy("186,196 190,250 150,270 140,288"), "#2f3236", 3, smooth=True),
)
THINGS: Sequence[Brush] = (
    Sheet([Disc(196, 198, 60, "#00000055", ry=5)], blur=3),
    Panel((184, 160, 208, 192), "#4a4e54"),
    Disc(196, 194, 34, "#4a4e54", ry=5),
    Panel((118, 70, 274, 166), "#2b2e33", 6),
    Panel((126, 78, 266, 154), "#5f8fae"),
    Shape(xy("126,154 170,112 204,138 232,106 266,154"), "#4a7590"),
    Disc(66, 193, 22, "#33373c", ry=5),
    Stroke(xy("66,192 58,136 92,100"), "#33373c", 5),
    Shape(xy("82,88 110,108 92,124 74,106"), "#e0a33a", smooth=True),
    Glow(104, 128, 40, "#fff3c099"),
    Panel((306, 168, 332, 196), "#c9533f", 4),
    Disc(335, 181, 9, None, line="#c9533f", width=4),
    Panel((120, 188, 174, 195), "#e3e1da", 2),
)


def fern(x: float, y: float, size: float) -> Placed:
    """A plant in a pot that stands at (x, y)."""
    leaves = [
        Shape(leaf(0, -24, 46, 17, angle), fill, smooth=True)
        for angle, fill in (
            (-170, "#3f7f4a"),
            (-10, "#3f7f4a"),
            (-150, "#4f9a58"),
            (-30, "#4f9a58"),
            (-125, "#5fae62"),
            (-55, "#5fae62"),
            (-90, "#74c074"),
        )
    ]
    pot = [
        Shape(xy("-16,-26 16,-26 12,0 -12,0"), "#c97a52"),
        Panel((-18, -30, 18, -22), "#b5653f", 2),
    ]
    return Placed([*leaves, *pot], x, y, size)


def vine(x: float, length: float, sway: float) -> list[Brush]:
    """A vine that hangs from the ceiling."""
    stem = [(x + (sway if n % 2 else -sway), n * length / 4) for n in range(5)]
    marks: list[Brush] = [Stroke(stem, "#3f7f4a", 2.6, smooth=True)]
    for n, (left, top) in enumerate(stem[1:]):
        marks.append(Shape(leaf(left, top, 17, 12, 40 if n % 2 else 140), "#5fae62", smooth=True))
        marks.append(
            Shape(leaf(left, top - 7, 14, 10, 150 if n % 2 else 30), "#4f9a58", smooth=True)
        )
    return marks


JUNGLE: Sequence[Brush] = (
    *(
        mark
        for x, long, sway in (
            (16, 130, 5),
            (52, 78, 4),
            (196, 48, 3),
            (250, 60, 5),
            (300, 110, 5),
            (340, 140, 4),
            (372, 96, 3),
        )
        for mark in vine(x, long, sway)
    ),
    fern(28, 197, 1.05),
    fern(286, 197, 0.42),
    fern(366, 197, 0.75),
    fern(98, 197, 0.55),
    fern(246, 197, 0.5),
    fern(70, 284, 1.3),
    fern(310, 286, 1.5),
)

SCENES = {
    "desk_plain.jpg": Scene((384, 288), [*ROOM, *THINGS]),
    "desk_jungle.jpg": Scene((384, 288), [*ROOM, *THINGS, *JUNGLE]),
}
