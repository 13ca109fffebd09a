"""Brushes: each leaves one mark on a canvas.

Colors are whatever Pillow understands; `#rrggbbaa` is translucent.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageColor, ImageDraw, ImageFilter, ImageFont

from corpus_scenes.canvas import Box, Brush, Canvas, Point, Scene
from corpus_scenes.outlines import curve


@dataclass(frozen=True)
class Fade:
    """A rectangle that goes from one color to another; without a box, the whole scene."""

    start: str
    end: str
    box: Box | None = None
    sideways: bool = False

    def paint(self, canvas: Canvas) -> None:
        """Fills the rectangle."""
        box = canvas.box(self.box) if self.box else (0, 0, *canvas.image.size)
        left, top, right, bottom = (round(side) for side in box)
        ramp = Image.linear_gradient("L")
        ramp = ramp.transpose(Image.Transpose.ROTATE_90) if self.sideways else ramp
        ramp = ramp.resize((right - left, bottom - top))
        ends = (Image.new("RGB", ramp.size, color) for color in (self.end, self.start))
        canvas.image.paste(Image.composite(*ends, ramp), (left, top))


@dataclass(frozen=True)
class Glow:
    """Light (or shade) that is strongest in the middle of a disc and gone at its edge."""

    x: float
    y: float
    radius: float
    fill: str
    ry: float | None = None

    def paint(self, canvas: Canvas) -> None:
        """Lays the light over what is there."""
        ry = self.ry or self.radius
        box = (self.x - self.radius, self.y - ry, self.x + self.radius, self.y + ry)
        left, top, right, bottom = (round(side) for side in canvas.box(box))
        red, green, blue, *alpha = ImageColor.getrgb(self.fill)
        strength = (alpha[0] if alpha else 255) / 255
        mask = Image.radial_gradient("L").resize((right - left, bottom - top))
        mask = mask.point([round(max(0, 255 - level * 1.42) * strength) for level in range(256)])
        canvas.image.paste((red, green, blue), (left, top), mask)


@dataclass(frozen=True)
class Disc:
    """A circle, or an ellipse when `ry` is given."""

    x: float
    y: float
    radius: float
    fill: str | None
    ry: float | None = None
    line: str | None = None
    width: float = 0

    def paint(self, canvas: Canvas) -> None:
        """Draws it."""
        ry = self.ry or self.radius
        box = (self.x - self.radius, self.y - ry, self.x + self.radius, self.y + ry)
        width = canvas.length(self.width)
        canvas.pen.ellipse(canvas.box(box), self.fill, self.line, width)


@dataclass(frozen=True)
class Panel:
    """A rectangle, with rounded corners when `radius` is given."""

    box: Box
    fill: str | None
    radius: float = 0
    line: str | None = None
    width: float = 0

    def paint(self, canvas: Canvas) -> None:
        """Draws it."""
        radius, width = canvas.length(self.radius), canvas.length(self.width)
        canvas.pen.rounded_rectangle(canvas.box(self.box), radius, self.fill, self.line, width)


@dataclass(frozen=True)
class Shape:
    """A filled outline through its points; `smooth` rounds every corner."""

    points: Sequence[Point]
    fill: str | None
    line: str | None = None
    width: float = 0
    smooth: bool = False

    def paint(self, canvas: Canvas) -> None:
        """Draws it."""
        points = curve(self.points, closed=True) if self.smooth else list(self.points)
        if self.fill:
            canvas.pen.polygon(canvas.at(points), self.fill)
        if self.line:
            Stroke([*points, points[0]], self.line, self.width).paint(canvas)


@dataclass(frozen=True)
class Stroke:
    """A line through its points with round ends; `smooth` makes it a curve."""

    points: Sequence[Point]
    fill: str
    width: float
    smooth: bool = False

    def paint(self, canvas: Canvas) -> None:
        """Draws it."""
        points = curve(self.points) if self.smooth else list(self.points)
        canvas.pen.line(canvas.at(points), self.fill, canvas.length(self.width))
        # Joints of a translucent line would show, and those of a thin one look like beads.
        if len(self.fill) == len("#rrggbb") and self.width > 2:
            for x, y in points:
                Disc(x, y, self.width / 2, self.fill).paint(canvas)


@dataclass(frozen=True)
class Words:
    """A line of text in Pillow's own font; `anchor` says which part of it lies at (x, y)."""

    x: float
    y: float
    text: str
    size: float
    fill: str
    anchor: str = "mm"
    bold: float = 0

    def paint(self, canvas: Canvas) -> None:
        """Writes it."""
        font = ImageFont.load_default(canvas.length(self.size))
        [place], stroke = canvas.at([(self.x, self.y)]), canvas.length(self.bold)
        canvas.pen.text(place, self.text, self.fill, font, self.anchor, stroke_width=stroke)


