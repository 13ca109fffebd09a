"""Draws screenshots and collages, and writes down what is where in them.

    python scripts/draw_screenshots.py               draws what is missing or not as it should be
    python scripts/draw_screenshots.py --check       changes nothing, names what is not
    python scripts/draw_screenshots.py --sheet FILE  draws all of them side by side into FILE

Each half is a gold folder with posts. Layouts come from seeds, and were frozen before any rule that
reads them was written: rules are made by what they do on `tune`, and are never run on `unseen` to
make them better.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from corpus_scenes.canvas import Scene
from corpus_scenes.screen_collages import collage
from corpus_scenes.screen_styles import drawn_style
from corpus_scenes.screen_tasks import CHATTER, TASKS, ScreenTask
from corpus_scenes.screen_windows import HEADER, STATUS, Arranged, Pixels, Place, Window, finished
from draw_corpus import ENCODING, MOST_DIFFERENCE, difference
from PIL import Image

DATA = Path(__file__).resolve().parent.parent / "tests" / "data" / "screenshots"
HALVES = {"tune": "tune", "unseen": "held_out"}
SHEET_COLUMNS, SHEET_CELL = 6, 300
Row = dict[str, Any]


@dataclass(frozen=True)
class Layout:
    """One kind of image.

    Attributes:
        device: Phone or desktop; null for a collage.
        dark: Whether the ground is.
        counts: How many images go in and come out; the second may be left to chance.
        place: Where those that go in stand.
        arranged: How those that come out stand, or how a collage is laid out.
        long: Whether the conversation goes on above and below.
    """

    device: Literal["phone", "desktop"] | None
    counts: tuple[int, int]
    place: Place = "above"
    arranged: Arranged = "row"
    dark: bool = False
    long: bool = False


LAYOUTS: Mapping[str, Layout] = {
    "phone_above": Layout("phone", (1, 1)),
    "phone_inside_dark": Layout("phone", (1, 1), "inside", dark=True),
    "phone_words": Layout("phone", (0, 1)),
    "phone_two_dark": Layout("phone", (0, 2), dark=True),
    "phone_long_beside": Layout("phone", (1, 1), "beside", long=True),
    "phone_long_two_dark": Layout("phone", (1, 2), "above", "column", dark=True, long=True),
    "desktop_beside": Layout("desktop", (1, 1), "beside"),
    "desktop_inside_dark": Layout("desktop", (1, 1), "inside", dark=True),
    "desktop_two_inputs": Layout("desktop", (2, 1)),
    "desktop_two_dark": Layout("desktop", (0, 2), dark=True),
    "collage_row": Layout(None, (1, 1)),
    "collage_column": Layout(None, (1, 2), arranged="column"),
}


@dataclass(frozen=True)
class Shot:
    """One image of a half.

    Attributes:
        half: Its half.
        name: Name of its layout.
    """

    half: str
    name: str

    @cached_property
    def drawn(self) -> tuple[Scene, ScreenTask, list[Pixels], list[Pixels]]:
        """The scene, its task, and the boxes of its images."""
        layout = LAYOUTS[self.name]
        chance = random.Random(f"screenshots:{self.half}:{self.name}")  # noqa: S311 - for looks
        fitting = [task for task in TASKS[self.half] if task.counts == layout.counts]
        task = chance.choice(fitting)
        if layout.device is None:
            scene, inputs, outputs = collage(task, layout.arranged, chance)
            return scene, task, inputs, outputs
        window, side = _window(layout, chance)
        chatter = list(CHATTER[self.half])
        if layout.long:
            for turn in chatter[:2]:
                window.chat(*turn)
        window.ask(task, layout.place)
        window.answer(task, layout.arranged)
        if layout.long:
            window.chat(*chatter[2])
        return finished(window, side, 560 if side else 640), task, window.inputs, window.outputs

    @property
    def image(self) -> Image.Image:
        """The image as it is saved, in 256 colors."""
        scene, *_ = self.drawn
        return scene.draw().quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)

    @property
    def file(self) -> Path:
        """Where it lies."""
        return DATA / self.half / "pictures" / f"{self.name}.png"

    @property
    def url(self) -> str:
        """The address of its post."""
        return f"https://example.org/{self.half}/{self.name.replace('_', '-')}"

    def lines(self) -> Iterator[tuple[str, Row]]:
        """Its lines in the files of its half, each with the name of its file."""
        _, task, inputs, outputs = self.drawn
        layout = "conversation" if LAYOUTS[self.name].device else "collage"
        half, at = HALVES[self.half], {"post_url": self.url, "index": 0}
        typed = task.prompt if layout == "conversation" else ""
        yield (
            "posts",
            {
                "url": self.url,
                "author": "rosa_draws",
                "text": f"asked Lumen for {task.short}, and look!",
                "keywords": ["lumen"],
                "pictures": [{"path": f"pictures/{self.name}.png"}],
            },
        )
        sample = {"prompt": task.short, "quality": "Benchmark", "post_urls": [self.url]}
        yield "extract", {"root_url": self.url, "samples": [sample], "half": half}
        yield (
            "roles",
            {
                "root_url": self.url,
                "prompt": task.short,
                "pictures": [{**at, "role": "neither"}],
                layout: at,
                "half": half,
            },
        )
        boxes = {"inputs": [*map(list, inputs)], "outputs": [*map(list, outputs)]}
        yield "screenshots", {**at, "layout": layout, "prompt": typed, **boxes, "half": half}


SHOTS = [Shot(half, name) for half in HALVES for name in LAYOUTS]


def _window(layout: Layout, chance: random.Random) -> tuple[Window, int]:
    style = drawn_style(chance, dark=layout.dark)
    if layout.device == "phone":
        width, margin = chance.randint(340, 420), chance.randint(12, 20)
        return Window(style, chance, width, margin, width - margin, STATUS + HEADER + 14), 0
    side, column = chance.randint(160, 210), chance.randint(440, 540)
    width = side + column + chance.randint(80, 220)
    left = side + (width - side - column) // 2
    return Window(style, chance, width, left, left + column, HEADER + 18), side


def main() -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(description="Draw screenshots and write down what is where.")
    parser.add_argument("--check", action="store_true", help="change nothing, say what differs")
    parser.add_argument("--sheet", type=Path, help="draw all of them side by side into this file")
    options = parser.parse_args()
    if options.sheet:
        contact_sheet().save(options.sheet)
        return 0
    return check() if options.check else draw()


def draw() -> int:
    """Writes every file that is not on disk as it should be."""
    for shot, _ in differing():
        shot.file.parent.mkdir(parents=True, exist_ok=True)
        shot.image.save(shot.file, **ENCODING[".png"])
        print(f"{shot.file.relative_to(DATA)}: {shot.file.stat().st_size} bytes")
    for path, text in written().items():
        path.write_text(text, "utf-8")
    return 0


def check() -> int:
    """Prints what differs between the files and the layouts; returns 1 if anything does."""
    mend = "run scripts/draw_screenshots.py"
    faults = [f"{shot.file.relative_to(DATA)}: {what}; {mend}" for shot, what in differing()]
    known = {shot.file for shot in SHOTS}
    strange = sorted(path for path in DATA.glob("*/pictures/*") if path not in known)
    faults += [f"{path.relative_to(DATA)}: nothing draws it; delete it" for path in strange]
    for path, text in written().items():
        if not path.is_file() or path.read_text("utf-8") != text:
            faults.append(f"{path.relative_to(DATA)}: not what the layouts say; {mend}")
    print("\n".join(faults) or f"{len(SHOTS)} images are as drawn")
    return 1 if faults else 0


def differing() -> Iterator[tuple[Shot, str]]:
    """Each image that is missing or not as it should be, and what is wrong with it."""
    for shot in SHOTS:
        if not shot.file.is_file():
            yield shot, "missing"
        elif (found := difference(shot.file, shot.image)) > MOST_DIFFERENCE[".png"]:
            yield shot, f"a tile is {found:.1f} levels from its layout"


def written() -> dict[Path, str]:
    """The text of each file of posts and gold."""
    texts: dict[Path, str] = {}
    for shot in SHOTS:
        for name, row in shot.lines():
            path = DATA / shot.half / f"{name}.jsonl"
            texts[path] = texts.get(path, "") + json.dumps(row) + "\n"
    return texts


def contact_sheet() -> Image.Image:
    """All images side by side, each fitted into a cell."""
    rows = -(-len(SHOTS) // SHEET_COLUMNS)
    sheet = Image.new("RGB", (SHEET_COLUMNS * SHEET_CELL, rows * SHEET_CELL), "#808080")
    for place, shot in enumerate(SHOTS):
        image = shot.image.convert("RGB")
        image.thumbnail((SHEET_CELL - 8, SHEET_CELL - 8))
        row, column = divmod(place, SHEET_COLUMNS)
        sheet.paste(image, (column * SHEET_CELL + 4, row * SHEET_CELL + 4))
    return sheet


if __name__ == "__main__":
    sys.exit(main())
