"""Printed matter: two posters, a receipt, a botanical study."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corpus_scenes.brushes import (
    Brush,
    Disc,
    Fade,
    Glow,
    Panel,
    Placed,
    Scatter,
    Scene,
    Shape,
    Sheet,
    Stroke,
    Words,
    leaf,
)

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
    """A jazz night in two colours, under a title."""
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

FADED = "#4b4a52"
LINES = (("Flat white", "3.80"), ("Almond croissant", "4.20"), ("Oat cookie", "2.50"))
TEETH = [(246 - step * 9.75, 308 + (6 if step % 2 else 0)) for step in range(17)]
SLIP: Sequence[Brush] = (
    Shape([(90, 28), (246, 28), *TEETH], "#f7f5f0"),
    Shape(xy("90,28 140,28 118,306 90,306"), "#fdfcf9"),
    Shape(xy("212,28 246,28 246,300 200,190"), "#eceae4"),
    Stroke(xy("91,110 150,106 245,112"), "#e2dfd8", 2),
    Stroke(xy("91,246 150,250 245,244"), "#e2dfd8", 2),
    Words(168, 56, "MOKA CORNER", 16, FADED, bold=0.5),
    Words(168, 76, "table 4   12:06", 11, FADED),
    Words(168, 94, "- - - - - - - - - - - - - -", 11, FADED),
    *(
        mark
        for row, (item, price) in enumerate(LINES)
        for mark in (
            Words(100, 122 + 26 * row, item, 12.5, FADED, "lm"),
            Words(236, 122 + 26 * row, price, 12.5, FADED, "rm"),
        )
    ),
    Words(168, 204, "- - - - - - - - - - - - - -", 11, FADED),
    Words(100, 228, "TOTAL", 18, "#2e2d34", "lm", 0.8),
    Words(236, 228, "10.50", 18, "#2e2d34", "rm", 0.8),
    Words(168, 262, "thank you!", 12, FADED),
    *(
        Panel((120 + place * 4, 276, 120 + place * 4 + 1 + place * 7 % 3, 296), FADED)
        for place in range(24)
    ),
)

RECEIPT = Scene(
    (336, 336),
    [
        Fade("#4a4f57", "#24272d"),
        Scatter(150, (0, 0, 336, 336), 1.2, "#ffffff12", seed=6),
        Stroke(xy("0,84 120,70 336,96"), "#1d2025", 2, smooth=True),
        Stroke(xy("0,262 180,282 336,250"), "#1d2025", 2, smooth=True),
        Glow(30, 60, 240, "#fff4dc33"),
        Sheet([Panel((96, 36, 256, 318), "#00000088")], turn=4, blur=6),
        Sheet(SLIP, turn=4),
    ],
)


def frond() -> list[Brush]:
    """A fern from its stalk up: a wash of green under lines of ink."""
    stem = [(150 + 26 * math.sin(share * 2.2) - 6, 330 - 280 * share) for share in _shares(15)]
    marks: list[Brush] = [Stroke(stem, "#4c5b2f", 3, smooth=True)]
    for place, (x, y) in enumerate(stem[2:]):
        long = 86 * math.sin(0.55 + place / 13 * 2.35)
        for side in (-1, 1):
            angle = -90 + side * (66 - place * 2.2)
            for wash, line in (("#7fa05a99", None), ("#5f8a4766", "#3c4a2c")):
                size = 1.0 if line else 1.08
                outline = leaf(x, y, long * size, 17 * size, angle)
                marks.append(Shape(outline, wash, line, 0.9, smooth=True))
            reach = math.radians(angle)
            tip = (x + long * 0.85 * math.cos(reach), y + long * 0.85 * math.sin(reach))
            marks.append(Stroke([(x, y), tip], "#3c4a2c", 0.8))
    x, y = stem[-1]
    return [*marks, Shape(leaf(x, y + 6, 26, 13, -84), "#7fa05a", "#3c4a2c", 0.9, smooth=True)]


def _shares(count: int) -> list[float]:
    return [place / (count - 1) for place in range(count)]


FERN = Scene(
    (288, 384),
    [
        Fade("#f6efdb", "#f6efdb"),
        Scatter(90, (0, 0, 288, 384), 0.9, "#b9a77a44", seed=5),
        Panel((12, 12, 276, 372), None, 0, "#b9a77a", 1),
        *frond(),
        Stroke([(196, 108), (238, 84)], "#8a8478", 0.9),
        Words(241, 80, "pinna", 10, "#8a8478", "lm"),
        Stroke([(158, 300), (204, 312)], "#8a8478", 0.9),
        Words(208, 313, "rachis", 10, "#8a8478", "lm"),
        *(
            Stroke([(28, y), (28 + wide, y)], "#a9a08c", 0.9)
            for y, wide in ((326, 52), (334, 60), (342, 40))
        ),
        Words(258, 352, "FIG. 4", 17, "#3c3a30", "rm"),
    ],
)

SCENES = {
    "poster_blue_hour.png": gig_poster("BLUE HOUR"),
    "poster_blue_huor.png": gig_poster("BLUE HUOR"),
    "flower_market.png": FLOWER_MARKET,
    "receipt.jpg": RECEIPT,
    "fern_study.png": FERN,
}
