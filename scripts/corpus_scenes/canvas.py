"""A scene, and the canvas it is painted on.

Positions and lengths are pixels of the finished image; the canvas is larger by `OVERSIZE`, so
that edges and letters come out smooth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from PIL import Image, ImageDraw

OVERSIZE = 4

Point = tuple[float, float]
Box = tuple[float, float, float, float]


class Brush(Protocol):
    """Anything that can leave a mark."""

    def paint(self, canvas: Canvas) -> None:
        """Leaves the mark on the canvas."""


@dataclass(frozen=True)
class Scene:
    """One image.

    Attributes:
        size: Width and height in pixels.
        marks: Its brushes, the lowest first.
    """

    size: tuple[int, int]
    marks: Sequence[Brush]

    def draw(self) -> Image.Image:
        """The image, as RGB."""
        width, height = self.size
        image = Image.new("RGB", (width * OVERSIZE, height * OVERSIZE), "white")
        canvas = Canvas(image, OVERSIZE)
        for mark in self.marks:
            mark.paint(canvas)
        return image.reduce(OVERSIZE)


@dataclass(frozen=True)
class Canvas:
    """Where brushes paint: an image, and how its pixels relate to those of the scene.

    Attributes:
        image: The oversized image.
        scale: Its pixels for one of the scene.
        x: Where the scene's origin lies on the image.
        y: As `x`, downwards.
    """

    image: Image.Image
    scale: float
    x: float = 0
    y: float = 0

    @property
    def pen(self) -> ImageDraw.ImageDraw:
        """Pillow's own pen; on an opaque image, translucent colors blend."""
        return ImageDraw.Draw(self.image, "RGBA")

    def at(self, points: Iterable[Point]) -> list[Point]:
        """The scene's points on the image."""
        return [(self.x + x * self.scale, self.y + y * self.scale) for x, y in points]

    def box(self, box: Box) -> Box:
        """The scene's rectangle on the image."""
        (left, top), (right, bottom) = self.at([box[:2], box[2:]])
        return left, top, right, bottom

    def length(self, value: float) -> int:
        """The scene's length on the image, in whole pixels."""
        return round(value * self.scale)
