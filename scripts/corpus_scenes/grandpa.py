"""A grandfather, and an edit that kept his face."""

from __future__ import annotations

from collections.abc import Sequence

from corpus_scenes.brushes import Disc, Fade, Glow, Panel, Shape, Stroke
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import xy

SKIN = "#b9835a"
BEARD = "#eceae4"

BEHIND: Sequence[Brush] = (
    Fade("#c9d9c4", "#a9c0a4"),
    Panel((0, 250, 320, 336), "#8a6a4a"),
    *(Panel((x, 40, x + 18, 250), "#b9cdb2") for x in range(10, 320, 44)),
)
SHIRT: Sequence[Brush] = (
    Shape(xy("50,336 66,276 118,248 202,248 254,276 270,336"), "#6f7fa8", smooth=True),
    Panel((46, 318, 274, 336), "#6f7fa8"),
    *(Stroke([(x, 266), (x - 4, 336)], "#5a6990", 2) for x in (90, 120, 200, 230)),
    Shape(xy("126,250 160,286 194,250 182,240 138,240"), "#f4f0e6", smooth=True),
)
FACE: Sequence[Brush] = (
    Panel((134, 206, 186, 262), "#a06f4a", 14),
    *(Disc(x, 156, 13, SKIN, ry=18) for x in (92, 228)),
    Disc(160, 148, 68, SKIN, ry=76),
    *(
        Stroke([(x - 16, y), (x, y - 4), (x + 16, y)], "#94633e", 2, smooth=True)
        for x, y in ((160, 98), (160, 108))
    ),
    *(
        mark
        for x in (132, 188)
        for mark in (
            Disc(x, 148, 11, "#ffffff", ry=9),
            Disc(x, 149, 6.5, "#4a3526"),
            Disc(x - 2, 146, 2, "#ffffff"),
            Stroke([(x - 15, 132), (x, 125), (x + 15, 132)], "#f4f2ec", 7, smooth=True),
            Stroke([(x - 9, 163), (x, 166), (x + 9, 163)], "#94633e", 2, smooth=True),
        )
    ),
    *(Stroke([(x, 144), (x + dx, 139)], "#94633e", 2) for x, dx in ((112, -9), (208, 9))),
    Glow(118, 178, 18, "#e0805f88"),
    Glow(202, 178, 18, "#e0805f88"),
    Shape(
        xy("96,168 110,190 160,196 210,190 224,168 222,220 196,252 160,264 124,252 98,220"),
        BEARD,
        smooth=True,
    ),
    Shape(xy("118,186 160,172 202,186 188,198 160,194 132,198"), "#ffffff", smooth=True),
    Shape(xy("140,204 160,208 180,204 172,214 148,214"), "#a84f44", smooth=True),
    Disc(160, 172, 14, "#a9744c", ry=11),
    *(
        Stroke([(x, 226), (x + dx, 250)], "#d6d3ca", 2)
        for x, dx in ((124, 5), (142, 3), (160, 0), (178, -3), (196, -5))
    ),
)
HAIR: Sequence[Brush] = (
    Shape(xy("92,150 90,110 104,92 108,120 102,150"), BEARD, smooth=True),
    Shape(xy("228,150 230,110 216,92 212,120 218,150"), BEARD, smooth=True),
    Glow(142, 88, 26, "#ffffff44", ry=12),
)
HAT: Sequence[Brush] = (
    Shape(xy("88,112 96,70 128,46 192,46 224,70 232,112"), "#c9302f", smooth=True),
    *(
        Stroke([(x, 104), (160 + (x - 160) * 0.5, 50)], "#a3221f", 2.4, smooth=True)
        for x in range(104, 222, 16)
    ),
    Panel((84, 94, 236, 120), "#dd4a45", 11),
    *(Stroke([(x, 98), (x, 116)], "#b5302c", 2) for x in range(94, 232, 9)),
    Disc(160, 40, 19, "#f6eee0"),
    Glow(154, 34, 14, "#ffffffaa"),
)
SCARF: Sequence[Brush] = (
    Shape(xy("96,254 160,272 224,254 236,282 160,306 84,282"), "#3f8a52", smooth=True),
    Shape(xy("190,282 226,278 238,336 196,336"), "#357a47"),
    *(
        Stroke([(x, 262 + abs(160 - x) * -0.06 + 6), (x + 4, 296)], "#2f6a3d", 2.2)
        for x in range(104, 224, 14)
    ),
)

SCENES = {
    "grandpa.png": Scene((320, 336), [*BEHIND, *SHIRT, *FACE, *HAIR]),
    "grandpa_hat.png": Scene((320, 336), [*BEHIND, *SHIRT, *FACE, *HAIR, *HAT, *SCARF]),
}
