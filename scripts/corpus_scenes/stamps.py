"""Postage stamps in two inks, with engraved lines and a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corpus_scenes.brushes import Disc, Fade, Panel, Shape, Sheet, Stroke, Words
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.outlines import leaf, xy

PAPER = "#fbf6ea"
GREY = "#a7abb0"


@dataclass(frozen=True)
class Inks:
    """The two colors of a stamp."""

    dark: str
    light: str


def kettle(ink: Inks) -> list[Brush]:
    """A round kettle with a high handle and steam."""
    return [
        Stroke(xy("104,150 108,96 180,96 184,150"), ink.dark, 8, smooth=True),
        Shape(xy("194,186 216,150 226,154 214,190 200,214"), ink.dark, smooth=True),
        Disc(144, 192, 62, ink.dark, ry=48),
        Disc(144, 188, 54, ink.light, ry=38),
        Disc(144, 196, 54, ink.dark, ry=40),
        Disc(144, 148, 24, ink.light, ry=8, line=ink.dark, width=3),
        Disc(144, 138, 6, ink.dark),
        *(Stroke([(112, y), (150, y + 3)], PAPER, 1.4) for y in (196, 204, 212, 220)),
        Stroke(xy("221,142 213,128 225,116 217,100"), ink.light, 4, smooth=True),
    ]


def pear(ink: Inks) -> list[Brush]:
    """A pear with a leaf, shaded on one side."""
    outline = xy("144,112 168,128 172,160 198,192 188,232 144,244 100,232 90,192 116,160 120,128")
    lines = [Stroke([(150, y), (188, y - 2)], ink.dark, 1.6) for y in range(178, 232, 7)]
    return [
        Shape(outline, ink.light, ink.dark, 4, smooth=True),
        *lines,
        *(Stroke([(148, y), (166, y - 2)], ink.dark, 1.4) for y in range(130, 172, 7)),
        Stroke(xy("144,114 148,98 156,90"), ink.dark, 6, smooth=True),
        Shape(leaf(148, 100, 54, 30, -160), ink.dark, smooth=True),
        Stroke(xy("146,100 112,90"), PAPER, 1.6),
    ]


def anchor(ink: Inks) -> list[Brush]:
    """An anchor with a rope around it."""
    return [
        Disc(144, 104, 15, None, line=ink.dark, width=8),
        Stroke(xy("144,118 144,240"), ink.dark, 11),
        Stroke(xy("108,142 180,142"), ink.dark, 10),
        Stroke(xy("82,194 96,226 144,242 192,226 206,194"), ink.dark, 11, smooth=True),
        Shape(xy("66,206 80,176 100,200"), ink.dark),
        Shape(xy("222,206 208,176 188,200"), ink.dark),
        Stroke(
            xy("156,106 184,112 168,158 118,176 132,216 196,230 224,252"), ink.light, 6, smooth=True
        ),
        *(Stroke([(139, y), (149, y)], PAPER, 1.4) for y in range(152, 232, 8)),
    ]


def stamp(image: Sequence[Brush], ink: Inks, word: str) -> Scene:
    """A stamp on grey; its teeth are dots of the background along the edge."""
    across = [Disc(x, y, 4.6, GREY) for x in range(40, 256, 13) for y in (40, 312)]
    down = [Disc(x, y, 4.6, GREY) for y in range(40, 318, 13) for x in (40, 248)]
    sky = [Stroke([(58, y), (230, y)], ink.light, 0.9) for y in range(60, 258, 6)]
    return Scene(
        (288, 352),
        [
            Fade(GREY, GREY),
            Sheet([Panel((44, 46, 254, 320), "#00000066")], blur=5),
            Panel((40, 40, 248, 312), PAPER),
            *across,
            *down,
            Panel((56, 56, 232, 262), PAPER, 0, ink.dark, 2.5),
            *sky,
            Disc(144, 168, 84, PAPER),
            *image,
            Words(144, 284, word, 25, ink.dark, bold=0.8),
        ],
    )


RED, BLUE, GREEN = (
    Inks("#8f2f3a", "#e59a86"),
    Inks("#1f3f6f", "#7fa8cf"),
    Inks("#2f5a3a", "#a9c46a"),
)

SCENES = {
    "stamp_kettle.png": stamp(kettle(RED), RED, "TEA"),
    "stamp_pear.png": stamp(pear(GREEN), GREEN, "MELLOW"),
    "stamp_anchor.png": stamp(anchor(BLUE), BLUE, "HARBOUR"),
}
