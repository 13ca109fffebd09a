"""Find the pictures in a screenshot: filled rectangles on plain ground, or pieces beside pieces."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Pixels = NDArray[np.int16]
Mask = NDArray[np.bool_]
Rectangle = tuple[int, int, int, int]

TOLERANCE = 4
BRIDGE = 5  # pixels of ground inside a picture, or between letters
EDGE = 2  # how far in an edge is sharp
SMALLEST, SHORTEST = 0.004, 24  # of the screenshot; pixels
GROUND, FILLED, RING = 0.3, 0.85, 0.8
LEVELS, FEWEST_COLOURS, MOST_PLAIN = 6, 10, 0.8
SUBJECT = (0.4, 0.98)  # of both sides: a drawing on paper, not lines of text, not a frame
HIGHEST_LINE, LONG = 32, 3
COLLAGE, STEP, SEAM, SMALLEST_PIECE = 0.5, 10, 0.6, 0.15
DEEPEST = 4


def pictures_in(rgb: Pixels) -> list[Rectangle]:
    """The pictures that stand in a screenshot or collage.

    Args:
        rgb: Its pixels, 0 to 255.

    Returns:
        Left, top, right, bottom of each, from top to bottom.
    """
    if min(rgb.shape[:2]) < SHORTEST:
        return []
    whole = (0, 0, rgb.shape[1], rgb.shape[0])
    on_ground = _margin(rgb) is not None or _near(rgb, _commonest(rgb)).mean() > GROUND
    found = _inside(rgb, whole, _size(whole), 0) if on_ground else _pieces(rgb, whole)
    return sorted(set(found), key=lambda one: (one[1], one[0]))


def _inside(rgb: Pixels, region: Rectangle, whole: int, depth: int) -> Iterator[Rectangle]:
    for box, marked in _blocks(rgb, region):
        if min(box[2] - box[0], box[3] - box[1]) < SHORTEST or _size(box) < SMALLEST * whole:
            continue
        filled = ndimage.binary_fill_holes(marked).mean() > FILLED
        deeper = depth < DEEPEST and _size(box) < _size(region)
        deeper = deeper and (not filled or _has_words(rgb, box))
        within = list(_inside(rgb, box, whole, depth + 1)) if deeper else []
        yield from within
        if not within and filled and _is_picture(_part(rgb, box)):
            yield from _pieces(rgb, box) if _size(box) > COLLAGE * whole else [box]


def _blocks(rgb: Pixels, region: Rectangle) -> Iterator[tuple[Rectangle, Mask]]:
    """What stands on the ground of a region, and where in its box it does."""
    part, (left, top, _, _) = _part(rgb, region), region
    margin = _margin(part)
    marked = ~_near(part, _commonest(part) if margin is None else margin)
    joined = ndimage.binary_closing(np.pad(marked, BRIDGE), np.ones((BRIDGE, BRIDGE)))
    labels, _ = ndimage.label(joined[BRIDGE:-BRIDGE, BRIDGE:-BRIDGE])
    for rows, columns in ndimage.find_objects(labels):
        box = (left + columns.start, top + rows.start, left + columns.stop, top + rows.stop)
        yield box, marked[rows, columns]


def _has_words(rgb: Pixels, box: Rectangle) -> bool:
    """Whether it is a bubble or a panel: plain all around, with words on it."""
    if _margin(_part(rgb, box)) is None:
        return False
    left, top, right, bottom = box
    return any(
        one[2] - one[0] > LONG * (one[3] - one[1]) and one[3] - one[1] < HIGHEST_LINE
        for one, _ in _blocks(rgb, box)
        if left < one[0] and top < one[1] and one[2] < right and one[3] < bottom
    )


def _is_picture(part: Pixels) -> bool:
    """Whether it has many colours, or is a drawing with one large subject."""
    apart = ~_near(part, _commonest(part))
    colours = np.count_nonzero(np.bincount(_codes(part, LEVELS)))
    if colours >= FEWEST_COLOURS and apart.mean() > 1 - MOST_PLAIN:
        return True
    labels, _ = ndimage.label(ndimage.binary_closing(apart, np.ones((3, 3))))
    (least, most), sides = SUBJECT, np.array(part.shape[:2])
    shares = (
        np.array([at.stop - at.start for at in found]) / sides
        for found in ndimage.find_objects(labels)
    )
    return any(bool((share > least).all() and (share < most).all()) for share in shares)


def _pieces(rgb: Pixels, box: Rectangle) -> list[Rectangle]:
    """The pictures of a collage without ground between them, cut where edges run right through."""
    part, (left, top, right, bottom) = _part(rgb, box), box
    across = [(left + a, top, left + b, bottom) for a, b in _stretches(part.swapaxes(0, 1))]
    down = [(left, top + a, right, top + b) for a, b in _stretches(part)]
    pieces = max(across, down, key=len)
    return [piece for piece in pieces if _is_picture(_part(rgb, piece))]


def _stretches(part: Pixels) -> list[tuple[int, int]]:
    steps = (np.abs(np.diff(part, axis=0)).max(axis=2) > STEP).mean(axis=1)
    cuts = [0, *(np.flatnonzero(steps > SEAM) + 1), len(part)]
    ends = [(int(a), int(b)) for a, b in pairwise(cuts)]
    return [(a, b) for a, b in ends if b - a > SMALLEST_PIECE * len(part)]


def _margin(part: Pixels) -> NDArray[np.int64] | None:
    """The colour all around, if it is one; corners may be round."""
    ring = np.concatenate([part[EDGE], part[~EDGE], part[:, EDGE], part[:, ~EDGE]])
    colour = _commonest(ring)
    return colour if _near(ring, colour).mean() > RING else None


def _near(pixels: Pixels, colour: NDArray[np.int64]) -> Mask:
    near: Mask = np.abs(pixels - colour).max(axis=-1) <= TOLERANCE
    return near


def _commonest(pixels: Pixels) -> NDArray[np.int64]:
    code = int(np.bincount(_codes(pixels, 256)).argmax())
    return np.array([code >> 16, code >> 8 & 255, code & 255])


def _codes(pixels: Pixels, levels: int) -> NDArray[np.int64]:
    coarse = pixels.reshape(-1, 3).astype(np.int64) * levels // 256
    codes: NDArray[np.int64] = coarse @ np.array([levels * levels, levels, 1])
    return codes


def _part(rgb: Pixels, box: Rectangle) -> Pixels:
    left, top, right, bottom = box
    return rgb[top:bottom, left:right]


def _size(box: Rectangle) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])
