"""A parrot, as it is and as a stained glass window, and the conversation about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from corpus_scenes.brushes import Disc, Fade, Framed, Panel, Placed, Shape, Sheet, Stroke, Words
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import xy

LEAD = "#1c1a20"


@dataclass(frozen=True)
class Line:
    """How the parts are edged: not at all on the photo, with lead in the window."""

    fill: str | None
    width: float


def parrot(line: Line) -> list[Brush]:
    """A red parrot on a branch, looking to the right."""
    parts = (
        ("96,150 112,196 104,232 84,236 82,196", "#2f62b8"),
        ("92,140 106,186 90,226 74,220 78,180", "#e0a92f"),
        ("88,96 104,66 138,58 162,78 160,122 142,170 108,184 86,150", "#d8392f"),
        ("88,104 118,110 132,146 112,184 90,168", "#2f9a5a"),
        ("92,136 118,140 120,164 108,184 92,166", "#2f62b8"),
        ("132,66 160,70 164,96 144,104 128,92", "#fbf4e6"),
    )
    body: list[Brush] = [Stroke(xy("30,196 210,186"), line.fill or "#7a5636", 14)]
    body += [Stroke(xy("30,196 210,186"), "#8a6442", 9)]
    body += [Shape(xy(points), fill, line.fill, line.width, smooth=True) for points, fill in parts]
    return [
        *body,
        Shape(
            xy("158,72 182,80 184,104 170,112 160,96"),
            "#3a3438",
            line.fill,
            line.width,
            smooth=True,
        ),
        Disc(148, 82, 6, "#1c1a20"),
        Disc(150, 80, 2, "#ffffff"),
        *(Stroke([(x, 182), (x + 2, 198)], "#4a4248", 5) for x in (112, 126)),
    ]


JUNGLE = (
    Fade("#a9d6a0", "#5f9f6a"),
    Sheet(
        [
            *(
                Disc(x, y, r, "#dff0bfaa")
                for x, y, r in ((40, 50, 26), (200, 40, 34), (210, 140, 24))
            ),
            *(
                Disc(x, y, r, "#3f7f5088")
                for x, y, r in ((20, 140, 40), (120, 20, 30), (190, 220, 46))
            ),
        ],
        blur=7,
    ),
)
PANES: Sequence[tuple[str, str]] = (
    ("0,0 90,0 70,90 0,70", "#f6d77a"),
    ("90,0 170,0 160,70 104,66 70,90", "#8fd0e0"),
    ("170,0 240,0 240,84 184,88 160,70", "#f3a06a"),
    ("0,70 70,90 84,150 0,160", "#7fc49a"),
    ("184,88 240,84 240,170 160,176 150,150", "#f6d77a"),
    ("0,160 84,150 90,240 0,240", "#6fa8dc"),
    ("90,190 160,176 170,240 90,240", "#c9a0dc"),
    ("160,176 240,170 240,240 170,240", "#8fd0a8"),
)

PHOTO = Scene((240, 240), [*JUNGLE, *parrot(Line(None, 0))])
GLASS = Scene(
    (240, 240),
    [
        Fade("#f6d77a", "#8fd0e0"),
        *(Shape(xy(points), fill, LEAD, 5) for points, fill in PANES),
        *parrot(Line(LEAD, 5)),
        Panel((0, 0, 240, 240), None, 0, LEAD, 9),
    ],
)

GIVEN = (212, 48, 308, 144)
MADE = (38, 226, 164, 352)
ASKED = ("Turn my parrot into a stained", "glass window. Thick black lead", "lines, keep the pose.")

WINDOW: Sequence[Brush] = (
    Panel((0, 0, 320, 384), "#ffffff"),
    Panel((0, 0, 320, 40), "#f4f2fb"),
    Stroke([(0, 40), (320, 40)], "#dcd7ee", 1),
    Disc(24, 20, 9, "#7a5cd6"),
    Disc(24, 20, 4, "#ffe28a"),
    Words(42, 20, "Lumen Chat", 15, "#2d2843", "lm", 0.3),
    Framed(PHOTO, GIVEN, 10),
    Panel((92, 150, 308, 208), "#e9e3fb", 12),
    *(Words(104, 163 + 16 * row, words, 12.5, "#2d2843", "lm") for row, words in enumerate(ASKED)),
    Disc(22, 218, 7, "#7a5cd6"),
    Disc(22, 218, 3, "#ffe28a"),
    Words(38, 218, "One window, freshly leaded.", 11, "#6a6484", "lm"),
    Framed(GLASS, MADE, 10),
    Panel((12, 357, 308, 381), "#f7f6fc", 12, "#dcd7ee", 1),
    Words(28, 369, "Message Lumen", 11, "#9b95b3", "lm"),
    Disc(294, 369, 8, "#7a5cd6"),
)
CUT_AT = 184

SCENES: Mapping[str, Scene] = {
    "chat_glass.png": Scene((320, 384), WINDOW),
    "chat_glass_end.png": Scene((320, 384 - CUT_AT), [Placed(WINDOW, 0, -CUT_AT)]),
}
