"""A fox as a mascot: dark outlines on a plain background."""

from __future__ import annotations

from collections.abc import Sequence

from corpus_scenes.brushes import Disc, Fade, Shape, Sheet, Stroke, Tint
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import xy

INK = "#2b1d1a"
ORANGE = "#f08a2c"
CREAM = "#fff1d6"

FOX: Sequence[Brush] = (
    Disc(160, 290, 100, "#00000030", ry=11),
    Shape(
        xy("205,280 262,270 288,220 280,168 252,196 236,236 205,252"),
        ORANGE,
        INK,
        7,
        smooth=True,
    ),
    Shape(xy("281,166 288,206 272,206 262,216 254,196"), CREAM, INK, 5, smooth=True),
    Shape(
        xy("122,180 108,238 106,284 160,291 214,284 212,238 198,180"),
        ORANGE,
        INK,
        7,
        smooth=True,
    ),
    Shape(xy("134,186 160,258 186,186"), CREAM, smooth=True),
    Stroke([(142, 284), (142, 252)], INK, 6),
    Stroke([(178, 284), (178, 252)], INK, 6),
    Disc(132, 285, 17, INK, ry=9),
    Disc(188, 285, 17, INK, ry=9),
    Shape(xy("84,106 82,28 144,70"), ORANGE, INK, 7),
    Shape(xy("236,106 238,28 176,70"), ORANGE, INK, 7),
    Shape(xy("96,84 95,50 122,68"), INK),
    Shape(xy("224,84 225,50 198,68"), INK),
    Disc(160, 125, 80, ORANGE, ry=70, line=INK, width=7),
    Shape(xy("87,134 128,128 156,160 160,189 114,178"), CREAM, smooth=True),
    Shape(xy("233,134 192,128 164,160 160,189 206,178"), CREAM, smooth=True),
    Disc(160, 125, 80, None, ry=70, line=INK, width=7),
    Disc(128, 118, 10, INK, ry=13),
    Disc(192, 118, 10, INK, ry=13),
    Disc(131, 113, 4, "#ffffff"),
    Disc(195, 113, 4, "#ffffff"),
    Disc(160, 152, 11, INK, ry=8),
    Stroke(xy("146,168 153,172 160,162 167,172 174,168"), INK, 4, smooth=True),
)


def fox(background: str, *, mirrored: bool = False, cast: float = 0) -> Scene:
    """The mascot on a plain background, looking the other way, or with a yellow cast."""
    marks: list[Brush] = [Fade(background, background), Sheet(FOX, mirrored=mirrored)]
    return Scene((320, 320), [*marks, Tint("#d9a514", cast)] if cast else marks)


SCENES = {
    "fox_teal.png": fox("#3aa6a0"),
    "fox_yellow.png": fox("#3aa6a0", cast=0.42),
    "fox_pink.png": fox("#f3a6b8"),
    "fox_left.png": fox("#2f8f94", mirrored=True),
}
