"""How close an output is to the meant image: 1 is the same, 0 no closer than a blank sheet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from echo_hf.images.color import lab_of_light, light_of

Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

TILE = 16
WORST_TILES = 0.01
WORST_COUNTS = 0.25
LEAST_TO_MISS = 0.1
# In CIELAB, where people begin to see a difference at about 2.
UNSEEN = 5.0
COLOR_LIKE_ALL_DETAIL = 40.0


class Parts(NamedTuple):
    """In what two images of one size differ."""

    detail: float
    worst: float
    color: float

    @property
    def total(self) -> float:
        """All three on one scale, where 1 is all detail lost."""
        return self.detail + WORST_COUNTS * self.worst + self.color / COLOR_LIKE_ALL_DETAIL


class Difference(NamedTuple):
    """How far an output is from the meant image, and how far it could be."""

    output: Parts
    blank: Parts
    shape: float

    @property
    def closeness(self) -> float:
        """How much of the meant image is there, 0 to 1."""
        most = max(self.blank.total, LEAST_TO_MISS)
        return self.shape * max(0.0, 1 - self.output.total / most)

    def __str__(self) -> str:
        """The explanation of a rating."""
        parts = self.output
        return (
            f"closeness {self.closeness:.3f}: {parts.detail:.1%} of the detail differs, "
            f"{parts.worst:.1%} where it differs most; colors are {parts.color:.1f} apart, on the "
            f"closest blank sheet {self.blank.color:.1f}; aspect ratios agree to {self.shape:.1%}"
        )


def difference(output: Pixels, truth: Pixels) -> Difference:
    """In what an output differs from the meant image, whose size it is given."""
    (height, width), (meant_height, meant_width) = output.shape[:2], truth.shape[:2]
    if (height, width) != (meant_height, meant_width):
        size = (meant_width, meant_height)
        output = np.asarray(Image.fromarray(output).resize(size, Image.Resampling.LANCZOS))
    ratio = (height * meant_width) / (width * meant_height)
    seen, meant = _Tiles.of(output), _Tiles.of(truth)
    return Difference(_parts(seen, meant), _parts(meant.blank(), meant), min(ratio, 1 / ratio))


class _Tiles(NamedTuple):
    """An image in tiles: the mean color of each, and its lightness around the mean."""

    colors: Floats
    detail: Floats

    @classmethod
    def of(cls, pixels: Pixels) -> _Tiles:
        height, width = pixels.shape[:2]
        edge = ((0, -height % TILE), (0, -width % TILE), (0, 0))
        lab = np.pad(lab_of_light(light_of(np.arange(256))[pixels]), edge, mode="edge")
        tiles = lab.reshape(lab.shape[0] // TILE, TILE, -1, TILE, 3).swapaxes(1, 2)
        tiles = tiles.reshape(-1, TILE * TILE, 3)
        colors = tiles.mean(axis=1)
        return cls(colors, tiles[..., 0] - colors[:, :1])

    def blank(self) -> _Tiles:
        """The closest sheet of one color: medians keep the sum of differences least."""
        color = np.median(self.colors, axis=0)
        return _Tiles(np.broadcast_to(color, self.colors.shape), np.zeros_like(self.detail))


def _parts(seen: _Tiles, meant: _Tiles) -> Parts:
    off = ((seen.detail - meant.detail) ** 2).mean(axis=1)
    both = (seen.detail**2 + meant.detail**2).mean(axis=1)
    # What is too faint to be seen is no difference, however large beside an even sky.
    shares = np.sort(np.minimum(1, off / (both + UNSEEN**2)))
    worst = shares[-max(1, round(WORST_TILES * len(shares))) :]
    in_place = np.abs(seen.colors - meant.colors)
    anywhere = np.abs(np.sort(seen.colors, axis=0) - np.sort(meant.colors, axis=0))
    return Parts(
        detail=min(1.0, float(off.sum() / (both.sum() + len(both)))),
        worst=float(worst.mean()),
        color=float((in_place + anywhere).sum(axis=1).mean() / 2),
    )
