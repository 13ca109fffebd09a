"""What plain measures see in a picture, scaled down to a thumbnail."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from echo_hf.pictures import FORMATS, MOST_PIXELS

Array = NDArray[np.float32]

LONGEST_SIDE = 192
SHORTEST_SIDE = 32  # of a picture that shows anything
STRUCTURE = 32
CLEAR_EDGE = 12.0  # beyond it an edge counts no more: those of a night are as good
LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)
PAPER_CHROMA, PAPER_TOLERANCE, FEWEST_PAPER = 48, 45, 0.72
FEWEST_INK, MOST_INK = 0.004, 0.28
BLANK_SPREAD = 2.0


@dataclass(frozen=True)
class Look:
    """A picture as plain measures see it.

    Attributes:
        rgb: A thumbnail, at most `LONGEST_SIDE` on its longer side, 0 to 255.
        size: Width and height of the picture itself.
    """

    rgb: Array
    size: tuple[int, int]

    @cached_property
    def grey(self) -> Array:
        """Its brightness."""
        return self.rgb @ LUMA

    @cached_property
    def chroma(self) -> Array:
        """How far each pixel is from grey."""
        spread: Array = self.rgb.max(axis=2) - self.rgb.min(axis=2)
        return spread

    @cached_property
    def brightness(self) -> float:
        """Its mean brightness, 0 to 255."""
        return float(self.grey.mean())

    @cached_property
    def colourfulness(self) -> float:
        """How many colours it has, by the measure of Hasler and Suesstrunk; 0 for one tint."""
        red, green, blue = np.moveaxis(self.rgb, 2, 0)
        one, other = red - green, (red + green) / 2 - blue
        return float(np.hypot(one.std(), other.std()))

    @cached_property
    def is_line_drawing(self) -> bool:
        """Whether it is little but strokes on paper."""
        ground = float(np.percentile(self.grey, 80))
        paper = float((np.abs(self.grey - ground) < PAPER_TOLERANCE).mean())
        ink = float((self.grey < ground - 2 * PAPER_TOLERANCE).mean())
        coloured = float(np.percentile(self.chroma, 92))
        return paper > FEWEST_PAPER and FEWEST_INK < ink < MOST_INK and coloured < PAPER_CHROMA

    @cached_property
    def is_empty(self) -> bool:
        """Whether it shows nothing: too small, or all of one colour."""
        return min(self.size) < SHORTEST_SIDE or float(self.grey.std()) < BLANK_SPREAD

    @cached_property
    def structure(self) -> Array:
        """Where its edges are, as numbers of mean 0 and length 1; zeros where it has none."""
        return structure_of(self.grey)

    def part(self, rows: slice, columns: slice) -> Look:
        """A part of it."""
        return Look(self.rgb[rows, columns], self.size)


def structure_of(grey: Array) -> Array:
    """Where the edges of a picture are.

    Args:
        grey: Its brightness.

    Returns:
        Strengths of edges on a coarse grid, with mean 0 and length 1; zeros where there is none.
    """
    rows, columns = np.gradient(grey) if min(grey.shape) > 1 else (grey * 0, grey * 0)
    edges = Image.fromarray(np.minimum(np.hypot(rows, columns), CLEAR_EDGE).astype(np.float32))
    coarse = np.asarray(edges.resize((STRUCTURE, STRUCTURE), Image.Resampling.BOX))
    flat = (coarse - coarse.mean()).ravel()
    length = float(np.linalg.norm(flat))
    return flat / length if length > 1e-6 else np.zeros_like(flat)


def alike(one: Look, other: Look) -> float:
    """How far two pictures have their edges in the same places.

    Returns:
        A correlation, 1 for the same places, about 0 for pictures that have nothing in common.
    """
    return float(one.structure @ other.structure)


def look_at(file: Path | None) -> Look | None:
    """Looks at a picture.

    Args:
        file: Its bytes.

    Returns:
        What can be seen; null where there is no file, or none that can be read.
    """
    if file is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(file, formats=FORMATS) as picture:
                return _seen(picture)
    except Exception:  # a decoder fed with hostile bytes raises whatever it trips over
        return None


def _seen(picture: Image.Image) -> Look | None:
    size = picture.size
    if size[0] * size[1] > MOST_PIXELS:
        return None
    picture.draft("RGB", (2 * LONGEST_SIDE, 2 * LONGEST_SIDE))
    shown = ImageOps.exif_transpose(_opaque(picture))
    shown.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.BOX, reducing_gap=2.0)
    return Look(np.asarray(shown, dtype=np.float32), size)


def _opaque(picture: Image.Image) -> Image.Image:
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    clear = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear).convert("RGB")
