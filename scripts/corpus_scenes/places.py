"""Places: a lake by day and by night, a small room, a cat at a window, a boat, a lighthouse."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from corpus_scenes.brushes import (
    Brush,
    Disc,
    Fade,
    Glow,
    Panel,
    Placed,
    Point,
    Scatter,
    Scene,
    Shape,
    Sheet,
    Stroke,
    Tint,
)


@dataclass(frozen=True)
class Light:
    """The colours of the lake at one time of day."""

    sky: tuple[str, str]
    far: str
    near: str
    snow: str
    water: tuple[str, str]
    shore: tuple[str, str]
    pine: str
    wall: str
    roof: str
    window: str


DAY = Light(
    ("#6fb1e6", "#dcefFA"),
    "#8fa9c4",
    "#5d7f8f",
    "#f6fafd",
    ("#9cc9e0", "#3f7f9f"),
    ("#7fae5b", "#4f8040"),
    "#2f5f43",
    "#a5693f",
    "#6d3d2a",
    "#39302e",
)
NIGHT = Light(
    ("#0b1433", "#3a4a7d"),
    "#33406b",
    "#202c4f",
    "#8f9cc4",
    ("#2b3a69", "#0f1838"),
    ("#1f3345", "#12202f"),
    "#0f1f2c",
    "#4a3a3d",
    "#2c2330",
    "#ffd36b",
)


def pine(x: float, y: float, height: float, fill: str) -> list[Brush]:
    """A pine whose trunk stands at (x, y)."""
    third = height / 3
    return [
        Shape(
            [
                (x - third * wide, y - third * low),
                (x, y - third * high),
                (x + third * wide, y - third * low),
            ],
            fill,
        )
        for wide, low, high in ((0.9, 0.25, 1.8), (0.7, 1, 2.4), (0.5, 1.7, 3))
    ] + [Stroke([(x, y), (x, y - third * 0.4)], fill, height / 14)]


def cabin(light: Light) -> list[Brush]:
    """A log cabin about 60 pixels wide, its left foot at the origin."""
    logs = [Stroke([(2, -y), (54, -y)], light.roof, 1) for y in (6, 13, 20)]
    return [
        Panel((0, -28, 56, 0), light.wall),
        *logs,
        Shape(xy("-7,-26 28,-52 63,-26"), light.roof),
        Panel((39, -52, 46, -36), light.roof),
        Panel((9, -20, 23, -8), light.window),
        Panel((34, -21, 46, 0), light.roof),
    ]


def lake(light: Light, cabin_at: float, above: Sequence[Brush], below: Sequence[Brush]) -> Scene:
    """Mountains, water and shore in one light, with what is in the sky and on the water."""
    pines = xy("20,70 52,92 82,60 300,84 334,100 366,66")
    trees = [mark for x, tall in pines for mark in pine(x, 216, tall, light.pine)]
    return Scene(
        (384, 288),
        [
            Fade(*light.sky, (0, 0, 384, 170)),
            *above,
            Shape(xy("0,168 70,70 120,120 196,42 282,128 330,92 384,150 384,172 0,172"), light.far),
            Shape(xy("196,42 166,74 184,70 196,84 208,68 228,75"), light.snow),
            Shape(xy("70,70 52,96 68,90 78,98 90,91"), light.snow),
            Shape(
                xy("0,150 60,128 130,156 220,130 300,158 384,132 384,176 0,176"),
                light.near,
                smooth=False,
            ),
            Fade(*light.water, (0, 170, 384, 260)),
            Shape(xy("120,170 196,232 286,170"), light.far + "55"),
            *below,
            Shape(xy("0,206 60,202 120,214 150,236 100,250 0,250"), light.shore[0], smooth=True),
            Shape(
                xy("384,200 310,204 262,218 250,236 300,250 384,252"), light.shore[0], smooth=True
            ),
            Fade(*light.shore, (0, 246, 384, 288)),
            *trees,
            Placed(cabin(light), cabin_at, 228),
        ],
    )


CLOUDS = Sheet(
    [
        Disc(96, 46, 34, "#ffffffe0", ry=11),
        Disc(120, 38, 24, "#ffffffe0", ry=12),
        Disc(300, 58, 38, "#ffffffd0", ry=9),
        Disc(286, 51, 20, "#ffffffd0", ry=10),
    ],
    blur=2.5,
)
RIPPLES = tuple(
    Stroke([(x, y), (x + wide, y)], "#ffffff66", 1.2)
    for x, y, wide in (
        (150, 186, 60),
        (230, 196, 40),
        (170, 208, 70),
        (196, 226, 50),
        (160, 240, 60),
    )
)
STARS_AND_MOON = (
    Scatter(90, (0, 0, 384, 130), 1.3, "#ffffff", seed=4),
    Glow(262, 44, 74, "#fff2c477"),
    Disc(262, 44, 22, "#fff6dc"),
    Disc(255, 39, 4, "#eadfbd"),
    Disc(269, 50, 6, "#eadfbd"),
)
MOONLIGHT = tuple(
    Stroke([(244 - wide / 2, y), (244 + wide / 2, y)], "#fff2c4bb", 2.2)
    for y, wide in ((177, 34), (185, 50), (194, 30), (203, 42), (213, 22), (223, 30))
)


def iso(x: float, y: float, z: float) -> Point:
    """Where a point of the room lies in the picture: x to the right, y to the left, z up."""
    return 192 + (x - y) * 0.866, 214 + (x + y) * 0.5 - z


def block(at: Sequence[float], size: Sequence[float], colours: Sequence[str]) -> list[Brush]:
    """A box in the room; its colours are those of the top, the left and the right side."""
    (x, y, z), (w, d, h) = at, size
    top = [iso(x, y, z + h), iso(x + w, y, z + h), iso(x + w, y + d, z + h), iso(x, y + d, z + h)]
    left = [iso(x, y + d, z + h), iso(x + w, y + d, z + h), iso(x + w, y + d, z), iso(x, y + d, z)]
    right = [iso(x + w, y, z + h), iso(x + w, y + d, z + h), iso(x + w, y + d, z), iso(x + w, y, z)]
    return [Shape(side, fill) for side, fill in zip((top, left, right), colours, strict=True)]


LAMP = (
    Disc(0, 0, 7, "#3a2f4a", ry=3.5),
    Stroke([(0, 0), (0, -14)], "#3a2f4a", 2.5),
    Shape(xy("-12,-12 12,-12 7,-30 -7,-30"), "#ffe29a"),
    Disc(0, -12, 12, "#fff4d0", ry=3),
)


def wall(points: Sequence[tuple[float, float, float]], fill: str) -> Shape:
    """A flat piece of the room."""
    return Shape([iso(*point) for point in points], fill)


def room(walls: tuple[str, str], rug: str, blanket: Sequence[str]) -> Scene:
    """A bedroom at night, seen from a corner."""
    circle = [
        iso(105 + 34 * math.cos(turn / 12 * math.pi), 118 + 34 * math.sin(turn / 12 * math.pi), 1)
        for turn in range(24)
    ]
    wood = ("#b9825a", "#8a5b3c", "#9d6a46")
    planks = [Stroke([iso(0, y, 0), iso(160, y, 0)], "#5c4a6b", 1.2) for y in range(20, 160, 20)]
    return Scene(
        (384, 384),
        [
            Fade("#171532", "#2a2450"),
            Scatter(60, (0, 0, 384, 384), 1.2, "#ffffff55", seed=9),
            *block((-6, -6, -10), (166, 166, 10), ("#71597f", "#3d3054", "#4a3b63")),
            wall([(0, 0, 0), (160, 0, 0), (160, 0, 130), (0, 0, 130)], walls[0]),
            wall([(0, 0, 0), (0, 160, 0), (0, 160, 130), (0, 0, 130)], walls[1]),
            wall(
                [
                    (0, 0, 130),
                    (160, 0, 130),
                    (160, -6, 130),
                    (-6, -6, 130),
                    (-6, 160, 130),
                    (0, 160, 130),
                ],
                "#d9c9ee",
            ),
            *planks,
            wall([(0, 44, 48), (0, 116, 48), (0, 116, 112), (0, 44, 112)], "#f1e8fb"),
            wall([(0, 49, 53), (0, 111, 53), (0, 111, 107), (0, 49, 107)], "#1b2a5e"),
            Disc(iso(0, 84, 86)[0], iso(0, 84, 86)[1], 11, "#fff3c9"),
            Disc(iso(0, 80, 89)[0], iso(0, 80, 89)[1], 9.5, "#1b2a5e"),
            Stroke([iso(0, 80, 53), iso(0, 80, 107)], "#f1e8fb", 2.5),
            Stroke([iso(0, 49, 80), iso(0, 111, 80)], "#f1e8fb", 2.5),
            Shape(circle, rug),
            Shape(
                [
                    iso(
                        105 + 21 * math.cos(turn / 12 * math.pi),
                        118 + 21 * math.sin(turn / 12 * math.pi),
                        1,
                    )
                    for turn in range(24)
                ],
                "#ffffff55",
            ),
            *block((8, 90, 0), (62, 62, 12), wood),
            *block((10, 92, 12), (60, 58, 12), ("#f7f1ff", "#cbbfe0", "#ded3ee")),
            *block((30, 91, 14), (42, 61, 14), blanket),
            *block((13, 98, 24), (14, 46, 8), ("#ffffff", "#d8cdea", "#e8dff5")),
            *block((92, 6, 0), (5, 34, 42), wood),
            *block((148, 6, 0), (5, 34, 42), wood),
            *block((88, 4, 42), (70, 40, 5), wood),
            *block((96, 12, 47), (18, 24, 4), ("#d96b6b", "#a44848", "#b95555")),
            Glow(*iso(136, 20, 62), 62, "#ffd98088"),
            Placed(LAMP, *iso(136, 20, 47)),
            *block((112, 62, 0), (22, 22, 22), ("#8a74b8", "#57467f", "#6a5796")),
        ],
    )


def rain() -> list[Brush]:
    """Slanting drops on the pane."""
    chance = random.Random(11)  # noqa: S311 - for looks, not for secrets
    starts = [(chance.uniform(30, 320), chance.uniform(20, 220)) for _ in range(70)]
    return [Stroke([(x, y), (x - 3, y + 12)], "#e8f1f799", 1) for x, y in starts]


CAT_RAIN = Scene(
    (320, 320),
    [
        Fade("#5f7488", "#9fb0bd"),
        Sheet(
            [
                Panel((20, 120, 90, 280), "#4d6074aa"),
                Panel((100, 150, 160, 280), "#566b7faa"),
                Panel((200, 100, 300, 280), "#485b6faa"),
            ],
            blur=5,
        ),
        *(
            Glow(x, y, size, "#ffe0a0cc")
            for x, y, size in ((70, 96, 40), (176, 122, 26), (262, 78, 48))
        ),
        *(
            Stroke([(x, y), (x, 260)], "#3d4d5e88", 3)
            for x, y in ((70, 104), (176, 126), (262, 88))
        ),
        *rain(),
        Panel((0, 0, 320, 14), "#e9e4da"),
        Panel((0, 0, 16, 320), "#e9e4da"),
        Panel((304, 0, 320, 320), "#e9e4da"),
        Panel((196, 0, 206, 250), "#e9e4da"),
        Panel((16, 240, 304, 320), "#d8cfc0"),
        Panel((0, 240, 320, 254), "#f1ece2"),
        Glow(122, 258, 84, "#2c2a3066", ry=14),
        Stroke(xy("152,246 196,262 214,292 196,304"), "#d9742b", 15, smooth=True),
        Stroke(xy("150,240 210,244 244,272 236,296"), "#e08436", 14, smooth=True),
        Shape(xy("92,150 70,210 72,256 120,262 168,256 170,210 148,150"), "#e58a3a", smooth=True),
        Shape(xy("82,112 84,66 112,90"), "#e58a3a"),
        Shape(xy("158,112 156,66 128,90"), "#e58a3a"),
        Shape(xy("88,104 89,78 106,92"), "#b9622a"),
        Shape(xy("152,104 151,78 134,92"), "#b9622a"),
        Disc(120, 122, 43, "#e58a3a", ry=39),
        *(
            Stroke([(120 - wide, y), (120, y + 5), (120 + wide, y)], "#bf6527", 5, smooth=True)
            for y, wide in ((94, 9), (106, 13), (178, 24), (198, 32), (218, 38))
        ),
        Glow(98, 170, 46, "#ffd9a055", ry=64),
    ],
)

PAPER_BOAT = Scene(
    (320, 320),
    [
        Fade("#ffd9bd", "#ffeede"),
        Glow(236, 96, 92, "#ffffffaa"),
        Disc(239, 100, 44, "#00000022"),
        Disc(236, 96, 44, "#ff9e78"),
        *(
            mark
            for y, fill, sway in ((196, "#5d7fb0", 0), (226, "#35588f", 60), (258, "#1f3a6b", 20))
            for mark in (
                Shape(
                    [
                        (-20, 340),
                        *((x, y + 10 * math.sin((x + sway) / 32) - 5) for x in range(-20, 345, 5)),
                        (340, 340),
                    ],
                    "#0a1a3a2a",
                ),
                Shape(
                    [
                        (-20, 340),
                        *((x, y + 10 * math.sin((x + sway) / 32)) for x in range(-20, 345, 5)),
                        (340, 340),
                    ],
                    fill,
                ),
            )
            if y < 250
        ),
        Shape(xy("70,242 330,262 250,236"), "#0a1a3a33"),
        Shape(xy("60,176 146,196 150,96"), "#ffffff"),
        Shape(xy("150,96 146,196 236,176"), "#e6e3ea"),
        Shape(xy("42,172 146,198 128,242 86,242"), "#f6f4f8"),
        Shape(xy("254,172 146,198 128,242 206,242"), "#d3cfdb"),
        Stroke(xy("42,172 146,198 254,172"), "#bcb7c8", 1.6),
        *(
            Shape(
                [
                    (-20, 340),
                    *((x, 252 + lift + 10 * math.sin((x + 20) / 32)) for x in range(-20, 345, 5)),
                    (340, 340),
                ],
                fill,
            )
            for lift, fill in ((-17, "#0a1a3a33"), (-12, "#1f3a6b"))
        ),
        *(
            Shape([(x, y), (x + 12, y - 5), (x + 24, y), (x + 12, y - 1)], "#ffffff")
            for x, y in ((52, 70), (84, 54), (112, 82))
        ),
    ],
)


def swirls() -> list[Brush]:
    """Thick strokes of a stormy sky, seen as if laid with a knife."""
    chance = random.Random(3)  # noqa: S311 - for looks, not for secrets
    tones = ("#39465c", "#4b5a72", "#5f6f86", "#2b3548", "#77869a", "#414a66")
    marks: list[Brush] = []
    for _ in range(230):
        x, y = chance.uniform(-20, 320), chance.uniform(-10, 220)
        long, bend = chance.uniform(24, 60), chance.uniform(-10, 4)
        path = [(x, y), (x + long / 2, y + bend), (x + long, y + chance.uniform(-6, 6))]
        marks.append(Stroke(path, chance.choice(tones), chance.uniform(5, 11), smooth=True))
    return marks


LIGHTHOUSE = Scene(
    (288, 352),
    [
        Fade("#39465c", "#5f6f86"),
        *swirls(),
        Stroke(xy("60,0 78,46 62,58 88,118 76,124 92,168"), "#f4f1d8", 3.2),
        Shape(xy("178,92 -30,46 -30,132"), "#ffe9a866"),
        Fade("#2c4152", "#16232f", (0, 230, 288, 352)),
        *(
            Stroke([(x, y), (x + 26, y - 6), (x + 54, y + 2)], fill, 6, smooth=True)
            for x, y, fill in (
                (-6, 244, "#4f6d7f"),
                (50, 252, "#3d5a6d"),
                (10, 270, "#5f8093"),
                (88, 266, "#35505f"),
                (30, 296, "#45647a"),
                (-10, 318, "#35505f"),
                (80, 312, "#54748a"),
                (20, 338, "#3d5a6d"),
            )
        ),
        Shape(xy("110,352 124,300 118,268 146,240 168,222 288,212 288,352"), "#3b2f2c"),
        *(
            Shape(
                [(x, y), (x + 34, y - 12), (x + 52, y + 14), (x + 26, y + 40), (x + 4, y + 22)],
                fill,
            )
            for x, y, fill in (
                (126, 284, "#4a3b36"),
                (160, 250, "#5f4e46"),
                (196, 268, "#4d3e38"),
                (236, 240, "#6b594e"),
                (150, 314, "#57463f"),
                (206, 310, "#453630"),
                (248, 284, "#54443d"),
                (176, 330, "#3f312d"),
                (246, 330, "#4a3b36"),
            )
        ),
        Stroke(xy("150,234 200,218 286,212"), "#6f7f4f", 9, smooth=True),
        Shape(xy("162,222 170,116 200,116 208,222"), "#f0ebe0"),
        Shape(xy("165.4,178 167.6,148 202.4,148 204.6,178"), "#b8402f"),
        Shape(xy("162,222 163.4,204 206.6,204 208,222"), "#b8402f"),
        Shape(xy("192,116 200,116 208,222 196,222"), "#00000033"),
        Panel((162, 108, 208, 118), "#2b2a30", 2),
        Panel((172, 80, 198, 108), "#ffe9a8"),
        Glow(185, 94, 54, "#fff3c0cc"),
        Stroke([(185, 80), (185, 108)], "#2b2a30", 2),
        Shape(xy("166,82 185,60 204,82"), "#b8402f"),
        Tint("#5a4a2a", 0.06),
    ],
)

SCENES = {
    "lake_day.jpg": lake(DAY, 24, [CLOUDS], RIPPLES),
    "lake_night.jpg": lake(NIGHT, 306, STARS_AND_MOON, MOONLIGHT),
    "iso_room.png": room(("#a48fc9", "#8f79b8"), "#e8a0a8", ("#e0b03a", "#a87c1c", "#c4942a")),
    "iso_room_green.png": room(
        ("#8fb5a6", "#789f90"), "#f0d9a8", ("#d9a637", "#9c741d", "#bb8c28")
    ),
    "cat_rain.jpg": CAT_RAIN,
    "paper_boat.png": PAPER_BOAT,
    "lighthouse.webp": LIGHTHOUSE,
}
