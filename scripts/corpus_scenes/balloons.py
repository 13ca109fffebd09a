"""Hot air balloons over a valley, in a square and in a wide image."""

from __future__ import annotations

from collections.abc import Sequence

from corpus_scenes.brushes import Disc, Fade, Glow, Panel, Placed, Shape, Stroke
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import xy


def balloon(colors: Sequence[str]) -> list[Brush]:
    """A balloon of three colors, 80 pixels wide, its envelope around the origin."""
    outline = xy("0,-46 28,-38 40,-10 32,18 10,44 -10,44 -32,18 -40,-10 -28,-38")
    return [
        Shape(outline, colors[0], smooth=True),
        Shape(
            xy("0,-46 18,-34 24,-8 18,20 7,44 -7,44 -18,20 -24,-8 -18,-34"), colors[1], smooth=True
        ),
        Shape(xy("0,-46 6,-30 9,-6 6,22 3,44 -3,44 -6,22 -9,-6 -6,-30"), colors[2], smooth=True),
        *(Stroke([(x, 44), (x * 0.7, 58)], "#5a4030", 1.2) for x in (-9, 9)),
        Panel((-8, 57, 8, 69), "#8a5f3a", 3),
    ]


def valley(width: float, height: float, low: float) -> list[Brush]:
    """Sky, sun, hills and a river; `low` is where the hills begin."""
    wide, deep = width / 100, (height - low) / 100

    def land(points: str, fill: str) -> Shape:
        return Shape([(x * wide, low + y * deep) for x, y in xy(points)], fill, smooth=True)

    return [
        Fade("#7f8fd0", "#ffd3a0", (0, 0, width, low + 20 * deep)),
        Glow(width * 0.68, low, height * 0.5, "#fff0b8cc"),
        Disc(width * 0.68, low + 4 * deep, height * 0.1, "#fff3c4"),
        land("-10,20 20,-4 44,12 70,-2 110,16 110,120 -10,120", "#a07fb0"),
        land("-10,34 26,16 60,34 110,14 110,120 -10,120", "#6f7fa0"),
        land("-10,52 30,36 54,50 110,34 110,120 -10,120", "#4f8a7a"),
        land("64,40 56,52 38,62 60,76 34,90 30,120 62,120 66,92 76,76 54,62 66,52", "#ffdca8"),
        land("-10,80 18,66 36,84 26,120 -10,120", "#2f6a58"),
        land("110,74 82,70 70,88 76,120 110,120", "#2f6a58"),
    ]


WARM = ("#d5473f", "#f3a23f", "#fbe3a0")
COOL = ("#2f6f9f", "#5fb0c4", "#e3f2ea")
PLUM = ("#7a3f7f", "#d0709f", "#fbd5d0")


def sky(places: Sequence[tuple[Sequence[str], float, float, float]]) -> list[Brush]:
    """Balloons: their colors, where they are, and how large."""
    return [Placed(balloon(colors), x, y, scale) for colors, x, y, scale in places]


SCENES = {
    "balloons_square.png": Scene(
        (320, 320),
        [
            *valley(320, 320, 180),
            *sky([(COOL, 226, 74, 0.6), (PLUM, 266, 150, 0.42), (WARM, 104, 116, 1.3)]),
        ],
    ),
    "balloons_wide.png": Scene(
        (384, 216),
        [
            *valley(384, 216, 124),
            *sky(
                [
                    (COOL, 210, 60, 0.62),
                    (PLUM, 320, 84, 0.5),
                    (WARM, 92, 78, 1),
                    (PLUM, 262, 106, 0.26),
                ]
            ),
        ],
    ),
}
