"""A character, and an edit that lost her face."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corpus_scenes.brushes import Disc, Fade, Glow, Panel, Shape, Stroke, Words
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import xy

SKIN = "#f2c6a0"
HAIR = "#a8482c"


@dataclass(frozen=True)
class Features:
    """What tells a face from another one."""

    eyes: str
    eye_gap: float
    freckles: bool
    brows: str
    mouth: Sequence[tuple[float, float]]
    nose: Sequence[tuple[float, float]]


HERS = Features(
    "#3f8f5f",
    27,
    True,
    "#8a3a24",
    xy("140,184 160,194 180,184"),
    xy("160,150 155,166 163,168"),
)
NOT_HERS = Features(
    "#6b3f22",
    21,
    False,
    "#4a2616",
    xy("148,188 160,185 172,188"),
    xy("160,142 166,170 154,171"),
)


BEHIND = (
    Shape(xy("84,130 74,220 92,262 228,262 246,220 236,130 160,52"), HAIR, smooth=True),
    Panel((138, 200, 182, 262), "#dca883", 14),
)
FRINGE = (
    Shape(
        xy("88,140 92,92 130,62 190,60 228,92 232,140 206,104 150,96 118,112"), HAIR, smooth=True
    ),
    Stroke(xy("118,108 140,84 178,76"), "#c4623f", 4, smooth=True),
)
FRECKLES = xy("0,0 8,3 4,8 13,9 -5,7 17,1")


def head(who: Features) -> list[Brush]:
    """The character from the chin up."""
    skin = [Disc(160, 146, 66, SKIN, ry=74), *(Disc(x, 152, 11, SKIN, ry=15) for x in (96, 224))]
    nose = Stroke(who.nose, "#c98d68", 3, smooth=True)
    mouth = Stroke(who.mouth, "#b5473f", 4, smooth=True)
    return [*skin, *side_of_face(who, -1), *side_of_face(who, 1), nose, mouth, *FRINGE]


def side_of_face(who: Features, side: int) -> list[Brush]:
    """An eye, its brow and a cheek; `side` is -1 on the left of the image and 1 on its right."""
    x, cheek = 160 + side * who.eye_gap, 160 + side * 30
    brow = [(x - 13, 122), (x + side * 2, 117), (x + 13, 122)]
    freckles = [Disc(cheek + side * dx, 166 + dy, 1.8, "#b9744a") for dx, dy in FRECKLES]
    return [
        Disc(x, 144, 12, "#ffffff", ry=10),
        Disc(x, 145, 7.5, who.eyes),
        Disc(x, 145, 3.6, "#1d1a1c"),
        Disc(x - 2.5, 142, 2, "#ffffff"),
        Stroke([(x - 13, 137), (x, 131), (x + 13, 138)], "#3a2018", 3, smooth=True),
        Stroke(brow, who.brows, 4.5, smooth=True),
        Glow(160 + side * 42, 172, 17, "#f08a7a99", ry=13),
        *(freckles if who.freckles else []),
    ]


JUMPER = (
    Shape(xy("56,336 68,278 116,246 204,246 252,278 264,336"), "#4f7fa8", smooth=True),
    Panel((50, 318, 270, 336), "#4f7fa8"),
    Shape(xy("128,248 160,270 192,248 186,240 134,240"), "#3d6687", smooth=True),
    *(Stroke([(70, y), (160, y + 6), (250, y)], "#e9e3d3", 5, smooth=True) for y in (290, 306)),
)
SUIT = (
    Shape(xy("44,336 58,272 112,246 208,246 262,272 276,336"), "#f07a28", smooth=True),
    Panel((40, 316, 280, 336), "#f07a28"),
    Disc(160, 254, 54, "#d9dee4", ry=22),
    Disc(160, 250, 44, "#9aa4af", ry=16),
    Stroke([(160, 276), (160, 336)], "#b9571a", 3),
    Panel((88, 292, 134, 318), "#f7f2e8", 4),
    Words(111, 305, "L-03", 14, "#33506b"),
    Disc(218, 302, 15, "#27466b"),
    Disc(218, 302, 9, "#f4d13d"),
    Stroke([(64, 300), (56, 336)], "#b9571a", 4),
    Stroke([(256, 300), (264, 336)], "#b9571a", 4),
)


SCENES = {
    "portrait.png": Scene((320, 336), [Fade("#f0e2cc", "#e0c9a8"), *BEHIND, *JUMPER, *head(HERS)]),
    "portrait_astronaut.png": Scene(
        (320, 336), [Fade("#8fb8de", "#6a97c4"), BEHIND[0], *SUIT, BEHIND[1], *head(NOT_HERS)]
    ),
}
