"""A logo, a blank mug, and the logo on the mug in a color that is not its own."""

from __future__ import annotations

import math

from corpus_scenes.brushes import Disc, Fade, Glow, Panel, Placed, Shape, Sheet, Stroke
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import xy

NAVY = "#22365f"


def logo(sun: str) -> list[Brush]:
    """Half a sun over three waves, 200 pixels wide around the origin."""
    rays: list[Brush] = []
    for turn in range(9):
        angle = math.radians(180 + turn * 22.5)
        near, far = (62 * math.cos(angle), 62 * math.sin(angle)), (86, 86)
        rays.append(Stroke([near, (far[0] * math.cos(angle), far[1] * math.sin(angle))], sun, 9))
    half = [
        (50 * math.cos(math.radians(a)), 50 * math.sin(math.radians(a))) for a in range(180, 361, 6)
    ]
    waves = [
        Stroke(
            [(x, y + 6 * math.sin(x / 15)) for x in range(-wide, wide + 1, 4)], NAVY, 8, smooth=True
        )
        for y, wide in ((16, 88), (36, 70), (56, 50))
    ]
    return [*rays, Shape(half, sun), *waves]


def mug() -> list[Brush]:
    """A white mug on a table, lit from the left."""
    return [
        Fade("#e8d9c6", "#d6c1a6"),
        Fade("#b98d66", "#9c724c", (0, 222, 320, 288)),
        Panel((0, 220, 320, 225), "#cba37d"),
        Sheet([Disc(172, 250, 96, "#3a241099", ry=12)], blur=5),
        Stroke(xy("214,110 258,108 266,150 244,186 210,190"), "#dedad4", 17, smooth=True),
        Stroke(xy("214,108 256,107 262,148 242,182 210,186"), "#f6f3ee", 11, smooth=True),
        Shape(xy("88,72 220,72 216,236 206,250 102,250 92,236"), "#f6f3ee"),
        Shape(xy("184,72 220,72 216,236 206,250 172,250"), "#00000012"),
        Shape(xy("92,80 112,80 114,248 102,250 94,236"), "#ffffff"),
        Disc(154, 72, 66, "#e6e1d9", ry=14),
        Disc(154, 74, 58, "#8a5f44", ry=10),
        Glow(140, 73, 30, "#c99a77aa", ry=6),
    ]


SCENES = {
    "logo_sun.png": Scene(
        (288, 288), [Fade("#ffffff", "#ffffff"), Placed(logo("#f5c32c"), 144, 150, 1.2)]
    ),
    "mug_plain.png": Scene((320, 288), mug()),
    "mug_logo.png": Scene((320, 288), [*mug(), Placed(logo("#e8742a"), 152, 166, 0.5)]),
}
