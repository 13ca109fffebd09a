"""A mountain lake with a cabin, by day and by night."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corpus_scenes.brushes import Disc, Fade, Glow, Panel, Placed, Scatter, Shape, Sheet, Stroke
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import xy


@dataclass(frozen=True)
class Light:
    """The colors of the lake at one time of day."""

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


SCENES = {
    "lake_day.jpg": lake(DAY, 24, [CLOUDS], RIPPLES),
    "lake_night.jpg": lake(NIGHT, 306, STARS_AND_MOON, MOONLIGHT),
}