@dataclass(frozen=True)
class Scatter:
    """The same small discs in the same accidental places, every time."""

    count: int
    box: Box
    radius: float
    fill: str
    seed: int = 0

    def paint(self, canvas: Canvas) -> None:
        """Draws them."""
        chance = random.Random(self.seed)  # noqa: S311 - for looks, not for secrets
        left, top, right, bottom = self.box
        for _ in range(self.count):
            x, y = chance.uniform(left, right), chance.uniform(top, bottom)
            Disc(x, y, self.radius * chance.uniform(0.5, 1), self.fill).paint(canvas)


@dataclass(frozen=True)
class Placed:
    """Brushes somewhere else and in another size."""

    marks: Sequence[Brush]
    x: float = 0
    y: float = 0
    scale: float = 1

    def paint(self, canvas: Canvas) -> None:
        """Paints them there."""
        [(x, y)] = canvas.at([(self.x, self.y)])
        there = Canvas(canvas.image, canvas.scale * self.scale, x, y)
        for mark in self.marks:
            mark.paint(there)


@dataclass(frozen=True)
class Sheet:
    """Brushes on a sheet of glass: turned (degrees), blurred or mirrored before it is laid on.

    On glass a translucent color takes the place of what is below it, instead of blending.
    """

    marks: Sequence[Brush]
    turn: float = 0
    blur: float = 0
    mirrored: bool = False

    def paint(self, canvas: Canvas) -> None:
        """Lays the sheet on."""
        glass = Image.new("RGBA", canvas.image.size)
        Placed(self.marks).paint(Canvas(glass, canvas.scale, canvas.x, canvas.y))
        if self.mirrored:
            glass = glass.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        # Premultiplied ("RGBa"), or clear glass would bleed black into the edges.
        glass = glass.rotate(self.turn, Image.Resampling.BICUBIC).convert("RGBa")
        glass = glass.filter(ImageFilter.GaussianBlur(self.blur * canvas.scale)).convert("RGBA")
        canvas.image.paste(glass, (0, 0), glass)


@dataclass(frozen=True)
class Framed:
    """Another scene, whole, inside a rectangle with rounded corners."""

    scene: Scene
    box: Box
    radius: float = 0

    def paint(self, canvas: Canvas) -> None:
        """Shows it there."""
        left, top, right, bottom = (round(side) for side in canvas.box(self.box))
        image = self.scene.draw().resize((right - left, bottom - top))
        mask = Image.new("L", image.size)
        corner, edges = canvas.length(self.radius), (0, 0, right - left - 1, bottom - top - 1)
        ImageDraw.Draw(mask).rounded_rectangle(edges, corner, 255)
        canvas.image.paste(image, (left, top), mask)


@dataclass(frozen=True)
class Tint:
    """A color cast: every pixel moves towards one color by a share of 0 to 1."""

    fill: str
    share: float

    def paint(self, canvas: Canvas) -> None:
        """Tints the whole image."""
        over = Image.new("RGB", canvas.image.size, self.fill)
        canvas.image.paste(Image.blend(canvas.image, over, self.share))
