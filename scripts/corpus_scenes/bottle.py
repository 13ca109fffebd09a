"""A bottle of soap on wet pebbles."""

from __future__ import annotations

import random

from corpus_scenes.brushes import Disc, Fade, Glow, Panel, Shape, Sheet, Stroke, Words
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import xy


def pebbles() -> list[Brush]:
    """Round stones, the nearer the larger, each with a wet highlight."""
    chance = random.Random(14)  # noqa: S311 - for looks, not for secrets
    marks: list[Brush] = []
    for row in range(6):
        for _ in range(11 - row):
            x, y = chance.uniform(-10, 298), 262 + row * 16 + chance.uniform(-5, 5)
            size, tone = 12 + row * 3.4, chance.randint(70, 140)
            fill = f"#{tone:02x}{tone + 8:02x}{tone + 16:02x}"
            marks += [Disc(x, y, size, fill, ry=size * 0.6)]
            marks += [
                Glow(x - size * 0.3, y - size * 0.25, size * 0.45, "#ffffff88", ry=size * 0.2)
            ]
    return marks


SOAP = Scene(
    (288, 352),
    [
        Fade("#dfe6e6", "#b9c6c8"),
        Sheet(
            [Shape(xy("-20,170 80,140 200,160 320,130 320,230 -20,230"), "#ffffffaa", smooth=True)],
            blur=12,
        ),
        *pebbles(),
        Sheet([Disc(158, 296, 78, "#10202877", ry=14)], blur=5),
        Panel((124, 96, 164, 130), "#d9e6df"),
        Shape(
            xy("144,122 192,142 212,200 204,270 176,296 112,296 84,270 76,200 96,142"),
            "#a9cbbb",
            smooth=True,
        ),
        Shape(xy("190,150 206,204 198,264 176,290 188,240 186,190"), "#7fa99466", smooth=True),
        Stroke(xy("100,160 90,204 96,250"), "#ffffffbb", 7, smooth=True),
        Panel((126, 66, 162, 104), "#c99a66", 5),
        *(Disc(x, y, 1.6, "#9c7040") for x, y in xy("134,76 146,84 154,74 138,92 152,96")),
        Panel((96, 188, 192, 250), "#fbf8f0", 3),
        Words(144, 210, "SALT & SAGE", 14.5, "#3f5a50", "mm"),
        Stroke([(112, 224), (176, 224)], "#8fae9f", 1.2),
        Words(144, 236, "hand soap", 10, "#6f8a7f", "mm"),
    ],
)

SCENES = {"soap_bottle.png": SOAP}
