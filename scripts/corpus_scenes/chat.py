"""A chat window with the request and the image that came of it."""

from __future__ import annotations

import math

from corpus_scenes.brushes import Disc, Fade, Framed, Glow, Panel, Shape, Stroke, Words
from corpus_scenes.canvas import Scene
from corpus_scenes.outlines import xy

RAMEN = Scene(
    (240, 240),
    [
        Fade("#4a2d22", "#382018"),
        *(Stroke([(0, y), (240, y + 4)], "#2b1811", 2) for y in (48, 110, 170, 224)),
        Disc(124, 132, 92, "#00000044"),
        Disc(120, 126, 92, "#c8402f"),
        Disc(120, 126, 83, "#f4e3c3"),
        Disc(120, 126, 76, "#e0a04a"),
        *(
            Stroke(
                [
                    (62 + shift, 120 + shift * 0.5),
                    (104 + shift, 98 + shift),
                    (150 + shift * 0.4, 132 + shift),
                    (182, 116 + shift),
                ],
                "#ffe6a3",
                4.5,
                smooth=True,
            )
            for shift in (-14, -6, 2, 10, 18, 26, 34)
        ),
        Panel((150, 62, 196, 112), "#23402f", 4),
        Stroke([(158, 70), (158, 104)], "#35593f", 2),
        Stroke([(172, 68), (172, 106)], "#35593f", 2),
        *(
            mark
            for x, y in ((88, 92), (94, 160))
            for mark in (
                Disc(x, y, 25, "#fffaf0", ry=21),
                Disc(x, y, 13, "#f5a623"),
                Glow(x - 4, y - 4, 9, "#ffe08acc"),
            )
        ),
        Disc(154, 164, 27, "#e9a28a", ry=22),
        Stroke(xy("138,160 154,152 170,164"), "#fbe0d2", 4, smooth=True),
        Disc(154, 164, 27, None, ry=22, line="#b5654b", width=3),
        *(
            Disc(
                120 + 30 * math.cos(turn * 2.4),
                128 + 14 * math.sin(turn * 1.7) * turn / 4,
                5,
                None,
                line="#5fa84a",
                width=2.4,
            )
            for turn in range(9)
        ),
        *(
            Stroke([(x, 60), (x - 8, 42), (x + 8, 26), (x, 8)], "#ffffff77", 4, smooth=True)
            for x in (92, 122)
        ),
        Stroke([(196, 226), (236, 60)], "#8a5a3a", 5),
        Stroke([(208, 230), (240, 84)], "#a06c48", 5),
    ],
)

CHAT = Scene(
    (320, 384),
    [
        Fade("#ffffff", "#ffffff"),
        Panel((0, 0, 320, 40), "#f4f2fb"),
        Stroke([(0, 40), (320, 40)], "#dcd7ee", 1),
        Disc(24, 20, 9, "#7a5cd6"),
        Disc(24, 20, 4, "#ffe28a"),
        Words(42, 20, "Lumen Chat", 15, "#2d2843", "lm", 0.3),
        *(Disc(288 + 8 * step, 20, 2, "#8d86a8") for step in range(3)),
        Panel((70, 52, 308, 120), "#e9e3fb", 14),
        Words(84, 68, "A bowl of ramen seen from above,", 13, "#2d2843", "lm"),
        Words(84, 86, "flat illustration, two egg halves,", 13, "#2d2843", "lm"),
        Words(84, 104, "nori and steam, dark wooden table", 13, "#2d2843", "lm"),
        Disc(22, 142, 8, "#7a5cd6"),
        Disc(22, 142, 3.5, "#ffe28a"),
        Words(38, 142, "Here you go!", 13, "#6a6484", "lm"),
        Framed(RAMEN, (38, 156, 218, 336), 12),
        *(
            Panel((230 + 22 * step, 320, 244 + 22 * step, 334), None, 4, "#b7b0cf", 1.5)
            for step in range(3)
        ),
        Panel((12, 348, 308, 376), "#f7f6fc", 14, "#dcd7ee", 1),
        Words(28, 362, "Message Lumen", 12, "#9b95b3", "lm"),
        Disc(292, 362, 10, "#7a5cd6"),
        Shape(xy("288,364 292,357 296,364"), "#ffffff"),
    ],
)


SCENES = {"chat_ramen.png": CHAT}
