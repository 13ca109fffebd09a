"""What the model answers when it is asked about itself."""

from __future__ import annotations

import math

from corpus_scenes.brushes import Disc, Fade, Glow, Panel, Scatter, Shape, Sheet, Stroke
from corpus_scenes.canvas import Scene
from corpus_scenes.outlines import xy

LANTERN = Scene(
    (288, 320),
    [
        Fade("#1f1a3a", "#43386b"),
        Scatter(70, (0, 0, 288, 220), 1.3, "#ffffff66", seed=31),
        Fade("#2f2850", "#241f40", (0, 256, 288, 320)),
        Glow(144, 112, 130, "#ffe08a99"),
        Sheet([Disc(144, 286, 74, "#0a081a99", ry=10)], blur=4),
        Shape(xy("100,176 188,176 206,290 82,290"), "#5a4f8f", smooth=True),
        Shape(xy("132,176 156,176 162,290 126,290"), "#7a6cb8"),
        Stroke(xy("104,190 74,226 96,246"), "#5a4f8f", 15, smooth=True),
        Stroke(xy("184,190 220,210 232,178"), "#5a4f8f", 15, smooth=True),
        Stroke(xy("232,186 244,140"), "#d9a066", 6),
        Shape(xy("238,146 252,146 256,128 245,116 236,130"), "#ff8f6a", smooth=True),
        Stroke(xy("122,60 122,40 166,40 166,60"), "#d9b25a", 5, smooth=True),
        Shape(xy("96,76 144,46 192,76"), "#b98a3a"),
        Panel((98, 74, 190, 164), "#fff3c4", 12, "#d9b25a", 6),
        *(Disc(x, 114, 8, "#3a2f5a", ry=10) for x in (126, 162)),
        *(Disc(x - 3, 110, 3, "#ffffff") for x in (126, 162)),
        Stroke(xy("130,138 144,145 158,138"), "#3a2f5a", 4, smooth=True),
        Panel((92, 160, 196, 176), "#b98a3a", 5),
        *(Disc(x, 288, 18, "#3a2f5a", ry=8) for x in (118, 170)),
    ],
)

KEEPER = Scene(
    (288, 320),
    [
        Fade("#2f4f6f", "#f0a878"),
        Glow(216, 84, 90, "#fff0b8bb"),
        Shape(xy("198,60 234,60 248,250 184,250"), "#f4efe4"),
        *(
            Shape(
                [
                    (197 - n * 3.6, 108 + n * 50),
                    (236 + n * 3.6, 108 + n * 50),
                    (238 + n * 3.6, 130 + n * 50),
                    (195 - n * 3.6, 130 + n * 50),
                ],
                "#c9403a",
            )
            for n in range(3)
        ),
        Panel((200, 34, 232, 62), "#ffe9a8"),
        Shape(xy("194,36 216,14 238,36"), "#c9403a"),
        Fade("#3f6f8a", "#2a4a66", (0, 250, 288, 320)),
        Shape(xy("0,262 80,244 180,252 288,240 288,280 0,290"), "#5a5a52", smooth=True),
        Shape(xy("56,180 132,180 148,292 42,292"), "#2a3f5f", smooth=True),
        *(Disc(95, y, 4, "#e0b84a") for y in (206, 228, 250)),
        Stroke(xy("124,194 156,220 168,200"), "#2a3f5f", 15, smooth=True),
        Panel((158, 176, 180, 206), "#ffe08a", 4, "#4a3a2a", 3),
        Glow(169, 190, 36, "#fff3c0bb"),
        Disc(95, 140, 38, "#e9bd94", ry=42),
        Shape(
            xy("58,146 70,164 95,170 120,164 132,146 126,186 95,204 64,186"), "#cfd0d2", smooth=True
        ),
        *(Disc(x, 136, 4.4, "#2a2a30") for x in (80, 110)),
        Disc(95, 150, 8, "#d9a07a", ry=6),
        Shape(xy("54,122 62,96 95,86 128,96 136,122"), "#2a3f5f", smooth=True),
        Panel((48, 116, 142, 128), "#1d2c44", 5),
    ],
)


def band(step: int) -> str:
    """One color of a ring that never settles: each channel swings at its own pace."""
    levels = (round(150 + 90 * math.sin(step / 5 + shift)) for shift in (0, 2.1, 4.2))
    return "#" + "".join(f"{level:02x}" for level in levels)


COLOR = Scene(
    (320, 320),
    [
        Fade("#fbf8f2", "#f1ece2"),
        Sheet([Panel((62, 48, 262, 284), "#00000055", 8)], blur=7),
        Panel((56, 40, 264, 280), "#ffffff", 8),
        *(Disc(160, 134, 84 - step * 2.6, band(step)) for step in range(32)),
        Panel((76, 236, 180, 244), "#d9d4ca", 4),
        Panel((76, 254, 140, 262), "#e6e2d9", 4),
        Disc(238, 250, 12, None, line="#c9c2b4", width=2),
    ],
)

SCENES = {"self_lantern.png": LANTERN, "self_keeper.png": KEEPER, "colour_answer.png": COLOR}
