"""A character, a robot and a chat window: pictures that belong to a conversation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from corpus_scenes.brushes import (
    Brush,
    Disc,
    Fade,
    Framed,
    Glow,
    Panel,
    Scene,
    Shape,
    Stroke,
    Words,
)

SKIN = "#f2c6a0"
HAIR = "#a8482c"


@dataclass(frozen=True)
class Features:
    """What tells a face from another one."""

    eyes: str
    eye_gap: float
    freckles: bool
    brows: str
    mouth: Sequence[tuple[float, float]]
    nose: Sequence[tuple[float, float]]


HERS = Features(
    "#3f8f5f",
    27,
    True,
    "#8a3a24",
    xy("140,184 160,194 180,184"),
    xy("160,150 155,166 163,168"),
)
NOT_HERS = Features(
    "#6b3f22",
    21,
    False,
    "#4a2616",
    xy("148,188 160,185 172,188"),
    xy("160,142 166,170 154,171"),
)


def head(who: Features) -> list[Brush]:
    """The character from the neck up."""
    marks: list[Brush] = [
        Shape(xy("84,130 74,220 92,262 228,262 246,220 236,130 160,52"), HAIR, smooth=True),
        Panel((138, 200, 182, 262), "#dca883", 14),
        Disc(160, 146, 66, SKIN, ry=74),
        Disc(96, 152, 11, SKIN, ry=15),
        Disc(224, 152, 11, SKIN, ry=15),
    ]
    for side in (-1, 1):
        x = 160 + side * who.eye_gap
        marks += [
            Disc(x, 144, 12, "#ffffff", ry=10),
            Disc(x, 145, 7.5, who.eyes),
            Disc(x, 145, 3.6, "#1d1a1c"),
            Disc(x - 2.5, 142, 2, "#ffffff"),
            Stroke([(x - 13, 137), (x, 131), (x + 13, 138)], "#3a2018", 3, smooth=True),
            Stroke(
                [(x - 13, 122), (x + side * 2, 117), (x + 13, 122)], who.brows, 4.5, smooth=True
            ),
            Glow(160 + side * 42, 172, 17, "#f08a7a99", ry=13),
        ]
        if who.freckles:
            marks += [
                Disc(160 + side * (30 + dx), 166 + dy, 1.8, "#b9744a")
                for dx, dy in ((0, 0), (8, 3), (4, 8), (13, 9), (-5, 7), (17, 1))
            ]
    return [
        *marks,
        Stroke(who.nose, "#c98d68", 3, smooth=True),
        Stroke(who.mouth, "#b5473f", 4, smooth=True),
        Shape(
            xy("88,140 92,92 130,62 190,60 228,92 232,140 206,104 150,96 118,112"),
            HAIR,
            smooth=True,
        ),
        Stroke(xy("118,108 140,84 178,76"), "#c4623f", 4, smooth=True),
    ]


JUMPER = (
    Shape(xy("56,336 68,278 116,246 204,246 252,278 264,336"), "#4f7fa8", smooth=True),
    Panel((50, 318, 270, 336), "#4f7fa8"),
    Shape(xy("128,248 160,270 192,248 186,240 134,240"), "#3d6687", smooth=True),
    *(Stroke([(70, y), (160, y + 6), (250, y)], "#e9e3d3", 5, smooth=True) for y in (290, 306)),
)
SUIT = (
    Shape(xy("44,336 58,272 112,246 208,246 262,272 276,336"), "#f07a28", smooth=True),
    Panel((40, 316, 280, 336), "#f07a28"),
    Disc(160, 254, 54, "#d9dee4", ry=22),
    Disc(160, 250, 44, "#9aa4af", ry=16),
    Stroke([(160, 276), (160, 336)], "#b9571a", 3),
    Panel((88, 292, 134, 318), "#f7f2e8", 4),
    Words(111, 305, "L-03", 14, "#33506b"),
    Disc(218, 302, 15, "#27466b"),
    Disc(218, 302, 9, "#f4d13d"),
    Stroke([(64, 300), (56, 336)], "#b9571a", 4),
    Stroke([(256, 300), (264, 336)], "#b9571a", 4),
)

INK = "#25222b"


@dataclass(frozen=True)
class Paint:
    """What colours the robot, nothing when it is still a line drawing."""

    body: str | None = None
    dark: str | None = None
    eyes: str | None = None
    lamp: str | None = None


def robot(paint: Paint) -> list[Brush]:
    """A friendly robot; its lines are the same with and without colour."""
    limb = [
        Panel((62, 176, 92, 240), paint.dark, 15, INK, 4),
        Panel((228, 176, 258, 240), paint.dark, 15, INK, 4),
    ]
    legs = [Panel((x, 262, x + 32, 304), paint.dark, 6, INK, 4) for x in (116, 172)]
    feet = [Panel((x, 294, x + 48, 316), paint.body, 10, INK, 4) for x in (104, 168)]
    return [
        *limb,
        *legs,
        *feet,
        Disc(77, 250, 16, paint.body, line=INK, width=4),
        Disc(243, 250, 16, paint.body, line=INK, width=4),
        Stroke([(160, 68), (160, 40)], INK, 4),
        Disc(160, 32, 12, paint.lamp, line=INK, width=4),
        Panel((142, 146, 178, 172), paint.dark, 2, INK, 4),
        Panel((92, 66, 228, 150), paint.body, 24, INK, 4),
        Panel((78, 92, 94, 124), paint.dark, 5, INK, 4),
        Panel((226, 92, 242, 124), paint.dark, 5, INK, 4),
        Disc(130, 102, 18, paint.eyes, line=INK, width=4),
        Disc(190, 102, 18, paint.eyes, line=INK, width=4),
        Disc(134, 104, 6, INK),
        Disc(194, 104, 6, INK),
        Stroke(xy("138,130 160,138 182,130"), INK, 4, smooth=True),
        Panel((96, 166, 224, 268), paint.body, 16, INK, 4),
        Panel((116, 184, 168, 216), paint.eyes, 4, INK, 4),
        Stroke(xy("122,204 132,204 138,192 146,210 152,202 162,202"), INK, 3),
        *(Disc(190 + 18 * step, 200, 7, paint.lamp, line=INK, width=3) for step in (0, 1)),
        *(Stroke([(120, y), (200, y)], INK, 3) for y in (236, 248)),
    ]


SUNSET_SEA = (
    Fade("#5a4a8f", "#ff9a62", (0, 0, 320, 220)),
    Glow(160, 214, 150, "#ffe08a99"),
    Disc(160, 216, 62, "#ffd56b"),
    Fade("#e0805f", "#3c3f7d", (0, 214, 320, 320)),
    *(
        Stroke([(x, y), (x + wide, y)], "#ffe3a0aa", 2.4)
        for x, y, wide in (
            (20, 232, 50),
            (250, 240, 48),
            (4, 262, 40),
            (270, 274, 44),
            (36, 292, 36),
            (262, 302, 30),
        )
    ),
    *(
        Stroke(
            [(x, y), (x + 9, y - 6), (x + 18, y), (x + 27, y - 6), (x + 36, y)],
            "#3b2f5f",
            2.4,
            smooth=True,
        )
        for x, y in ((30, 60), (252, 46))
    ),
)

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

SCENES = {
    "portrait.png": Scene(
        (320, 336), [Fade("#f0e2cc", "#e0c9a8"), *head(HERS)[:2], *JUMPER, *head(HERS)[1:]]
    ),
    "portrait_astronaut.png": Scene(
        (320, 336), [Fade("#8fb8de", "#6a97c4"), *head(NOT_HERS)[:1], *SUIT, *head(NOT_HERS)[1:]]
    ),
    "robot_sketch.png": Scene((320, 320), [Fade("#fdfcf8", "#fdfcf8"), *robot(Paint())]),
    "robot_coloured.png": Scene(
        (320, 320), [*SUNSET_SEA, *robot(Paint("#5fb8b0", "#3b7d86", "#fff3c9", "#ff6b5a"))]
    ),
    "chat_ramen.png": CHAT,
}
