"""Scenes with the same things in other places: on the other side, or pushed towards an edge."""

from __future__ import annotations

import math
from collections.abc import Mapping
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
from corpus_scenes.canvas import Brush, Point, Scene
from corpus_scenes.mirroring import mirrored_scene

Span = tuple[float, float]

# A mirror image of these would hardly differ: how far their things go to the right and down.
PUSHED: Mapping[str, Point] = {
    "astronaut_her_face.png": (46, 0),
    "clay_cat_firefighter.png": (56, 0),
    "clay_penguin_chef.png": (-64, 0),
    "clay_turtle_postman.png": (-56, 0),
    "colour_answer.png": (44, 24),
    "grandpa_hat.png": (44, 0),
    "hands_five.png": (0, -30),
    "lamp_lemon.png": (-60, 0),
    "lamp_strawberry.png": (60, 0),
    "moth_plate.png": (0, -56),
    "onigiri.png": (30, -26),
    "robot_coloured.png": (54, 0),
    "self_lantern.png": (50, 0),
    "shadowbox_bicycle.png": (22, -22),
    "shadowbox_cactus.png": (22, 22),
    "shadowbox_whale.png": (-22, 22),
    "soap_bottle.png": (-50, 0),
    "stamp_anchor.png": (32, -30),
    "stamp_kettle.png": (32, 24),
    "stamp_pear.png": (-30, -30),
}


def moved_scene(name: str, scene: Scene) -> Scene:
    """The mirror image of a scene, its things pushed as `PUSHED` says; words stay readable.

    What reaches from side to side, such as a wall, a table or the sea, is no thing and stays.
    """
    mirror = mirrored_scene(scene)
    width, (right, down) = scene.size[0], PUSHED.get(name, (0, 0))
    marks = [
        mark if reaches_across(mark, width) else Placed([mark], right, down)
        for mark in mirror.marks
    ]
    return replace(mirror, marks=marks)


def reaches_across(mark: Brush, width: float) -> bool:
    """Whether the mark goes from the left edge of an image of that width to the right one."""
    left, right = span(mark)
    return left <= 0 and right >= width


@singledispatch
def span(mark: Brush) -> Span:
    """How far to the left and to the right a mark goes; words count as their anchor.

    Raises:
        NotImplementedError: It is not known how far such a brush goes.
    """
    raise NotImplementedError(f"no span of {mark!r}: register one")


@span.register
def _(mark: Tint) -> Span:  # noqa: ARG001 - it always covers everything
    return -math.inf, math.inf


@span.register
def _(mark: Disc | Glow) -> Span:
    return mark.x - mark.radius, mark.x + mark.radius


@span.register
def _(mark: Words) -> Span:
    return mark.x, mark.x


@span.register
def _(mark: Panel | Scatter | Framed) -> Span:
    return mark.box[0], mark.box[2]


@span.register
def _(mark: Fade) -> Span:
    return (mark.box[0], mark.box[2]) if mark.box else (-math.inf, math.inf)


@span.register
def _(mark: Shape | Stroke) -> Span:
    across = [x for x, _ in mark.points]
    return min(across), max(across)


@span.register
def _(mark: Sheet) -> Span:
    spans = [span(inner) for inner in mark.marks]
    return min(left for left, _ in spans), max(right for _, right in spans)


@span.register
def _(mark: Placed) -> Span:
    spans = [span(inner) for inner in mark.marks]
    left, right = min(left for left, _ in spans), max(right for _, right in spans)
    return mark.x + mark.scale * left, mark.x + mark.scale * right
