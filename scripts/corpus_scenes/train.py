"""A travel poster in large flat colors."""

from __future__ import annotations

from corpus_scenes.brushes import Disc, Fade, Panel, Shape, Stroke, Words
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import xy


def arch(x: float) -> list[Brush]:
    """One arch of the viaduct."""
    return [
        Panel((x, 232, x + 54, 300), "#7a4a5a"),
        Disc(x + 26, 266, 19, "#e8865a", ry=22),
        Panel((x + 7, 266, x + 45, 300), "#e8865a"),
    ]


def carriage(x: float) -> list[Brush]:
    """A red carriage with three windows."""
    return [
        Panel((x, 196, x + 62, 224), "#c9302c", 4),
        *(Panel((x + 7 + 18 * n, 202, x + 19 + 18 * n, 212), "#ffe3a8", 2) for n in range(3)),
        Stroke([(x, 217), (x + 62, 217)], "#ffe3a8", 2),
        *(Disc(x + wheel, 226, 5, "#3a2433") for wheel in (14, 48)),
    ]


TRAIN = Scene(
    (288, 384),
    [
        Fade("#f9e6c0", "#f9e6c0"),
        Panel((14, 14, 274, 370), "#f3a45f"),
        Panel((14, 110, 274, 170), "#f08a52"),
        Disc(196, 190, 58, "#ffe08a"),
        Panel((14, 190, 274, 370), "#2f6f8f"),
        *(
            Panel((150 + 6 * n, 200 + 16 * n, 244 - 6 * n, 206 + 16 * n), "#ffe08a")
            for n in range(4)
        ),
        Shape(xy("14,120 60,134 100,190 14,200"), "#5a3a55"),
        Shape(xy("14,160 74,178 120,206 14,214"), "#7a4a5a"),
        Panel((14, 224, 274, 236), "#5a3a4a"),
        *(mark for x in (8, 62, 116, 170, 224) for mark in arch(x)),
        Shape(xy("14,300 274,296 274,370 14,370"), "#24566f"),
        *(
            Stroke([(x, y), (x + 24, y - 5), (x + 48, y)], "#8fc4cf", 3, smooth=True)
            for x, y in xy("30,320 110,334 190,318 60,350 160,352")
        ),
        Shape(xy("14,320 60,332 84,370 14,370"), "#3f5f3a"),
        *carriage(22),
        *carriage(88),
        *carriage(154),
        Shape(xy("220,224 220,196 244,196 258,212 258,224"), "#8f2430"),
        Disc(250, 226, 5, "#3a2433"),
        Disc(232, 226, 5, "#3a2433"),
        Panel((0, 14, 14, 370), "#f9e6c0"),
        Panel((274, 14, 288, 370), "#f9e6c0"),
        Words(144, 68, "LA COTE", 46, "#5a2a3f", bold=2),
        Stroke(xy("140,44 152,34 164,44"), "#5a2a3f", 6),
    ],
)

SCENES = {"poster_train.png": TRAIN}
