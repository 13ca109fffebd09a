"""Enamel pins with a gold outline, on cloth."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corpus_scenes.brushes import Disc, Fade, Glow, Panel, Placed, Scatter, Shape, Sheet, Stroke
from corpus_scenes.canvas import Brush, Point, Scene
from corpus_scenes.outlines import xy

GOLD = "#d8a63c"
LIGHT = "#ffffff66"


def spines() -> list[Point]:
    """The zigzag back of a hedgehog."""
    edge = []
    for step in range(27):
        turn = math.radians(165 + step * 8.6)
        reach = 78 if step % 2 else 62
        edge.append((148 + reach * math.cos(turn), 200 + reach * 0.92 * math.sin(turn)))
    return [*edge, (210, 236), (90, 236)]


HEDGEHOG: Sequence[Brush] = (
    Shape(spines(), "#7a4a35", GOLD, 5),
    *(
        Stroke([(x, y), (x - 5, y - 12)], "#a56d50", 3)
        for x, y in xy("110,206 128,186 150,176 118,228 138,212 158,200 172,182 150,226")
    ),
    Shape(xy("168,182 206,184 240,218 226,238 130,240 140,214"), "#f3dcbc", GOLD, 5, smooth=True),
    Disc(200, 206, 5.5, "#2b1d1a"),
    Disc(201.5, 204, 2, "#ffffff"),
    Disc(240, 219, 7, "#2b1d1a", line=GOLD, width=2),
    Glow(190, 222, 12, "#f08a8aaa"),
    Disc(132, 242, 13, "#f3dcbc", ry=8, line=GOLD, width=4),
    Disc(190, 242, 13, "#f3dcbc", ry=8, line=GOLD, width=4),
    Stroke([(216, 232), (216, 82)], GOLD, 5),
    Shape(
        xy("144,98 160,66 216,42 272,66 288,98 264,90 240,98 216,90 192,98 168,90"),
        "#d5473f",
        GOLD,
        5,
    ),
    Shape(xy("192,98 216,42 240,98 216,90"), "#f3b23f", GOLD, 4),
    Stroke(xy("164,76 182,62"), LIGHT, 5),
)
SNAIL: Sequence[Brush] = (
    Shape(
        xy("58,252 92,232 180,232 214,206 222,166 246,168 250,214 226,252"),
        "#f0c987",
        GOLD,
        5,
        smooth=True,
    ),
    Stroke(xy("228,172 222,140"), GOLD, 5),
    Stroke(xy("244,172 252,142"), GOLD, 5),
    Disc(222, 138, 6, "#2b1d1a", line=GOLD, width=2),
    Disc(252, 140, 6, "#2b1d1a", line=GOLD, width=2),
    Stroke(xy("238,196 246,200 252,194"), "#6b4220", 3, smooth=True),
    Disc(138, 180, 64, "#7f5aa8", line=GOLD, width=5),
    Stroke(
        [
            (138 + (52 - t * 1.6) * math.cos(t / 3.2), 180 + (52 - t * 1.6) * math.sin(t / 3.2))
            for t in range(31)
        ],
        GOLD,
        5,
        smooth=True,
    ),
    Stroke(xy("96,150 110,134"), LIGHT, 6),
    Stroke(xy("250,208 282,196 282,214"), GOLD, 4, smooth=True),
    Panel((266, 214, 298, 256), "#ffe08a", 6, GOLD, 5),
    Panel((262, 208, 302, 218), "#7f5aa8", 3, GOLD, 4),
    Glow(282, 236, 34, "#fff3c0cc"),
)


def denim() -> list[Brush]:
    """Blue twill with a seam."""
    lines = [Stroke([(x, 0), (x - 320, 320)], "#ffffff14", 1.6) for x in range(6, 640, 7)]
    seam = [Stroke([(8 + 16 * n, 286), (17 + 16 * n, 286)], "#d9a066", 2.4) for n in range(20)]
    return [Fade("#3f6596", "#2f4f7c"), *lines, Stroke([(0, 292), (320, 292)], "#213b60", 2), *seam]


def felt() -> list[Brush]:
    """Green felt with short hairs."""
    hairs = Scatter(260, (0, 0, 320, 320), 1.3, "#ffffff1c", seed=8)
    return [
        Fade("#5f9a62", "#46804d"),
        hairs,
        Scatter(180, (0, 0, 320, 320), 1.4, "#00000018", seed=9),
    ]


def pin(cloth: Sequence[Brush], marks: Sequence[Brush]) -> Scene:
    """A pin, and its soft shadow on the cloth."""
    outline = [Disc(158, 214, 92, "#00000066", ry=54)]
    return Scene((320, 320), [*cloth, Sheet(outline, blur=10), Placed(marks, -16, 4, 1.04)])


SCENES = {
    "pin_hedgehog.png": pin(denim(), HEDGEHOG),
    "pin_snail.png": pin(felt(), SNAIL),
}
