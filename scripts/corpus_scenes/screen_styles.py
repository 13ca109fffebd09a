"""How a drawn window looks: colors and measures, by chance."""

from __future__ import annotations

import random
from dataclasses import dataclass

from PIL import ImageFont

Colors = tuple[str, str, str, str, str, str]
# Ground, bars, bubble, ink, faint ink, lines.
LIGHT: tuple[Colors, ...] = (
    ("#ffffff", "#f4f2fb", "#e9e3fb", "#2d2843", "#8d86a8", "#dcd7ee"),
    ("#ffffff", "#ffffff", "#f3f3f3", "#0d0d0d", "#8e8e8e", "#e5e5e5"),
    ("#f7f5ef", "#efece2", "#e3ddcb", "#33302a", "#99917d", "#d9d2bf"),
    ("#fbfcfe", "#eef3f9", "#d9e7f8", "#1c2a3a", "#7f8ea0", "#d2dde9"),
)
DARK: tuple[Colors, ...] = (
    ("#212121", "#171717", "#303030", "#ececec", "#9b9b9b", "#3a3a3a"),
    ("#16181d", "#101216", "#2a2f3a", "#e6e9ef", "#858d9c", "#2c313b"),
    ("#1c1824", "#14111b", "#352c48", "#eee9f7", "#9a90ad", "#383048"),
    ("#0b0f0e", "#111716", "#1f3a33", "#e1efe9", "#75897f", "#24302c"),
)
ACCENTS = ("#7a5cd6", "#d6705c", "#3f8fd0", "#45a672", "#c79a32")


@dataclass(frozen=True)
class Style:
    """Colors and measures of a window.

    Attributes:
        ground: Behind everything.
        bar: Header, side panel and footer.
        bubble: Behind what people type.
        ink: Text.
        faint: Text of lesser weight.
        line: Thin lines.
        accent: Avatar and buttons.
        text: Size of the letters.
        corner: Radius of the corners of images.
        gap: Space between things.
        bubbles: Whether what people type stands in a bubble to the right.
    """

    ground: str
    bar: str
    bubble: str
    ink: str
    faint: str
    line: str
    accent: str
    text: float
    corner: int
    gap: int
    bubbles: bool


def drawn_style(chance: random.Random, *, dark: bool) -> Style:
    """A style by chance."""
    return Style(
        *chance.choice(DARK if dark else LIGHT),
        accent=chance.choice(ACCENTS),
        text=chance.choice((12.5, 13, 14)),
        corner=chance.choice((0, 6, 10, 16)),
        gap=chance.randint(8, 16),
        bubbles=chance.random() < 0.75,
    )


def wrapped(text: str, width: float, size: float) -> list[str]:
    """A text as lines that are no wider than this."""
    font = ImageFont.load_default(size)
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if font.getlength(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def text_width(lines: list[str], size: float) -> float:
    """The width of the widest line."""
    font = ImageFont.load_default(size)
    return max(font.getlength(line) for line in lines)
