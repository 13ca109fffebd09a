"""Rates what the quickstart's stand-in systems show by how close it is to the meant image.

    python scripts/rate_stand_ins.py          # writes echo_hf/quickstart/systems/ratings.jsonl
    python scripts/rate_stand_ins.py --check  # writes nothing; 1 if the file is not current

A rating goes from 1 (no closer than a blank sheet) to 10 (the same image).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from echo_hf.images.loader import load_rgb
from echo_hf.metrics.color_shift import convert_to_lab

Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

CORPUS = Path(__file__).resolve().parent.parent / "echo_hf" / "quickstart"
SHOWN, RATINGS = CORPUS / "systems" / "pictures.jsonl", CORPUS / "systems" / "ratings.jsonl"
LOWEST, HIGHEST = 1, 10
ROUNDING = 0.01  # of a rating: libraries that decode images round in different ways
TILE = 16
WORST_TILES, WORST_COUNTS = 0.01, 0.25
LEAST_TO_MISS = 0.1
# In CIELAB, where people begin to see a difference at about 2.
UNSEEN = 5.0
COLOR_LIKE_ALL_DETAIL = 40.0


class Parts(NamedTuple):
    detail: float
    worst: float
    color: float

    @property
    def total(self) -> float:
        return self.detail + WORST_COUNTS * self.worst + self.color / COLOR_LIKE_ALL_DETAIL


class Tiles(NamedTuple):
    """An image in tiles: the mean color of each, and its lightness around the mean."""

    colors: Floats
    detail: Floats

    @classmethod
    def of(cls, pixels: Pixels) -> Tiles:
        height, width = pixels.shape[:2]
        edge = ((0, -height % TILE), (0, -width % TILE), (0, 0))
        lab = np.pad(convert_to_lab(pixels), edge, mode="edge")
        tiles = lab.reshape(lab.shape[0] // TILE, TILE, -1, TILE, 3).swapaxes(1, 2)
        tiles = tiles.reshape(-1, TILE * TILE, 3)
        colors = tiles.mean(axis=1)
        return cls(colors, tiles[..., 0] - colors[:, :1])

    def blank(self) -> Tiles:
        """The closest sheet of one color: medians keep the sum of differences least."""
        color = np.median(self.colors, axis=0)
        return Tiles(np.broadcast_to(color, self.colors.shape), np.zeros_like(self.detail))

    def differs(self, meant: Tiles) -> Parts:
        off = ((self.detail - meant.detail) ** 2).mean(axis=1)
        both = (self.detail**2 + meant.detail**2).mean(axis=1)
        # What is too faint to be seen is no difference, however large beside an even sky.
        shares = np.sort(np.minimum(1, off / (both + UNSEEN**2)))
        worst = shares[-max(1, round(WORST_TILES * len(shares))) :]
        in_place = np.abs(self.colors - meant.colors)
        anywhere = np.abs(np.sort(self.colors, axis=0) - np.sort(meant.colors, axis=0))
        return Parts(
            detail=min(1.0, float(off.sum() / (both.sum() + len(both)))),
            worst=float(worst.mean()),
            color=float((in_place + anywhere).sum(axis=1).mean() / 2),
        )


class Difference(NamedTuple):
    """How far an output is from the meant image, and how far it could be."""

    output: Parts
    blank: Parts
    shape: float

    @property
    def closeness(self) -> float:
        """How much of the meant image is there: 1 is the same, 0 no more than a blank sheet."""
        most = max(self.blank.total, LEAST_TO_MISS)
        return self.shape * max(0.0, 1 - self.output.total / most)

    def __str__(self) -> str:
        parts = self.output
        return (
            f"closeness {self.closeness:.3f}: {parts.detail:.1%} of the detail differs, "
            f"{parts.worst:.1%} where it differs most; colours are {parts.color:.1f} apart, on the "
            f"closest blank sheet {self.blank.color:.1f}; aspect ratios agree to {self.shape:.1%}"
        )


def difference(output: Pixels, truth: Pixels) -> Difference:
    (height, width), (meant_height, meant_width) = output.shape[:2], truth.shape[:2]
    if (height, width) != (meant_height, meant_width):
        size = (meant_width, meant_height)
        output = np.asarray(Image.fromarray(output).resize(size, Image.Resampling.LANCZOS))
    ratio = (height * meant_width) / (width * meant_height)
    shown, meant = Tiles.of(output), Tiles.of(truth)
    return Difference(shown.differs(meant), meant.blank().differs(meant), min(ratio, 1 / ratio))


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def pixels(path: str) -> Pixels:
    return np.asarray(load_rgb((CORPUS / path).read_bytes()))


def ratings() -> list[dict[str, Any]]:
    rows = []
    for row in json_lines(SHOWN):
        truth = row.pop("truth")
        for file in dict.fromkeys(row.values()):
            off = difference(pixels(file), pixels(truth))
            rating = LOWEST + (HIGHEST - LOWEST) * off.closeness
            rows.append(
                {"truth": truth, "picture": file, "rating": rating, "explanation": str(off)}
            )
    return rows


def main() -> int:
    """Writes the ratings, or says whether they are current; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if stale")
    check = parser.parse_args().check
    rated, written = ratings(), json_lines(RATINGS)
    current = len(rated) == len(written) and all(
        (one["truth"], one["picture"]) == (other["truth"], other["picture"])
        and math.isclose(one["rating"], other["rating"], abs_tol=ROUNDING)
        for one, other in zip(rated, written, strict=True)
    )
    if not current and not check:
        RATINGS.write_text("".join(json.dumps(row) + "\n" for row in rated), "utf-8")
    print(f"{len(rated)} ratings are {'current' if current else 'stale' if check else 'written'}")
    return int(check and not current)


if __name__ == "__main__":
    sys.exit(main())
