"""Shadow boxes of cut paper: five sheets, a light behind them, and a subject."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from corpus_scenes.brushes import Disc, Fade, Glow, Panel, Placed, Scatter, Shape, Sheet, Stroke
from corpus_scenes.canvas import Brush, Point, Scene
from corpus_scenes.outlines import leaf, xy

SHEETS = ("#12294f", "#1f4478", "#37659f", "#6795c6", "#a9c8e6")
DARK = SHEETS[0]
DEEP = SHEETS[1]


def hole(radius: float, seed: int) -> list[Point]:
    """The ragged outline that is cut into one sheet."""
    chance = random.Random(seed)  # noqa: S311 - for looks, not for secrets
    turns = [math.tau * step / 14 for step in range(14)]
    reach = [radius * chance.uniform(0.9, 1.08) for _ in turns]
    return [
        (160 + long * math.cos(turn), 158 + 0.95 * long * math.sin(turn))
        for turn, long in zip(turns, reach, strict=True)
    ]


def sheets(seed: int) -> list[Brush]:
    """The sheets from the front to the back, each with the shadow of the one before it."""
    marks: list[Brush] = [Panel((44, 44, 276, 276), SHEETS[0])]
    for place, fill in enumerate((*SHEETS[1:], "#ffeec4")):
        outline = hole(116 - 13 * place, seed + place)
        shadow = Placed([Shape(outline, "#04102666", smooth=True)], 0, -2)
        marks += [shadow, Placed([Shape(outline, fill, smooth=True)], 0, 2)]
    return [*marks, Glow(160, 158, 110, "#fff7df99")]


WHALE: Sequence[Brush] = (
    Shape(
        xy(
            "92,164 104,136 140,122 184,130 214,154 224,146 222,124"
            " 236,134 250,124 246,148 228,172 196,196 140,202 104,190"
        ),
        DARK,
        smooth=True,
    ),
    Shape(xy("98,176 140,182 190,180 160,198 120,196"), SHEETS[3], smooth=True),
    *(Stroke([(x, 182), (x + 6, 194)], DEEP, 1.4) for x in (112, 124, 136, 148, 160)),
    Disc(112, 160, 3.6, "#ffeec4"),
    Shape(xy("142,178 156,190 150,212 136,196"), DEEP, smooth=True),
    Stroke(xy("136,120 134,102 120,94"), DEEP, 4, smooth=True),
    Stroke(xy("138,120 140,102 154,92"), DEEP, 4, smooth=True),
)
BICYCLE: Sequence[Brush] = (
    *(
        mark
        for x in (116, 204)
        for mark in (
            Disc(x, 180, 32, None, line=DARK, width=5),
            *(
                Stroke(
                    [(x, 180), (x + 30 * math.cos(t / 1.75), 180 + 30 * math.sin(t / 1.75))],
                    DEEP,
                    1,
                )
                for t in range(11)
            ),
            Disc(x, 180, 5, DARK),
        )
    ),
    Stroke(xy("116,180 140,132 188,132 158,180 116,180"), DARK, 5),
    Stroke(xy("134,118 158,180"), DARK, 5),
    Stroke(xy("204,180 184,118"), DARK, 5),
    Stroke(xy("184,118 196,106 210,110"), DARK, 5, smooth=True),
    Stroke(xy("122,116 146,116"), DARK, 8),
    Disc(158, 180, 9, DARK),
    Panel((196, 118, 226, 138), DEEP, 4),
    *(
        Shape(leaf(x, 118, 18, 12, angle), DARK)
        for x, angle in ((202, -120), (211, -90), (220, -60))
    ),
)
CACTUS: Sequence[Brush] = (
    Stroke(xy("160,210 160,112"), DARK, 30),
    Stroke(xy("160,176 124,172 120,140"), DARK, 17, smooth=True),
    Stroke(xy("160,160 198,154 202,120"), DARK, 17, smooth=True),
    *(Stroke([(x, 104), (x, 204)], DEEP, 1.6) for x in (153, 160, 167)),
    Shape(xy("128,202 192,202 184,240 136,240"), DEEP),
    Panel((124, 198, 196, 210), DARK, 3),
    *(Shape(leaf(160, 98, 18, 11, angle), "#ffeec4") for angle in (-150, -110, -70, -30)),
    Disc(160, 97, 4, DARK),
)


def shadow_box(subject: Sequence[Brush], seed: int) -> Scene:
    """A box on a wall, with its subject between the sheets."""
    lit = Sheet([Placed(subject, 0, 3)], blur=2.5)
    return Scene(
        (320, 320),
        [
            Fade("#e6dccb", "#e6dccb"),
            Sheet([Panel((34, 40, 296, 300), "#3a2a1a99")], blur=7),
            Panel((26, 26, 294, 294), "#8a5f3c", 4),
            Panel((32, 32, 288, 288), "#a87850", 3),
            Panel((42, 42, 278, 278), "#54381f"),
            *sheets(seed),
            lit,
            *subject,
            Scatter(16, (60, 60, 260, 250), 1.6, "#ffffffaa", seed=seed),
        ],
    )


SCENES = {
    "shadowbox_whale.png": shadow_box(WHALE, 21),
    "shadowbox_bicycle.png": shadow_box(BICYCLE, 41),
    "shadowbox_cactus.png": shadow_box(CACTUS, 63),
}
