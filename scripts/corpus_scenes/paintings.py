"""A cat at a window, a boat of cut paper, a lighthouse in a storm."""

from __future__ import annotations

import math
import random

from corpus_scenes.brushes import Disc, Fade, Glow, Panel, Placed, Shape, Sheet, Stroke, Tint
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import xy


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


def wave(y: float, sway: float, fill: str) -> list[Brush]:
    """A sheet of paper with a wavy edge at height y, and its shadow above."""
    crest = [(x, y + 10 * math.sin((x + sway) / 32)) for x in range(-20, 345, 5)]
    sheet = [(-20, 340), *crest, (340, 340)]
    return [Placed([Shape(sheet, "#0a1a3a2e")], 0, -5), Shape(sheet, fill)]


PAPER_BOAT = Scene(
    (320, 320),
    [
        Fade("#ffd9bd", "#ffeede"),
        Glow(236, 96, 92, "#ffffffaa"),
        Disc(239, 100, 44, "#00000022"),
        Disc(236, 96, 44, "#ff9e78"),
        *wave(196, 0, "#5d7fb0"),
        *wave(226, 60, "#35588f"),
        Shape(xy("60,176 146,196 150,96"), "#ffffff"),
        Shape(xy("150,96 146,196 236,176"), "#e6e3ea"),
        Shape(xy("42,172 146,198 128,252 86,252"), "#f6f4f8"),
        Shape(xy("254,172 146,198 128,252 206,252"), "#d3cfdb"),
        Stroke(xy("42,172 146,198 254,172"), "#bcb7c8", 1.6),
        *wave(240, 20, "#1f3a6b"),
        *wave(284, 90, "#162c54"),
        *(
            Placed([Shape(xy("0,0 12,-5 24,0 12,-1"), "#ffffff")], x, y)
            for x, y in xy("52,70 84,54 112,82")
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
    "cat_rain.jpg": CAT_RAIN,
    "paper_boat.png": PAPER_BOAT,
    "lighthouse.webp": LIGHTHOUSE,
}
