"""Chat windows with a request for an image and what came of it, laid out by chance."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from corpus_scenes import SCENES
from corpus_scenes.brushes import Disc, Fade, Framed, Panel, Shape, Stroke, Words
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.screen_styles import Style, text_width, wrapped
from corpus_scenes.screen_tasks import ScreenTask

Place = Literal["above", "beside", "inside"]
Arranged = Literal["row", "column"]
Pixels = tuple[int, int, int, int]
HEADER, FOOTER = 44, 62
STATUS = 26
PADDING = 12
GREETINGS = ("Here it is!", "Done. Tell me if you want changes.", "Picture created", "")


@dataclass
class Window:
    """A window that grows downwards as things are put into it.

    Attributes:
        style: Its look.
        chance: What decides the measures.
        width: Of the whole window.
        left: Where the conversation begins, from the left.
        right: Where it ends.
        y: How far down it goes so far.
        marks: What it shows.
        inputs: Boxes of the images that went in.
        outputs: Boxes of those that came out.
    """

    style: Style
    chance: random.Random
    width: int
    left: int
    right: int
    y: int = 0
    marks: list[Brush] = field(default_factory=list)
    inputs: list[Pixels] = field(default_factory=list)
    outputs: list[Pixels] = field(default_factory=list)

    @property
    def column(self) -> int:
        """Width of the conversation."""
        return self.right - self.left

    def ask(self, task: ScreenTask, place: Place) -> None:
        """Shows the request with its images."""
        if not task.inputs:
            self._say(task.prompt)
        elif place == "inside":
            self._ask_inside(task)
        elif place == "beside":
            self._ask_beside(task)
        else:
            self._images_above(task.inputs)
            self._say(task.prompt)
        self.y += self.style.gap

    def answer(self, task: ScreenTask, arranged: Arranged) -> None:
        """Shows what came out."""
        self._name(self.left, "Lumen")
        greeting = self.chance.choice(GREETINGS)
        if greeting:
            self._write(greeting, self.left, self.column)
            self.y += 6
        images = list(task.outputs)
        share = 1 if arranged == "column" else len(images)
        room = (self.column - (share - 1) * self.style.gap) // share
        wide = min(room, self.chance.randint(round(0.62 * room), room) if share == 1 else room)
        start = self.y
        for number, name in enumerate(images):
            if arranged == "column" and number:
                start = self.y = self.y + self.style.gap
            x = self.left + (number * (wide + self.style.gap) if arranged == "row" else 0)
            box = self._image(name, x, start, wide)
            self.outputs.append(box)
            self.y = max(self.y, box[3])
        self._icons()

    def chat(self, question: str, reply: str) -> None:
        """Shows a question and an answer in words."""
        self._say(question)
        self.y += self.style.gap
        self._name(self.left, "Lumen")
        self._write(reply, self.left, self.column)
        self.y += 2 * self.style.gap

    def _say(self, text: str) -> None:
        if not self.style.bubbles:
            self._name(self.left, "You")
            self._write(text, self.left, self.column)
            return
        lines, wide = self._lines(text, 0.78 * self.column - 2 * PADDING)
        left = self.right - wide - 2 * PADDING
        self._bubble(left, self.y, self._height(lines) + 2 * PADDING)
        self._text(lines, left + PADDING, self.y + PADDING)
        self.y += self._height(lines) + 2 * PADDING

    def _ask_inside(self, task: ScreenTask) -> None:
        side = self.chance.randint(96, min(190, self.column // 2))
        lines, wide = self._lines(task.prompt, 0.72 * self.column - 2 * PADDING)
        wide = max(wide, len(task.inputs) * (side + PADDING) - PADDING)
        left = self.right - wide - 2 * PADDING
        tall = max(_tall(name, side) for name in task.inputs)
        height = 3 * PADDING + tall + self._height(lines)
        if self.style.bubbles:
            self._bubble(left, self.y, height)
        for number, name in enumerate(task.inputs):
            x = left + PADDING + number * (side + PADDING)
            self.inputs.append(self._image(name, x, self.y + PADDING, side))
        self._text(lines, left + PADDING, self.y + 2 * PADDING + tall)
        self.y += height

    def _ask_beside(self, task: ScreenTask) -> None:
        side = self.chance.randint(84, min(150, self.column // 3))
        total = len(task.inputs) * (side + PADDING)
        lines, wide = self._lines(task.prompt, 0.9 * self.column - total - 2 * PADDING)
        left = self.right - wide - 2 * PADDING
        height = self._height(lines) + 2 * PADDING
        for number, name in enumerate(task.inputs):
            x = left - total + number * (side + PADDING)
            self.inputs.append(self._image(name, x, self.y, side))
        if self.style.bubbles:
            self._bubble(left, self.y, height)
        self._text(lines, left + PADDING, self.y + PADDING)
        self.y = max(self.y + height, *(box[3] for box in self.inputs))

    def _images_above(self, names: Sequence[str]) -> None:
        if not self.style.bubbles:
            self._name(self.left, "You")
        share = (self.column - (len(names) - 1) * PADDING) // len(names)
        side = min(self.chance.randint(110, 230), round(0.8 * share))
        total = len(names) * (side + PADDING) - PADDING
        x = self.right - total if self.style.bubbles else self.left
        for number, name in enumerate(names):
            self.inputs.append(self._image(name, x + number * (side + PADDING), self.y, side))
        self.y = max(box[3] for box in self.inputs) + PADDING // 2

    def _image(self, name: str, x: int, y: int, wide: int) -> Pixels:
        box = (x, y, x + wide, y + _tall(name, wide))
        self.marks.append(Framed(SCENES[name], box, self.style.corner))
        return box

    def _name(self, x: int, name: str) -> None:
        if name == "You" or self.chance.random() < 0.8:
            self.marks.append(Disc(x + 9, self.y + 9, 9, self.style.accent))
            self.marks.append(Words(x + 26, self.y + 9, name, 12, self.style.faint, "lm", 0.2))
            self.y += 26

    def _bubble(self, left: float, top: float, height: float) -> None:
        box = (left, top, self.right, top + height)
        self.marks.append(Panel(box, self.style.bubble, 14))

    def _icons(self) -> None:
        self.y += 8
        for number in range(self.chance.randint(2, 5)):
            x = self.left + 2 + 24 * number
            box = (x, self.y, x + 13, self.y + 13)
            self.marks.append(Panel(box, None, 4, self.style.faint, 1.3))
        self.y += 13 + 2 * self.style.gap

    def _lines(self, text: str, room: float) -> tuple[list[str], int]:
        lines = wrapped(text, room, self.style.text)
        return lines, round(text_width(lines, self.style.text)) + 1

    def _height(self, lines: list[str]) -> int:
        return round(len(lines) * self.style.text * 1.4)

    def _write(self, text: str, x: int, room: float) -> None:
        lines, _ = self._lines(text, room)
        self._text(lines, x, self.y)
        self.y += self._height(lines)

    def _text(self, lines: list[str], x: float, y: float) -> None:
        step = self.style.text * 1.4
        for number, line in enumerate(lines):
            middle = y + (number + 0.5) * step
            self.marks.append(Words(x, middle, line, self.style.text, self.style.ink, "lm"))


def finished(window: Window, side: int, lowest: int) -> Scene:
    """The window with header, side panel and footer around the conversation."""
    style, width = window.style, window.width
    height = max(window.y + FOOTER, lowest)
    top = STATUS if not side else 0
    around: list[Brush] = [
        Fade(style.ground, style.ground),
        Panel((side, 0, width, top + HEADER), style.bar),
        Stroke([(side, top + HEADER), (width, top + HEADER)], style.line, 1),
        Words(side + 18, top + HEADER / 2, "Lumen Chat", 15, style.ink, "lm", 0.3),
        *(Disc(width - 20 - 8 * n, top + HEADER / 2, 2, style.faint) for n in range(3)),
    ]
    if top:
        around.append(Words(22, 14, "9:41", 12, style.ink, "lm", 0.3))
        around.append(Panel((width - 44, 8, width - 20, 19), None, 3, style.ink, 1.2))
    if side:
        around += _side_panel(style, side, height)
    bar = (window.left, height - FOOTER + 10, window.right, height - 14)
    below: list[Brush] = [
        Panel((side, height - FOOTER, width, height), style.ground),
        Panel(bar, style.bar, 18, style.line, 1),
        Words(window.left + 16, (bar[1] + bar[3]) / 2, "Message Lumen", 12.5, style.faint, "lm"),
        Disc(window.right - 20, (bar[1] + bar[3]) / 2, 12, style.accent),
    ]
    return Scene((width, height), [*around, *window.marks, *below])


def _side_panel(style: Style, side: int, height: int) -> list[Brush]:
    titles = (
        "Sunday dinner",
        "Grammar question",
        "Poster for Kim",
        "Holiday in Porto",
        "Cat names",
    )
    return [
        Panel((0, 0, side, height), style.bar),
        Stroke([(side, 0), (side, height)], style.line, 1),
        Panel((12, 14, side - 12, 44), style.bubble, 8),
        Words(24, 29, "+ New chat", 12, style.ink, "lm"),
        *(
            Words(24, 76 + 28 * row, title, 12, style.faint, "lm")
            for row, title in enumerate(titles)
        ),
        Shape(
            [(16, height - 34), (30, height - 34), (30, height - 20), (16, height - 20)],
            style.accent,
        ),
        Words(38, height - 27, "Rosa", 12, style.ink, "lm"),
    ]


def _tall(name: str, wide: int) -> int:
    width, height = SCENES[name].size
    return round(wide * height / width)
