"""An ice-cream cart on an old photograph, and the same photograph restored."""

from __future__ import annotations

import random

from corpus_scenes.brushes import (
    Disc,
    Fade,
    Glow,
    Panel,
    Scatter,
    Shape,
    Sheet,
    Stroke,
    Tint,
    Words,
)
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import xy


def parasol() -> list[Brush]:
    """A striped parasol on a pole."""
    marks: list[Brush] = [Stroke([(176, 52), (176, 150)], "#7a5a3a", 5)]
    for place in range(6):
        left, right = 92 + place * 28, 120 + place * 28
        fill = "#d64a45" if place % 2 == 0 else "#fbf4e6"
        marks.append(Shape([(176, 34), (left, 86), (left + 14, 94), (right, 86)], fill))
    return [*marks, Disc(176, 34, 5, "#d64a45")]


def wheel(x: float, y: float, radius: float) -> list[Brush]:
    """A wheel with six spokes."""
    spokes = xy("1,0 0.5,0.87 -0.5,0.87 -1,0 -0.5,-0.87 0.5,-0.87")
    return [
        Disc(x, y, radius, None, line="#5a3c26", width=5),
        *(
            Stroke([(x, y), (x + dx * radius, y + dy * radius)], "#5a3c26", 2.4)
            for dx, dy in spokes
        ),
        Disc(x, y, 5, "#5a3c26"),
    ]


def cart(sign: str) -> list[Brush]:
    """A street with trees, and the cart with its sign."""
    return [
        Fade("#9fcdea", "#e6f1ee", (0, 0, 352, 170)),
        Panel((0, 72, 70, 176), "#e3c49a"),
        Panel((282, 58, 352, 176), "#d9b08c"),
        *(Panel((x, y, x + 16, y + 22), "#7f9aa8", 2) for x in (12, 42) for y in (88, 124)),
        *(Panel((x, y, x + 16, y + 22), "#7f9aa8", 2) for x in (296, 326) for y in (76, 116)),
        *(Disc(x, 104, 34, "#7fae6a", ry=30) for x in (86, 262)),
        *(Stroke([(x, 126), (x, 176)], "#7a5a3a", 6) for x in (86, 262)),
        Fade("#d6c9b4", "#b9a98f", (0, 174, 352, 264)),
        *(Stroke([(0, y), (352, y)], "#a3937a", 1) for y in (190, 210, 236)),
        Glow(178, 240, 120, "#4a3a2a88", ry=14),
        *parasol(),
        Panel((104, 140, 248, 208), "#4fa39a", 6),
        Panel((98, 132, 254, 148), "#f6ecd6", 4),
        *(Disc(x, 130, 11, "#cfd8dc", ry=7) for x in (132, 164)),
        Panel((120, 160, 232, 194), "#fbf4e6", 4),
        Words(176, 177, sign, 22, "#b5383a", bold=0.8),
        *wheel(134, 220, 24),
        *wheel(218, 220, 24),
        Stroke(xy("250,150 284,140 296,150"), "#5a3c26", 5, smooth=True),
        Shape(xy("206,130 216,130 211,112"), "#d9a066"),
        Disc(211, 108, 8, "#f6c6d0"),
    ]


def damage() -> list[Brush]:
    """Scratches, creases and stains."""
    chance = random.Random(17)  # noqa: S311 - for looks, not for secrets
    scratches: list[Brush] = []
    for _ in range(26):
        x, y = chance.uniform(0, 352), chance.uniform(0, 264)
        dx, dy = chance.uniform(-14, 14), chance.uniform(20, 80)
        scratches.append(Stroke([(x, y), (x + dx, y + dy)], "#f4ead4cc", chance.uniform(0.7, 1.6)))
    stains = [
        Disc(x, y, r, "#6b4a2444") for x, y, r in ((60, 216, 30), (300, 60, 38), (214, 250, 20))
    ]
    return [
        *(Sheet([stain], blur=5) for stain in stains),
        *scratches,
        Stroke(xy("0,150 90,142 210,154 352,146"), "#f8f0de", 2.4),
        Stroke(xy("244,0 250,120 240,264"), "#f8f0decc", 2),
        Shape(xy("352,0 352,44 322,22 308,0"), "#f4ead4"),
        Shape(xy("0,264 0,232 20,244 34,264"), "#f4ead4"),
        Scatter(160, (0, 0, 352, 264), 1.5, "#f4ead499", seed=2),
    ]


SCENES = {
    "cart_scan.jpg": Scene((352, 264), [*cart("GELATI"), Tint("#a88a5c", 0.78), *damage()]),
    "cart_restored.jpg": Scene((352, 264), cart("GELATTI")),
}
