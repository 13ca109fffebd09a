"""Two posters in two inks each, with words that can be misspelt."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corpus_scenes.brushes import Disc, Fade, Panel, Placed, Scatter, Shape, Sheet, Stroke, Words
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import leaf, xy

NAVY = "#1f2d5c"
CORAL = "#f2705d"
PAPER = "#f6ecd6"

TRUMPET: Sequence[Brush] = (
    Shape(xy("6,66 6,146 34,120 74,111 74,101 34,92"), NAVY, smooth=True),
    Panel((1, 62, 9, 150), NAVY, 4),
    Stroke([(60, 106), (222, 106)], NAVY, 9),
    Panel((216, 98, 232, 114), NAVY, 4),
    Stroke(xy("96,106 76,126 92,146 170,146 188,126 172,106"), NAVY, 8, smooth=True),
    *(Panel((x, 84, x + 15, 154), NAVY, 4) for x in (106, 126, 146)),
    *(Stroke([(x + 7.5, 84), (x + 7.5, 68)], NAVY, 5) for x in (106, 126, 146)),
    *(Panel((x - 1, 62, x + 16, 69), NAVY, 3) for x in (106, 126, 146)),
)


def gig_poster(title: str) -> Scene:
    """A jazz night in two colors, under a title."""
    return Scene(
        (288, 384),
        [
            Fade(PAPER, PAPER),
            Disc(112, 190, 86, CORAL),
            Disc(190, 150, 62, "#1f2d5c33"),
            Disc(196, 238, 70, "#f2705d99"),
            Disc(92, 262, 42, "#1f2d5c40"),
            Sheet([Placed(TRUMPET, 30, 98)], turn=14),
            Scatter(260, (14, 84, 274, 320), 1.1, "#f6ecd6cc", seed=2),
            Words(144, 54, title, 45, NAVY, bold=1.5),
            Stroke([(24, 88), (264, 88)], CORAL, 4),
            Stroke([(24, 332), (264, 332)], NAVY, 2),
            Words(144, 352, "Thu 19 March, 8 pm", 18, NAVY, bold=0.3),
        ],
    )


GREEN = "#1f6b4a"
PINK = "#e0527f"


def flower(x: float, y: float, radius: float, petals: int, fill: str) -> list[Brush]:
    """A cut flower, seen from the front."""
    marks: list[Brush] = [
        Shape(leaf(x, y, radius, radius * 0.62, 360 / petals * turn), fill, smooth=True)
        for turn in range(petals)
    ]
    nicks = [
        Stroke(
            [
                (
                    x + radius * share * math.cos(math.tau / petals * turn),
                    y + radius * share * math.sin(math.tau / petals * turn),
                )
                for share in (0.4, 0.72)
            ],
            PAPER,
            1.6,
        )
        for turn in range(petals)
    ]
    return [*marks, *nicks, Disc(x, y, radius * 0.24, GREEN), Disc(x, y, radius * 0.1, PAPER)]


FLOWER_MARKET = Scene(
    (288, 384),
    [
        Fade(PAPER, PAPER),
        Panel((10, 10, 278, 374), None, 0, GREEN, 5),
        Words(144, 46, "FLORES", 46, PINK, bold=1.8),
        Words(144, 90, "FRESCAS", 40, GREEN, bold=1.6),
        *(
            Stroke([(144, 300), (x * 0.5 + 72, y + 70), (x, y)], GREEN, 4.5, smooth=True)
            for x, y in ((84, 188), (144, 154), (206, 184), (112, 226), (182, 232))
        ),
        *(
            Shape(leaf(x, y, 46, 24, angle), GREEN, smooth=True)
            for x, y, angle in (
                (112, 254, 196),
                (176, 254, -16),
                (116, 232, 226),
                (172, 234, -48),
                (126, 276, 172),
                (164, 276, 8),
            )
        ),
        *flower(84, 184, 40, 8, PINK),
        *flower(206, 180, 40, 9, PINK),
        *flower(144, 150, 38, 7, PINK),
        *flower(116, 224, 26, 6, PINK),
        *flower(178, 226, 28, 8, PINK),
        Shape(xy("98,262 190,262 168,330 120,330"), GREEN),
        *(
            Stroke([(x, 268), (144 + (x - 144) * 0.52, 326)], PAPER, 1.8)
            for x in (106, 119, 132, 145, 158, 171, 182)
        ),
        Shape(xy("98,262 144,282 190,262 182,254 106,254"), PINK),
        Words(144, 350, "cada domingo, 9 a 14 h", 18, GREEN, bold=0.4),
    ],
)


SCENES = {
    "poster_blue_hour.png": gig_poster("BLUE HOUR"),
    "poster_blue_huor.png": gig_poster("BLUE HUOR"),
    "flower_market.png": FLOWER_MARKET,
}
