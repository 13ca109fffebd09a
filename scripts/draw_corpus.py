"""Draws the pictures of the bundled posts, from the scenes in `corpus_scenes`.

    python scripts/draw_corpus.py            draws what is missing or no longer as the scene says
    python scripts/draw_corpus.py --check    only says what is not as the scene says; 1 if anything
    python scripts/draw_corpus.py --sheet S  draws all of them side by side into the file S

Nothing is random and no font is read, so every run draws the same pixels.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from corpus_scenes import SCENES
from PIL import Image

PICTURES = Path(__file__).resolve().parent.parent / "echo_hf" / "quickstart" / "pictures"
# Lossy files may differ by what their compression costs; PNG files by nothing.
MOST_DIFFERENCE = {".png": 0.0, ".jpg": 3.0, ".webp": 3.0}
ENCODING: dict[str, dict[str, int | bool]] = {
    ".png": {"optimize": True},
    ".jpg": {"quality": 85, "optimize": True},
    ".webp": {"quality": 85},
}
SHEET_COLUMNS = 6
SHEET_CELL = 240


def main() -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the bundled posts.")
    parser.add_argument("--check", action="store_true", help="change nothing, say what differs")
    parser.add_argument("--sheet", type=Path, help="draw all of them side by side into this file")
    options = parser.parse_args()
    if options.sheet:
        contact_sheet().save(options.sheet)
        return 0
    if options.check:
        faults = [*differing(), *unknown()]
        print("\n".join(faults) or f"{len(SCENES)} pictures are as drawn")
        return 1 if faults else 0
    draw()
    return 0


def draw() -> None:
    """Writes every picture that is not on disk as its scene says."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for fault in differing():
        name = fault.partition(":")[0]
        path = PICTURES / name
        drawing(name).save(path, **ENCODING[path.suffix])
        print(f"{name}: {path.stat().st_size} bytes")


def differing() -> Iterator[str]:
    """A line for every picture that is missing or not as its scene says."""
    for name in SCENES:
        path = PICTURES / name
        if not path.is_file():
            yield f"{name}: missing; run scripts/draw_corpus.py"
        elif (found := difference(path, drawing(name))) > MOST_DIFFERENCE[path.suffix]:
            yield f"{name}: {found:.2f} levels from its scene; run scripts/draw_corpus.py"


def unknown() -> Iterator[str]:
    """A line for every file in the folder that no scene draws."""
    for path in sorted(PICTURES.iterdir() if PICTURES.is_dir() else ()):
        if path.name not in SCENES:
            yield f"{path.name}: no scene draws it; delete the file or add its scene"


def drawing(name: str) -> Image.Image:
    """The picture of that name, reduced to 256 colours where that keeps a PNG file small."""
    picture = SCENES[name].draw()
    if name.endswith(".png"):
        return picture.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    return picture


def difference(path: Path, drawn: Image.Image) -> float:
    """Mean difference between a file and a drawing, in levels of 0 to 255; 255 when sizes differ."""
    with Image.open(path) as file:
        if file.size != drawn.size:
            return 255.0
        pixels = np.asarray(file.convert("RGB"), dtype=np.int16)
    return float(np.abs(pixels - np.asarray(drawn.convert("RGB"), dtype=np.int16)).mean())


def contact_sheet() -> Image.Image:
    """All pictures side by side, each fitted into a cell."""
    rows = -(-len(SCENES) // SHEET_COLUMNS)
    sheet = Image.new("RGB", (SHEET_COLUMNS * SHEET_CELL, rows * SHEET_CELL), "white")
    for place, scene in enumerate(SCENES.values()):
        picture = scene.draw()
        picture.thumbnail((SHEET_CELL - 8, SHEET_CELL - 8))
        row, column = divmod(place, SHEET_COLUMNS)
        sheet.paste(picture, (column * SHEET_CELL + 4, row * SHEET_CELL + 4))
    return sheet


if __name__ == "__main__":
    sys.exit(main())
