"""Draws the images of the bundled posts, from the scenes in `corpus_scenes`.

    python scripts/draw_corpus.py               draws what is missing or not as its scene says
    python scripts/draw_corpus.py --check       changes nothing, names what is not; 1 if anything
    python scripts/draw_corpus.py --sheet FILE  draws all of them side by side into FILE

Nothing is left to chance and no font file is read: every run draws the same images.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from corpus_scenes import SCENES
from PIL import Image

IMAGES = Path(__file__).resolve().parent.parent / "echo_hf" / "quickstart" / "pictures"
TILE = 16
# Most levels that a tile of a file may be off. Releases of Pillow round a few edge pixels of a
# polygon differently, which is below 0.1; a wrong letter in a title is above 50.
MOST_DIFFERENCE = {".png": 0.5, ".jpg": 12.0, ".webp": 12.0}
ENCODING: dict[str, dict[str, Any]] = {
    ".png": {"optimize": True},
    ".jpg": {"quality": 85, "optimize": True},
    ".webp": {"quality": 85},
}
SHEET_COLUMNS = 6
SHEET_CELL = 240


def main() -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(description="Draw the images of the bundled posts.")
    parser.add_argument("--check", action="store_true", help="change nothing, say what differs")
    parser.add_argument("--sheet", type=Path, help="draw all of them side by side into this file")
    options = parser.parse_args()
    if options.sheet:
        contact_sheet().save(options.sheet)
        return 0
    if options.check:
        return check()
    draw()
    return 0


def draw() -> None:
    """Writes every image that is not on disk as its scene says."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, _ in differing():
        path = IMAGES / name
        drawing(name).save(path, **ENCODING[path.suffix])
        print(f"{name}: {path.stat().st_size} bytes")


def check() -> int:
    """Prints what differs between the folder and the scenes; returns 1 if anything does."""
    faults = [f"{name}: {fault}; run scripts/draw_corpus.py" for name, fault in differing()]
    unknown = sorted({path.name for path in IMAGES.glob("*")} - set(SCENES))
    faults += [f"{name}: no scene draws it; delete it or add its scene" for name in unknown]
    print("\n".join(faults) or f"{len(SCENES)} images are as drawn")
    return 1 if faults else 0


def differing() -> Iterator[tuple[str, str]]:
    """Each image that is missing or not as its scene says, and what is wrong with it."""
    for name in SCENES:
        path = IMAGES / name
        if not path.is_file():
            yield name, "missing"
        elif (found := difference(path, drawing(name))) > MOST_DIFFERENCE[path.suffix]:
            yield name, f"a tile is {found:.1f} levels from its scene"


def drawing(name: str) -> Image.Image:
    """The image of that name as it is saved: a PNG in 256 colors, which keeps it small."""
    image = SCENES[name].draw()
    if name.endswith(".png"):
        return image.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    return image


def difference(path: Path, drawn: Image.Image) -> float:
    """Mean difference in the worst tile of `TILE` x `TILE` pixels.

    Args:
        path: An image file.
        drawn: What it should show.

    Returns:
        Levels, 0 to 255; 255 when the sizes differ.
    """
    with Image.open(path) as file:
        if file.size != drawn.size:
            return 255.0
        pixels = np.asarray(file.convert("RGB"), dtype=np.float64)
    off = np.abs(pixels - np.asarray(drawn.convert("RGB"))).mean(axis=2)
    height, width = off.shape
    off = np.pad(off, ((0, -height % TILE), (0, -width % TILE)))
    tiles = off.reshape(off.shape[0] // TILE, TILE, -1, TILE)
    return float(tiles.mean(axis=(1, 3)).max())


def contact_sheet() -> Image.Image:
    """All images side by side, each fitted into a cell."""
    rows = -(-len(SCENES) // SHEET_COLUMNS)
    sheet = Image.new("RGB", (SHEET_COLUMNS * SHEET_CELL, rows * SHEET_CELL), "white")
    for place, scene in enumerate(SCENES.values()):
        image = scene.draw()
        image.thumbnail((SHEET_CELL - 8, SHEET_CELL - 8))
        row, column = divmod(place, SHEET_COLUMNS)
        sheet.paste(image, (column * SHEET_CELL + 4, row * SHEET_CELL + 4))
    return sheet


if __name__ == "__main__":
    sys.exit(main())
