"""Chat windows that are no conversation about an image with the target."""

from __future__ import annotations

from corpus_scenes.brushes import Disc, Fade, Framed, Panel, Shape, Stroke, Words
from corpus_scenes.canvas import Scene
from corpus_scenes.chair import REPAINTED
from corpus_scenes.outlines import xy

STEPS = (
    "1. Take everything off the desk.",
    "2. Tie the cables together.",
    "3. Put back what you used",
    "    this week.",
    "4. Give the mug a fixed place.",
)

TEXT_ONLY = Scene(
    (320, 320),
    [
        Fade("#ffffff", "#ffffff"),
        Panel((0, 0, 320, 40), "#f4f2fb"),
        Stroke([(0, 40), (320, 40)], "#dcd7ee", 1),
        Disc(24, 20, 9, "#7a5cd6"),
        Disc(24, 20, 4, "#ffe28a"),
        Words(42, 20, "Lumen Chat", 15, "#2d2843", "lm", 0.3),
        Panel((130, 54, 308, 92), "#e9e3fb", 14),
        Words(146, 73, "show me a tidier desk", 13, "#2d2843", "lm"),
        Disc(22, 120, 8, "#7a5cd6"),
        Disc(22, 120, 3.5, "#ffe28a"),
        Words(38, 120, "Here is how to tidy a desk:", 13, "#2d2843", "lm"),
        *(Words(38, 146 + 24 * row, step, 13, "#4a4560", "lm") for row, step in enumerate(STEPS)),
        Panel((12, 284, 308, 312), "#f7f6fc", 14, "#dcd7ee", 1),
        Words(28, 298, "Message Lumen", 12, "#9b95b3", "lm"),
        Disc(292, 298, 10, "#7a5cd6"),
        Shape(xy("288,300 292,293 296,300"), "#ffffff"),
    ],
)

OTHER_PRODUCT = Scene(
    (320, 352),
    [
        Fade("#16211f", "#16211f"),
        Panel((0, 0, 320, 44), "#0e1715"),
        Shape(xy("22,12 34,22 22,32 10,22"), "#4fd0a0"),
        Words(46, 22, "DreamMill Studio", 15, "#dff5ec", "lm", 0.3),
        Panel((252, 12, 308, 32), None, 10, "#3f6a5c", 1.5),
        Words(280, 22, "Mill 2", 12, "#8fd0b8", "mm"),
        Panel((12, 56, 308, 106), "#20302c", 6),
        Words(24, 71, "Paint this chair mint green and give it", 12.5, "#dff5ec", "lm"),
        Words(24, 90, "a cushion with small daisies", 12.5, "#dff5ec", "lm"),
        Framed(REPAINTED, (88, 118, 232, 310), 4),
        Panel((12, 320, 244, 344), "#20302c", 4),
        Words(24, 332, "Describe a change", 12, "#6f9a8a", "lm"),
        Panel((252, 320, 308, 344), "#4fd0a0", 4),
        Words(280, 332, "Mill it", 12, "#0e1715", "mm", 0.3),
    ],
)

BANNER = Scene(
    (320, 256),
    [
        Fade("#ffef5a", "#ff9a3a"),
        *(Shape([(160, 128), (x, 0), (x + 40, 0)], "#ffffff44") for x in range(-40, 360, 80)),
        *(Shape([(160, 128), (x, 256), (x + 40, 256)], "#ffffff44") for x in range(0, 360, 80)),
        Panel((28, 60, 292, 196), "#d5303f", 16, "#ffffff", 5),
        Words(160, 102, "FREE FOLLOWERS", 28, "#ffffff", bold=1),
        Words(160, 150, "click now now now", 22, "#ffef5a", bold=0.4),
    ],
)

SCENES = {"chat_list.png": TEXT_ONLY, "mill_chat.png": OTHER_PRODUCT, "spam_banner.png": BANNER}
