"""Small animals of clay with a profession, on a wooden desk."""

from __future__ import annotations

from corpus_scenes.brushes import Disc, Fade, Glow, Panel, Placed, Shape, Stroke
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import xy


def clay(x: float, y: float, radius: float, color: str, ry: float | None = None) -> Placed:
    """A ball of clay, lit from the upper left."""
    ry = ry or radius
    return Placed(
        [
            Disc(x, y, radius, color, ry),
            Disc(x + radius * 0.06, y + ry * 0.08, radius * 0.94, "#00000012", ry * 0.92),
            Disc(x - radius * 0.06, y - ry * 0.08, radius * 0.86, color, ry * 0.84),
            Glow(x - radius * 0.34, y - ry * 0.4, radius * 0.5, "#ffffff88", ry * 0.48),
        ]
    )


def desk(wall: str, light: str) -> list[Brush]:
    """A plain wall and the top of a wooden desk, with the shadow of whoever stands there."""
    grain = [
        Stroke([(0, y), (110, y + bend), (220, y - bend), (320, y)], "#8a562c", 1.4, smooth=True)
        for y, bend in ((250, 2), (262, -3), (277, 3), (292, -2), (308, 4))
    ]
    return [
        Fade(light, wall),
        Fade("#c98b52", "#a96c37", (0, 240, 320, 320)),
        *grain,
        Panel((0, 238, 320, 243), "#dda56b"),
        Glow(166, 276, 96, "#2a1408aa", ry=20),
    ]


def face(y: float, gap: float = 22) -> list[Brush]:
    """Two shining eyes and warm cheeks."""
    marks: list[Brush] = []
    for x in (160 - gap, 160 + gap):
        marks += [Disc(x, y, 6.5, "#20181a", ry=8), Disc(x - 2, y - 3, 2.3, "#ffffff")]
        marks.append(Glow(x + (x - 160) * 0.55, y + 15, 12, "#ff6f6faa", ry=8))
    return marks


CAT = (
    Stroke(xy("208,262 240,250 236,208"), "#8f8f9c", 13, smooth=True),
    clay(160, 226, 52, "#c8402f", ry=50),
    Panel((112, 222, 208, 233), "#f4d13d", 4),
    Stroke([(160, 190), (160, 272)], "#8f2a1f", 2.5),
    clay(118, 232, 16, "#a9a9b5", ry=22),
    clay(202, 232, 16, "#a9a9b5", ry=22),
    clay(138, 274, 20, "#a9a9b5", ry=11),
    clay(182, 274, 20, "#a9a9b5", ry=11),
    clay(160, 146, 62, "#a9a9b5", ry=54),
    *face(148),
    Disc(160, 163, 6, "#e8899a", ry=4),
    Stroke(xy("148,171 154,175 160,168 166,175 172,171"), "#4a4048", 2.4, smooth=True),
    Shape(xy("102,116 98,66 138,96"), "#a9a9b5", smooth=True),
    Shape(xy("218,116 222,66 182,96"), "#a9a9b5", smooth=True),
    Shape(xy("96,124 114,76 160,56 206,76 224,124"), "#d5432f", smooth=True),
    Panel((86, 112, 234, 125), "#b23222", 7),
    Glow(134, 82, 30, "#ffffff77", ry=18),
    Shape(xy("146,84 174,84 172,104 160,112 148,104"), "#f4d13d"),
)

PENGUIN = (
    clay(102, 214, 15, "#2c3347", ry=34),
    clay(218, 214, 15, "#2c3347", ry=34),
    clay(160, 206, 62, "#343c54", ry=74),
    Disc(160, 222, 43, "#f7f4ee", ry=54),
    Shape(xy("126,196 194,196 200,262 120,262"), "#fffdf8", "#d9d4c8", 2),
    Stroke([(126, 198), (106, 186)], "#fffdf8", 5),
    Stroke([(194, 198), (214, 186)], "#fffdf8", 5),
    Panel((144, 224, 176, 246), "#f2eee4", 5, "#d9d4c8", 2),
    clay(136, 276, 22, "#f0982e", ry=10),
    clay(184, 276, 22, "#f0982e", ry=10),
    clay(160, 138, 54, "#343c54", ry=48),
    Disc(140, 148, 25, "#f7f4ee", ry=28),
    Disc(180, 148, 25, "#f7f4ee", ry=28),
    *face(144, 18),
    Shape(xy("147,158 173,158 160,174"), "#f0982e", smooth=True),
    clay(130, 66, 26, "#ffffff"),
    clay(190, 66, 26, "#ffffff"),
    clay(160, 54, 31, "#ffffff"),
    Panel((122, 76, 198, 104), "#f6f3ec", 6, "#dcd7cc", 2),
    Stroke([(240, 262), (240, 196)], "#8a562c", 6),
    clay(240, 186, 13, "#a96c37", ry=18),
)

TURTLE = (
    clay(160, 216, 74, "#5f7f3a", ry=62),
    Disc(160, 222, 50, "#e9d9a0", ry=48),
    Stroke([(113, 212), (207, 212)], "#cdb978", 2.5),
    Stroke([(114, 238), (206, 238)], "#cdb978", 2.5),
    clay(94, 222, 18, "#8fbf5a", ry=28),
    clay(226, 222, 18, "#8fbf5a", ry=28),
    clay(126, 275, 26, "#8fbf5a", ry=13),
    clay(194, 275, 26, "#8fbf5a", ry=13),
    Stroke([(116, 176), (204, 246)], "#6b3f1f", 7),
    Panel((184, 224, 238, 266), "#8a5a2e", 8),
    Shape(xy("184,228 238,228 232,246 190,246"), "#74481f", smooth=True),
    Disc(211, 247, 4, "#f4d13d"),
    Panel((192, 206, 220, 228), "#fffdf4", 2, "#d4cdb8", 1.5),
    Stroke(xy("192,207 206,219 220,207"), "#d4cdb8", 1.8),
    Panel((184, 226, 238, 236), "#74481f", 4),
    clay(160, 132, 56, "#8fbf5a", ry=50),
    *face(136),
    Stroke(xy("142,158 160,166 178,158"), "#44602a", 3.5, smooth=True),
    Shape(xy("106,106 112,66 160,52 208,66 214,106"), "#2f5fa8", smooth=True),
    Panel((102, 92, 218, 106), "#234a86", 6),
    Shape(xy("112,104 208,104 196,118 124,118"), "#1d2f4f", smooth=True),
    Disc(160, 78, 12, "#f4d13d"),
    Disc(160, 78, 7, "#dba926"),
)


SCENES = {
    "clay_cat_firefighter.png": Scene((320, 320), [*desk("#d98a8a", "#f2c4bd"), *CAT]),
    "clay_penguin_chef.png": Scene((320, 320), [*desk("#9fd8c4", "#d5f2e6"), *PENGUIN]),
    "clay_turtle_postman.png": Scene((320, 320), [*desk("#b9a6dc", "#e2d8f4"), *TURTLE]),
}
