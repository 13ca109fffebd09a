"""A receipt that adds up, and a leaf from a botanist's book."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corpus_scenes.brushes import Fade, Glow, Panel, Scatter, Shape, Sheet, Stroke, Words
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import leaf, xy

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
        Scatter(40, (0, 0, 288, 384), 0.9, "#b9a77a44", seed=5),
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
    "receipt.jpg": RECEIPT,
    "fern_study.png": FERN,
}
