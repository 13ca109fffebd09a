"""A chair before and after, side by side, and in a room that another model repainted."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corpus_scenes.brushes import Disc, Fade, Framed, Panel, Shape, Sheet, Stroke, Words
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import xy


def chair(wood: str, edge: str) -> list[Brush]:
    """A wooden chair with three slats."""
    return [
        Sheet([Disc(98, 222, 62, "#00000055", ry=9)], blur=4),
        *(Stroke([(x, 150), (x + lean, 220)], edge, 9) for x, lean in ((66, -2), (128, 4))),
        *(Stroke([(x, 150), (x + lean, 228)], wood, 9) for x, lean in ((54, -4), (142, 6))),
        *(Stroke([(x, 62), (x, 150)], wood, 9) for x in (62, 132)),
        *(Panel((60, y, 134, y + 11), wood, 4, edge, 1.5) for y in (68, 90, 112)),
        Shape(xy("58,138 136,138 150,158 44,158"), wood, edge, 2),
        Panel((44, 156, 150, 166), edge, 2),
    ]


def cushion(lift: float) -> list[Brush]:
    """A cushion with daisies that hovers a little over the seat."""
    marks: list[Brush] = [Panel((52, 132 - lift, 142, 150 - lift), "#f9efd9", 9, "#d9c9a8", 1.5)]
    for x in (66, 86, 108, 128):
        petals = [
            Disc(
                x + 4 * math.cos(turn * 1.26),
                141 - lift + 3 * math.sin(turn * 1.26),
                2.2,
                "#ffffff",
            )
            for turn in range(5)
        ]
        marks += [*petals, Disc(x, 141 - lift, 2, "#f2b61f")]
    return marks


def room(wall: tuple[str, str], floor: tuple[str, str], furniture: Sequence[Brush]) -> Scene:
    """A corner of a room with an image on the wall."""
    return Scene(
        (192, 256),
        [
            Fade(*wall),
            Fade(*floor, (0, 190, 192, 256)),
            Panel((0, 184, 192, 191), "#ffffffaa"),
            Panel((136, 26, 178, 76), "#f9f4ea", 2, "#8a6a4a", 3),
            Shape(xy("142,70 154,48 164,60 172,52 174,70"), "#8fa98a"),
            *furniture,
        ],
    )


WALL, FLOOR = ("#efe0cc", "#e3cfb4"), ("#a87850", "#8a5f3c")
BEFORE = room(WALL, FLOOR, chair("#8f6440", "#6b4628"))
AFTER = room(WALL, FLOOR, [*chair("#8fd6b8", "#63ad90"), *cushion(9)])
REPAINTED = room(
    ("#7fd0b8", "#5fb59c"),
    ("#3f8f7a", "#2f7563"),
    [*chair("#b9f0da", "#7fc4a8"), *cushion(0)],
)
LEFT, RIGHT = (0, 0, 190, 256), (194, 0, 384, 256)

SCENES = {
    "collage_chair.jpg": Scene(
        (384, 256),
        [
            Fade("#ffffff", "#ffffff"),
            Framed(BEFORE, LEFT),
            Framed(AFTER, RIGHT),
            Panel((8, 8, 70, 28), "#000000aa", 10),
            Words(39, 18, "before", 13, "#ffffff"),
            Panel((202, 8, 256, 28), "#000000aa", 10),
            Words(229, 18, "after", 13, "#ffffff"),
        ],
    )
}
