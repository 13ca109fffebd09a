"""An island in the sky, a moth on velvet, a sticker of a rice ball."""

from __future__ import annotations

import math

from corpus_scenes.brushes import Disc, Fade, Glow, Panel, Scatter, Shape, Sheet, Stroke, Words
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import leaf, xy

ISLAND = Scene(
    (320, 320),
    [
        Fade("#8fc4ea", "#fbe6d0"),
        Sheet(
            [
                *(
                    Disc(x, y, r, "#ffffffd0", ry=r * 0.4)
                    for x, y, r in ((60, 70, 44), (262, 50, 50), (250, 250, 60), (40, 270, 56))
                )
            ],
            blur=5,
        ),
        Shape(
            xy("54,176 110,188 210,188 268,172 236,222 196,244 172,296 150,292 132,246 88,222"),
            "#8a6a58",
            smooth=True,
        ),
        Shape(xy("88,196 140,202 132,240 150,288 132,246 96,224"), "#74563f", smooth=True),
        Shape(xy("48,172 100,150 160,158 226,148 272,168 216,190 110,192"), "#7fb35a", smooth=True),
        Shape(xy("60,170 110,156 160,164 220,154 250,166 200,176 120,178"), "#9ccb6f", smooth=True),
        Stroke(xy("226,166 244,176 246,210 240,262"), "#d6f0fa", 12, smooth=True),
        Stroke(xy("226,166 246,178 249,210 244,254"), "#ffffff", 3, smooth=True),
        Glow(240, 268, 30, "#ffffffcc", ry=14),
        Shape(xy("136,160 146,86 174,86 184,160"), "#f6ead2"),
        Shape(xy("164,86 174,86 184,160 168,160"), "#e0cba8"),
        Shape(xy("140,88 160,60 180,88"), "#c9533f"),
        Panel((152, 134, 168, 160), "#7a4a35", 7),
        Panel((154, 104, 166, 118), "#6f9fc4", 3),
        *(
            Shape(
                [
                    (160, 86),
                    (160 + 62 * math.cos(a), 86 + 62 * math.sin(a)),
                    (160 + 60 * math.cos(a + 0.24), 86 + 60 * math.sin(a + 0.24)),
                ],
                "#fbf4e6",
                "#9c7a58",
                1.4,
            )
            for a in (0.5, 0.5 + math.pi / 2, 0.5 + math.pi, 0.5 + 3 * math.pi / 2)
        ),
        Disc(160, 86, 5, "#7a4a35"),
        *(
            mark
            for x, y in xy("88,160 106,154 206,156")
            for mark in (
                Stroke([(x, y), (x, y - 10)], "#6b4a30", 4),
                Disc(x, y - 20, 13, "#4f8a4a", ry=15),
            )
        ),
    ],
)


def wing(side: int) -> list[Brush]:
    """The wings on one side; `side` is -1 on the left and 1 on the right."""

    def at(points: str) -> list[tuple[float, float]]:
        return [(144 + side * x, y) for x, y in xy(points)]

    hairs = [
        Stroke(
            [(144 + side * 12, 146), (144 + side * (40 + 11 * n), 110 - 5 * n + n * n * 2.1)],
            "#cfe8b055",
            1.2,
        )
        for n in range(8)
    ]
    return [
        Shape(
            at("8,150 40,156 58,190 52,240 66,284 40,264 26,214 8,176"),
            "#8fc09a",
            "#e3f0c0",
            1.5,
            smooth=True,
        ),
        Shape(
            at("6,136 40,96 104,72 124,84 104,124 60,160 20,164"),
            "#a9d6a0",
            "#e3f0c0",
            1.5,
            smooth=True,
        ),
        Stroke(at("6,134 44,92 104,70 124,82"), "#b98aa8", 5, smooth=True),
        *hairs,
        Disc(144 + side * 70, 112, 9, "#f3d98a", line="#7a4a5a", width=2.4),
        Disc(144 + side * 38, 194, 7, "#f3d98a", line="#7a4a5a", width=2.4),
        Stroke(at("4,116 18,96 30,94"), "#e3d9b0", 2.4, smooth=True),
    ]


MOTH = Scene(
    (288, 320),
    [
        Fade("#16141c", "#0c0a10"),
        Scatter(240, (0, 0, 288, 320), 1.1, "#ffffff0c", seed=77),
        Glow(144, 150, 140, "#4a4a6a55"),
        *wing(-1),
        *wing(1),
        Shape(xy("144,112 156,130 154,180 144,204 134,180 132,130"), "#f4efdc", smooth=True),
        *(Stroke([(135, y), (153, y)], "#cfc6a8", 1.6) for y in range(140, 192, 9)),
        Disc(144, 116, 9, "#f4efdc"),
        Words(256, 292, "7", 30, "#d9ad4a", bold=0.5),
    ],
)

ONIGIRI = Scene(
    (288, 288),
    [
        Fade("#a9dcee", "#a9dcee"),
        Sheet(
            [
                Shape(
                    xy("148,40 210,110 254,200 232,244 148,254 64,244 42,200 86,110"),
                    "#3f7f9f88",
                    smooth=True,
                )
            ],
            blur=5,
        ),
        Shape(
            xy("144,32 208,104 250,194 230,242 144,252 58,242 38,194 80,104"),
            "#ffffff",
            smooth=True,
        ),
        Shape(
            xy("144,46 198,112 236,192 218,230 144,238 70,230 52,192 90,112"),
            "#fbf8f0",
            "#4a4038",
            4,
            smooth=True,
        ),
        *(
            Shape(leaf(x, y, 8, 4, angle), "#e9e3d6")
            for x, y, angle in (
                (110, 120, 20),
                (170, 104, 70),
                (136, 82, -30),
                (196, 160, 10),
                (90, 170, 80),
                (150, 120, 40),
            )
        ),
        Shape(xy("108,190 180,190 184,237 104,237"), "#2f3f38", "#1f2a26", 3),
        Stroke(xy("116,204 172,204"), "#41564c", 2),
        *(Disc(x, 150, 7, "#3a302c") for x in (116, 172)),
        *(Disc(x - 2, 147, 2.4, "#ffffff") for x in (116, 172)),
        Stroke(xy("128,162 144,174 160,162"), "#3a302c", 4.5, smooth=True),
        *(Glow(x, 166, 16, "#ff8f8fbb", ry=11) for x in (96, 192)),
    ],
)

SCENES: dict[str, Scene] = {
    "island.webp": ISLAND,
    "moth_plate.png": MOTH,
    "onigiri.png": ONIGIRI,
}
