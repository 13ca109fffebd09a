"""Scenes with everything on the other side, and their words still to be read from the left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch

from corpus_scenes.brushes import (
    Disc,
    Fade,
    Framed,
    Glow,
    Panel,
    Placed,
    Scatter,
    Shape,
    Sheet,
    Stroke,
    Tint,
    Words,
)
from corpus_scenes.canvas import Box, Brush, Point, Scene

OTHER_SIDE = {"l": "r", "m": "m", "r": "l"}


def mirrored_scene(scene: Scene) -> Scene:
    """The scene with left and right exchanged."""
    return replace(scene, marks=mirrored_marks(scene.marks, scene.size[0]))


def mirrored_marks(marks: Sequence[Brush], width: float) -> list[Brush]:
    """Marks that are as far from the right edge of that width as the given ones from the left."""
    return [mirrored(mark, width) for mark in marks]


@singledispatch
def mirrored(mark: Brush, width: float) -> Brush:
    """A mark that is as far from the right edge of that width as the given one from the left.

    Raises:
        NotImplementedError: It is not known how such a brush is mirrored.
    """
    raise NotImplementedError(f"no mirror image of {mark!r}: register one")


@mirrored.register
def _(mark: Tint, width: float) -> Brush:  # noqa: ARG001 - the same on both sides
    return mark


@mirrored.register
def _(mark: Disc | Glow, width: float) -> Brush:
    return replace(mark, x=width - mark.x)


@mirrored.register
def _(mark: Words, width: float) -> Brush:
    anchor = OTHER_SIDE[mark.anchor[0]] + mark.anchor[1:]
    return replace(mark, x=width - mark.x, anchor=anchor)


@mirrored.register
def _(mark: Panel | Scatter, width: float) -> Brush:
    return replace(mark, box=_box(mark.box, width))


@mirrored.register
def _(mark: Fade, width: float) -> Brush:
    ends = (mark.end, mark.start) if mark.sideways else (mark.start, mark.end)
    return Fade(*ends, mark.box and _box(mark.box, width), mark.sideways)


@mirrored.register
def _(mark: Shape | Stroke, width: float) -> Brush:
    return replace(mark, points=_points(mark.points, width))


@mirrored.register
def _(mark: Placed, width: float) -> Brush:
    return replace(mark, marks=mirrored_marks(mark.marks, 0), x=width - mark.x)


@mirrored.register
def _(mark: Sheet, width: float) -> Brush:
    return replace(mark, marks=mirrored_marks(mark.marks, width), turn=-mark.turn)


@mirrored.register
def _(mark: Framed, width: float) -> Brush:
    return replace(mark, scene=mirrored_scene(mark.scene), box=_box(mark.box, width))


def _box(box: Box, width: float) -> Box:
    left, top, right, bottom = box
    return width - right, top, width - left, bottom


def _points(points: Sequence[Point], width: float) -> list[Point]:
    return [(width - x, y) for x, y in points]
