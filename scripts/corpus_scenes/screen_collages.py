"""What went in beside what came out, in one image, laid out by chance."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal

from corpus_scenes import SCENES
from corpus_scenes.brushes import Fade, Framed, Panel, Words
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.screen_tasks import ScreenTask
from corpus_scenes.screen_windows import Pixels

GROUNDS = (("#ffffff", "#222222"), ("#111111", "#f0f0f0"), ("#e8e4da", "#3a3428"))
CAPTION = 26


def collage(
    task: ScreenTask, along: Literal["row", "column"], chance: random.Random
) -> tuple[Scene, list[Pixels], list[Pixels]]:
    """Draws a collage.

    Args:
        task: Whose images it shows.
        along: Beside each other, or above.
        chance: What decides the measures.

    Returns:
        The scene, and the boxes of the images that went in and that came out.
    """
    ground, ink = chance.choice(GROUNDS)
    border, gutter = chance.choice((0, 0, 8, 18)), chance.choice((0, 3, 8, 16))
    labels = chance.choice(("none", "over", "below"))
    side = chance.randint(230, 330)
    names = [*task.inputs, *task.outputs]
    boxes = _boxes(names, along, side, (border, gutter, CAPTION if labels == "below" else 0))
    marks: list[Brush] = [Fade(ground, ground)]
    for number, (name, box) in enumerate(zip(names, boxes, strict=True)):
        marks.append(Framed(SCENES[name], box))
        marks += _label("before" if number < len(task.inputs) else "after", box, labels, ink)
    right, bottom = (max(box[at] for box in boxes) for at in (2, 3))
    size = (right + border, bottom + border + (CAPTION if labels == "below" else 0))
    went_in = len(task.inputs)
    return Scene(size, marks), boxes[:went_in], boxes[went_in:]


def _boxes(
    names: Sequence[str], along: str, side: int, around: tuple[int, int, int]
) -> list[Pixels]:
    border, gutter, caption = around
    boxes, at = [], border
    for name in names:
        width, height = SCENES[name].size
        if along == "row":
            box = (at, border, at + round(side * width / height), border + side)
            at = box[2] + gutter
        else:
            box = (border, at, border + side, at + round(side * height / width))
            at = box[3] + gutter + caption
        boxes.append(box)
    return boxes


def _label(text: str, box: Pixels, labels: str, ink: str) -> list[Brush]:
    if labels == "over":
        x, y = box[0] + 8, box[1] + 8
        return [
            Panel((x, y, x + 58, y + 20), "#000000aa", 9),
            Words(x + 29, y + 10, text, 12, "#ffffff"),
        ]
    if labels == "below":
        return [Words((box[0] + box[2]) / 2, box[3] + CAPTION / 2, text, 14, ink)]
    return []
