"""Table lamps in the shape of fruit."""

from __future__ import annotations

from collections.abc import Sequence

from corpus_scenes.brushes import Disc, Fade, Glow, Panel, Shape, Sheet, Stroke
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import leaf, xy

LEMON: Sequence[Brush] = (
    Shape(
        xy(
            "160,66 182,84 226,112 236,158 212,204 178,224"
            " 160,238 142,224 108,204 84,158 94,112 138,84"
        ),
        "#f2c21f",
        smooth=True,
    ),
    Shape(
        xy("160,80 178,92 214,118 222,158 202,196 172,214 148,214 118,196 98,158 106,118 142,92"),
        "#ffd944",
        smooth=True,
    ),
    Glow(160, 156, 78, "#fffbe0ee", ry=70),
    *(
        Disc(x, y, 1.8, "#e0a81388")
        for x, y in xy(
            "112,120 126,104 200,108 210,136 104,168 118,192 204,184 214,164 190,206 136,206"
        )
    ),
    Stroke(xy("160,70 162,54"), "#5f7a2f", 6),
    Shape(leaf(162, 58, 54, 28, -18), "#6f9a3a", smooth=True),
    Stroke(xy("166,57 208,44"), "#4f7529", 2),
)
STRAWBERRY: Sequence[Brush] = (
    Shape(
        xy("160,92 206,82 236,112 230,160 196,214 160,240 124,214 90,160 84,112 114,82"),
        "#d8343f",
        smooth=True,
    ),
    Shape(
        xy("160,102 202,94 224,116 218,156 190,202 160,224 130,202 102,156 96,116 118,94"),
        "#ee5258",
        smooth=True,
    ),
    Glow(160, 150, 70, "#ffe2c4ee", ry=66),
    *(
        Shape(leaf(x, y, 9, 6, 90), "#ffe08a")
        for x, y in xy(
            "116,116 140,126 180,126 204,116 106,142 130,152 160,148 190,152 214,142"
            " 124,178 150,176 172,176 198,178 142,200 178,200 160,216"
        )
    ),
    *(
        Shape(leaf(160, 90, 52, 22, angle), "#5f9a3a", smooth=True)
        for angle in (8, 40, 140, 172, -160, -20)
    ),
    Stroke(xy("160,88 164,62"), "#4f7f2f", 6),
)


def lamp(wall: tuple[str, str], glow: str, fruit: Sequence[Brush]) -> Scene:
    """A lamp on a wooden table; its light falls on the wall."""
    grain = [
        Stroke([(0, y), (120, y + 3), (220, y - 2), (320, y + 1)], "#a9703f", 1.3, smooth=True)
        for y in (276, 288, 302)
    ]
    return Scene(
        (320, 320),
        [
            Fade(*wall),
            Glow(160, 150, 176, glow),
            Fade("#d9a56b", "#b9814a", (0, 264, 320, 320)),
            *grain,
            Panel((0, 262, 320, 266), "#e9bd88"),
            Sheet([Disc(176, 284, 74, "#4a2a1066", ry=9)], blur=4),
            Disc(160, 284, 150, "#ffe9b044", ry=18),
            Panel((152, 226, 168, 276), "#8a5f3a", 3),
            Disc(160, 277, 44, "#8a5f3a", ry=10),
            Disc(160, 273, 44, "#a97a4f", ry=9),
            *fruit,
            Stroke(xy("204,278 250,282 290,270 320,276"), "#3a2f2a", 2.4, smooth=True),
        ],
    )


SCENES = {
    "lamp_lemon.png": lamp(("#bcdcec", "#98c3da"), "#fff6c8aa", LEMON),
    "lamp_strawberry.png": lamp(("#f7ecd8", "#ead9bd"), "#ffd9b0bb", STRAWBERRY),
}
