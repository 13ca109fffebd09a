"""Tell whether a picture is two pictures side by side, or one above the other."""

from __future__ import annotations

import numpy as np

from echo_hf.engines.rules.multimodal.looks import Array, Look, alike

MIDDLE = 0.06  # how far from the middle a seam may be, in parts of the side
STEP = 14.0
FEWEST_STEPS = 0.62
FEWEST_MORE_THAN_ELSEWHERE = 0.3
GUTTER_SPREAD = 6.0
HALF_SPREAD = 12.0
ALIKE = 0.36
SMALLEST_SIDE = 24


def is_split(look: Look) -> bool:
    """Whether a picture falls into two halves with a seam or a gutter between them.

    Args:
        look: The picture.

    Returns:
        True for two halves beside or above each other, whatever they show.
    """
    return bool(_halves(look))


def is_pair(look: Look) -> bool:
    """Whether a picture shows the same thing twice, as pictures before and after an edit do.

    Args:
        look: The picture.

    Returns:
        True when it falls into two halves that have their edges in the same places.
    """
    return any(alike(*halves) > ALIKE for halves in _halves(look))


def _halves(look: Look) -> list[tuple[Look, Look]]:
    """The ways in which a picture falls into halves; at its seam, and in the very middle."""
    height, width = look.grey.shape
    found = []
    for at in _cuts(look.rgb) if width >= 2 * SMALLEST_SIDE else ():
        sides = look.part(slice(None), slice(0, at[0])), look.part(slice(None), slice(at[1], width))
        found.append(sides)
    for at in _cuts(look.rgb.swapaxes(0, 1)) if height >= 2 * SMALLEST_SIDE else ():
        sides = (
            look.part(slice(0, at[0]), slice(None)),
            look.part(slice(at[1], height), slice(None)),
        )
        found.append(sides)
    return [halves for halves in found if all(one.grey.std() > HALF_SPREAD for one in halves)]


def _cuts(rgb: Array) -> list[tuple[int, int]]:
    seam, middle = _seam(rgb), rgb.shape[1] // 2
    return [seam, (middle, middle)] if seam else []


def _seam(rgb: Array) -> tuple[int, int] | None:
    """Where the left part ends and the right one begins; null when there is no seam."""
    width = rgb.shape[1]
    reach = max(2, round(MIDDLE * width))
    low, high = width // 2 - reach, width // 2 + reach
    return _gutter(rgb, low, high) or _edge(rgb, low, high)


def _gutter(rgb: Array, low: int, high: int) -> tuple[int, int] | None:
    spread = rgb.std(axis=0).max(axis=1)
    plain = np.flatnonzero(spread[low:high] < GUTTER_SPREAD) + low
    if not plain.size:
        return None
    start, end = int(plain[0]), int(plain[-1]) + 1
    # A plain ground on both sides is no gutter.
    left, right = spread[max(0, start - 6) : start], spread[end : end + 6]
    bounded = min(left.max(initial=0), right.max(initial=0)) > 2 * GUTTER_SPREAD
    return (start, end) if bounded and plain.size == end - start else None


def _edge(rgb: Array, low: int, high: int) -> tuple[int, int] | None:
    steps = (np.abs(np.diff(rgb, axis=1)).max(axis=2) > STEP).mean(axis=0)
    usual = float(np.median(np.delete(steps, range(low, high))))
    least = max(FEWEST_STEPS, usual + FEWEST_MORE_THAN_ELSEWHERE)
    edges = np.flatnonzero(steps[low:high] >= least) + low
    if not edges.size:
        return None
    start, end = int(edges[0]) + 1, int(edges[-1]) + 1
    # Two edges, each blurred over two columns, with one colour between are sides of a gutter.
    between = rgb[:, start + 1 : end - 1].reshape(-1, 3)
    if between.size and float(between.std(axis=0).max()) > GUTTER_SPREAD:
        start = end = low + int(steps[low:high].argmax()) + 1
    return start, end
