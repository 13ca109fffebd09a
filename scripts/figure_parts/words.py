"""Lines of words that fit a width, in a font that is on every machine under one of its names.

Helvetica, Arial and Liberation Sans are equally wide, letter by letter; an SVG does not break lines
itself.
"""

from __future__ import annotations

FIRST = ord(" ")
# Advance widths from the space to the tilde, in thousandths of the font's size.
WIDTHS = (
    (278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278)
    + (556,) * 10
    + (278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667)
    + (556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278)
    + (469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556)
    + (556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584)
)
OTHERS = {"“": 333, "”": 333, "‘": 222, "’": 222, "·": 278}
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
