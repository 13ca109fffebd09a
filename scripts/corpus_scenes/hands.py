"""Two hands on a piano, with the right number of fingers and with one too many."""

from __future__ import annotations

from collections.abc import Sequence

from corpus_scenes.brushes import Disc, Fade, Panel, Placed, Shape, Sheet, Stroke
from corpus_scenes.canvas import Brush, Point, Scene
from corpus_scenes.outlines import xy

SKIN, LINE, NAIL = "#d99a6c", "#b5764a", "#f3cdb0"

FIVE: Sequence[Sequence[Point]] = (
    xy("-28,30 -48,8 -52,-14"),
    xy("-22,0 -28,-38 -26,-64"),
    xy("-6,-6 -8,-48 -6,-76"),
    xy("10,-4 13,-42 15,-68"),
    xy("24,4 32,-26 36,-48"),
)
SIX: Sequence[Sequence[Point]] = (
    xy("-30,30 -52,10 -58,-12"),
    xy("-26,0 -36,-36 -36,-58"),
    xy("-13,-6 -18,-46 -18,-72"),
    xy("0,-8 0,-50 1,-78"),
    xy("13,-4 18,-42 21,-68"),
    xy("25,4 35,-26 40,-48"),
)


def hand(fingers: Sequence[Sequence[Point]]) -> list[Brush]:
    """A right hand seen from above, its wrist below the origin."""
    marks: list[Brush] = [
        Shape(xy("-26,60 30,60 36,150 -32,150"), "#3f5f8a"),
        Panel((-32, 92, 36, 106), "#f4efe4", 4),
        Shape(xy("-34,32 -28,-4 4,-12 28,2 32,40 28,92 -24,92"), SKIN, LINE, 1.6, smooth=True),
    ]
    for finger in fingers:
        x, y = finger[-1]
        marks += [Stroke(finger, LINE, 19, smooth=True), Stroke(finger, SKIN, 16, smooth=True)]
        marks += [Disc(x, y - 2, 4.5, NAIL, ry=5.5)]
    return [*marks, Disc(0, 26, 26, SKIN, ry=24)]


def keys() -> list[Brush]:
    """The keyboard under red felt."""
    black = [x for x in range(13) if x % 7 not in (2, 6)]
    return [
        Fade("#5a2f2a", "#3f1f1c"),
        Panel((0, 36, 352, 46), "#a32a33"),
        *(Panel((x * 27.1 + 0.8, 46, x * 27.1 + 26.3, 190), "#fbf7ec", 3) for x in range(13)),
        *(Panel((x * 27.1 + 18, 46, x * 27.1 + 36, 132), "#241f22", 3) for x in black),
        Panel((0, 190, 352, 264), "#e0a867"),
        Panel((0, 190, 352, 196), "#b97f45"),
    ]


def piano(right: Sequence[Sequence[Point]]) -> Scene:
    """Both hands; the left one is a mirrored right one with five fingers."""
    shade = Sheet([Disc(100, 150, 50, "#00000044"), Disc(256, 150, 50, "#00000044")], blur=8)
    left = Sheet([Placed(hand(FIVE), 254, 158, 0.98)], mirrored=True)
    return Scene((352, 264), [*keys(), shade, left, Placed(hand(right), 256, 158, 0.98)])


SCENES = {"hands_six.png": piano(SIX), "hands_five.png": piano(FIVE)}
