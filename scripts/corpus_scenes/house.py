"""A house by the sea: a sketch on a napkin, and the painting made of it."""

from __future__ import annotations

from dataclasses import dataclass

from corpus_scenes.brushes import Disc, Fade, Glow, Panel, Scatter, Shape, Sheet, Stroke
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import xy

INK = "#3a4660"


@dataclass(frozen=True)
class Paint:
    """What fills the outlines: nothing, while it is a sketch."""

    wall: str | None = None
    shade: str | None = None
    roof: str | None = None
    door: str | None = None
    glass: str | None = None
    leaves: str | None = None


def house(paint: Paint, ink: str, width: float) -> list[Brush]:
    """The house with its crooked chimney, a tree and a fence; its lines are always the same."""
    fence = [
        Panel((x, 214, x + 6, 238), paint.wall, 1, ink, width * 0.7) for x in range(222, 330, 18)
    ]
    return [
        Shape(xy("228,84 250,80 254,124 230,120"), paint.shade, ink, width),
        Shape(xy("70,140 214,140 214,232 70,232"), paint.wall, ink, width),
        Shape(xy("214,140 262,132 262,220 214,232"), paint.shade, ink, width),
        Shape(xy("56,142 92,84 232,84 220,142"), paint.roof, ink, width),
        Shape(xy("220,142 232,84 276,136"), paint.roof, ink, width),
        *(Panel((x, 158, x + 32, 190), paint.glass, 1, ink, width) for x in (84, 170)),
        *(Stroke([(x, 158), (x, 190)], ink, width * 0.7) for x in (100, 186)),
        *(Stroke([(x, 174), (x + 32, 174)], ink, width * 0.7) for x in (84, 170)),
        Panel((128, 170, 158, 232), paint.door, 1, ink, width),
        Disc(152, 204, 2.4, ink),
        Stroke(xy("34,236 36,182"), ink, width * 2),
        Disc(36, 160, 26, paint.leaves, ry=32, line=ink, width=width),
        *fence,
        Stroke([(214, 222), (336, 222)], ink, width * 0.8),
    ]


NAPKIN = (
    Fade("#f7f4ee", "#eeeae1"),
    *(Stroke([(x, 0), (x, 288)], "#e2ddd2", 1) for x in (88, 176, 264)),
    *(Stroke([(0, y), (352, y)], "#e2ddd2", 1) for y in (96, 192)),
    Disc(318, 254, 30, None, line="#c9a98055", width=4),
)
SEA = (
    Stroke(xy("0,236 90,234 200,238 352,236"), INK, 2.4, smooth=True),
    Stroke(xy("262,176 300,174 352,176"), INK, 1.8),
    *(
        Stroke([(x, y), (x + 12, y - 4), (x + 24, y)], INK, 1.6, smooth=True)
        for x, y in xy("280,190 316,198 290,206")
    ),
    *(
        Stroke([(x, y), (x + 9, y - 7), (x + 18, y)], INK, 1.6, smooth=True)
        for x, y in xy("280,60 306,46")
    ),
)


def wash(points: str, fill: str) -> Sheet:
    """A patch of watercolor with a soft edge."""
    return Sheet([Shape(xy(points), fill, smooth=True)], blur=4)


PAINTING = (
    Fade("#bfe0ee", "#fdeccb", (0, 0, 352, 180)),
    wash("10,40 90,24 150,44 90,60 30,58", "#ffffffcc"),
    wash("190,30 260,22 300,36 250,46 204,44", "#ffffffaa"),
    Glow(300, 150, 120, "#ffdca0aa"),
    Fade("#6fb4c4", "#3f8a9f", (0, 176, 352, 240)),
    *(
        Stroke([(x, y), (x + wide, y)], "#ffffff88", 1.6)
        for x, y, wide in ((270, 186, 50), (290, 198, 40), (4, 190, 30))
    ),
    wash("-20,232 80,220 200,226 380,216 380,310 -20,310", "#a9c47a"),
    wash("-20,262 120,250 240,262 380,248 380,310 -20,310", "#7fa655"),
    Scatter(60, (0, 244, 352, 288), 2, "#f4d06a", seed=7),
    Scatter(40, (0, 244, 352, 288), 1.8, "#e98aa0", seed=12),
)

SCENES = {
    "house_sketch.png": Scene((352, 288), [*NAPKIN, *house(Paint(), INK, 2.2), *SEA]),
    "house_painted.jpg": Scene(
        (352, 288),
        [
            *PAINTING,
            *house(
                Paint("#fbf1e0", "#e3cdb4", "#d0644a", "#3f7f8f", "#bfe0e8", "#6f9f58"),
                "#5f5a66",
                1.2,
            ),
            wash("80,196 200,200 206,228 76,228", "#c9a98044"),
        ],
    ),
}
