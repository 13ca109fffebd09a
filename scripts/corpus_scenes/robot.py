"""A robot as a line drawing, and colored at sunset."""

from __future__ import annotations

from dataclasses import dataclass

from corpus_scenes.brushes import Disc, Fade, Glow, Panel, Placed, Stroke
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import xy

INK = "#25222b"


PAPER = "#fdfcf8"


@dataclass(frozen=True)
class Paint:
    """What colors the robot: paper, while it is still a line drawing."""

    body: str = PAPER
    dark: str = PAPER
    eyes: str = PAPER
    lamp: str = PAPER


def robot(paint: Paint) -> list[Brush]:
    """A friendly robot; its lines are the same with and without color."""
    arms = [Panel((x, 176, x + 30, 240), paint.dark, 15, INK, 4) for x in (62, 228)]
    hands = [Disc(x, 250, 16, paint.body, line=INK, width=4) for x in (77, 243)]
    legs = [Panel((x, 262, x + 32, 304), paint.dark, 6, INK, 4) for x in (116, 172)]
    feet = [Panel((x, 294, x + 48, 316), paint.body, 10, INK, 4) for x in (104, 168)]
    return [
        *arms,
        *hands,
        *legs,
        *feet,
        Stroke([(160, 68), (160, 40)], INK, 4),
        Disc(160, 32, 12, paint.lamp, line=INK, width=4),
        Panel((142, 146, 178, 172), paint.dark, 2, INK, 4),
        Panel((92, 66, 228, 150), paint.body, 24, INK, 4),
        Panel((78, 92, 94, 124), paint.dark, 5, INK, 4),
        Panel((226, 92, 242, 124), paint.dark, 5, INK, 4),
        *(Disc(x, 102, 18, paint.eyes, line=INK, width=4) for x in (130, 190)),
        *(Disc(x, 104, 6, INK) for x in (134, 194)),
        Stroke(xy("138,130 160,138 182,130"), INK, 4, smooth=True),
        Panel((96, 166, 224, 268), paint.body, 16, INK, 4),
        Panel((116, 184, 168, 216), paint.eyes, 4, INK, 4),
        Stroke(xy("122,204 132,204 138,192 146,210 152,202 162,202"), INK, 3),
        *(Disc(190 + 18 * step, 200, 7, paint.lamp, line=INK, width=3) for step in (0, 1)),
        *(Stroke([(120, y), (200, y)], INK, 3) for y in (236, 248)),
    ]


SUNSET_SEA = (
    Fade("#5a4a8f", "#ff9a62", (0, 0, 320, 220)),
    Glow(160, 214, 150, "#ffe08a99"),
    Disc(160, 216, 62, "#ffd56b"),
    Fade("#e0805f", "#3c3f7d", (0, 214, 320, 320)),
    *(
        Stroke([(x, y), (x + wide, y)], "#ffe3a0aa", 2.4)
        for x, y, wide in ((20, 232, 50), (250, 240, 48), (4, 262, 40), (270, 274, 44))
    ),
    *(
        Placed([Stroke(xy("0,0 9,-6 18,0 27,-6 36,0"), "#3b2f5f", 2.4, smooth=True)], x, y)
        for x, y in ((30, 60), (252, 46))
    ),
)

SCENES = {
    "robot_sketch.png": Scene((320, 320), [Fade(PAPER, PAPER), *robot(Paint())]),
    "robot_coloured.png": Scene(
        (320, 320), [*SUNSET_SEA, *robot(Paint("#5fb8b0", "#3b7d86", "#fff3c9", "#ff6b5a"))]
    ),
}
