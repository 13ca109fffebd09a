"""A drawing in SVG that needs nothing else: no script, no font, no file.

An SVG does not break lines itself: they are broken for DejaVu Sans, which many Linux desktops have
in place of Helvetica and which is the widest of those in use, so that they fit in any. There are
two sets of colors: GitHub shows the one that goes with its own page.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from io import BytesIO

from PIL import Image

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace"


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass
class Canvas:
    theme: Theme
    shapes: list[str] = field(default_factory=list)
    images: dict[str, str] = field(default_factory=dict)

    def rect(self, box: Box, fill: str, *, radius: float = 8, more: str = "") -> None:
        self.shapes.append(f'<rect {_at(box)} rx="{radius}" fill="{fill}"{more}/>')

    def card(self, box: Box) -> None:
        self.rect(box, self.theme.card, radius=12, more=f' stroke="{self.theme.edge}"')

    def words(
        self, lines: Sequence[str], x: float, y: float, *, size: float, leading: float, fill: str
    ) -> None:
        """Writes lines of words; `y` is the baseline of the first."""
        for number, line in enumerate(lines):
            self.word(line, x, y + number * leading, size=size, fill=fill)

    def word(
        self,
        text: str,
        x: float,
        y: float,
        *,
        size: float,
        fill: str,
        kind: str = "",
        anchor: str = "start",
    ) -> None:
        """Writes one line; `kind` is `b` for bold, `m` for code."""
        chosen = f' class="{kind}"' if kind else ""
        moved = f' text-anchor="{anchor}"' if anchor != "start" else ""
        self.shapes.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}"{chosen}{moved}>'
            f"{escape(text)}</text>"
        )

    def image(self, data: bytes, box: Box, edge: str, *, thick: float = 2.5) -> None:
        """Draws an image's own bytes, in a frame; `box` has its proportions."""
        name = f"p{hashlib.sha256(data).hexdigest()[:8]}"
        self.images[name] = _embedded(data, name)
        width, height = size_of(data)
        scale = f"scale({box.width / width:.4f} {box.height / height:.4f})"
        self.shapes.append(
            f'<use href="#{name}" transform="translate({box.x:g} {box.y:g}) {scale}"/>'
        )
        self.rect(box, "none", radius=1, more=f' stroke="{edge}" stroke-width="{thick:g}"')

    def link(
        self, start: tuple[float, float], end: tuple[float, float], color: str, thick: float = 2.5
    ) -> None:
        (x1, y1), (x2, y2) = start, end
        half = (x1 + x2) / 2
        self.shapes.append(
            f'<path d="M{x1:g} {y1:g}C{half:g} {y1:g} {half:g} {y2:g} {x2:g} {y2:g}" fill="none" '
            f'stroke="{color}" stroke-width="{thick:g}"/>'
        )
        for x, y in (start, end):
            self.dot(x, y, 2 + thick, color)

    def dot(self, x: float, y: float, radius: float, fill: str, more: str = "") -> None:
        self.shapes.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}"{more}/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, color: str, more: str = "") -> None:
        self.shapes.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}"{more}/>'
        )

    def svg(self, width: float, height: float, title: str, told: str) -> str:
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
                f'width="{width:g}" height="{height:g}" role="img" aria-labelledby="t d">',
                f'<title id="t">{escape(title)}</title>',
                f'<desc id="d">{escape(told)}</desc>',
                f"<style>text{{font-family:{FONT}}}.b{{font-weight:700}}.m{{font-family:{MONO}}}"
                "</style>",
                "<defs>",
                *self.images.values(),
                "</defs>",
                *self.shapes,
                "</svg>\n",
            ]
        )


def check_room(what: str, end: float, most: float) -> None:
    """Refuses what would run over the edge of its card."""
    if end > most:
        raise ValueError(f"{what} end at {end:g} pixels of {most:g}: make the figure higher")


def size_of(data: bytes) -> tuple[int, int]:
    with Image.open(BytesIO(data)) as image:
        return image.size


def _embedded(data: bytes, name: str) -> str:
    with Image.open(BytesIO(data)) as image:
        kind, (width, height) = Image.MIME[image.format or ""], image.size
    encoded = base64.b64encode(data).decode()
    return (
        f'<image id="{name}" width="{width}" height="{height}" '
        f'href="data:{kind};base64,{encoded}"/>'
    )


def _at(box: Box) -> str:
    return f'x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}"'


FIRST = ord(" ")
# Advance widths of DejaVu Sans from the space to the tilde, in thousandths of the font's size.
WIDTHS = (
    (318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337)
    + (636,) * 10
    + (337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656)
    + (557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390)
    + (838, 500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612)
    + (635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838)
)
OTHERS = {"“": 518, "”": 518, "‘": 318, "’": 318, "·": 318, "×": 838}
WIDEST = 1400  # an emoji


def width(text: str, size: float) -> float:
    return sum(map(_advance, text)) * size / 1000


def _advance(letter: str) -> int:
    at = ord(letter) - FIRST
    return WIDTHS[at] if 0 <= at < len(WIDTHS) else OTHERS.get(letter, WIDEST)


def wrapped(text: str, size: float, most: float) -> list[str]:
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            longer = f"{line} {word}".strip()
            if line and width(longer, size) > most:
                lines.append(line)
                longer = word
            line = longer
        lines.append(line)
    return lines


@dataclass(frozen=True)
class Theme:
    page: str
    card: str
    edge: str
    ink: str
    quiet: str
    parts: Mapping[str, str]
    wash: float


LIGHT = Theme(
    page="#f6f8fa",
    card="#ffffff",
    edge="#d1d9e0",
    ink="#1f2328",
    quiet="#59636e",
    parts={
        "prompt": "#8250df",
        "input_images": "#0969da",
        "output_images": "#1a7f37",
        "community_feedback": "#bc4c00",
    },
    wash=0.09,
)
DARK = Theme(
    page="#0d1117",
    card="#161b22",
    edge="#343b44",
    ink="#e6edf3",
    quiet="#9198a1",
    parts={
        "prompt": "#bc8cff",
        "input_images": "#58a6ff",
        "output_images": "#3fb950",
        "community_feedback": "#f0883e",
    },
    wash=0.14,
)
