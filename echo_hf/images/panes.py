"""Tell sheets of several pictures, and windows of programs, from single pictures.

A sheet is parted by straight seams of one color that go from side to side, or by edges as sharp and
long as only two pictures have that touch; a window has few plain colors, a bar, and small letters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from echo_hf.images.loader import ImageSource, load_rgb, open_image

LONGEST = 1024  # pixels of the longer side that is looked at
SHORTEST = 48  # there is nothing to see in less
BLOCKS = 16  # parts of a line whose means are compared: packing averages out, light does not
STEADY, TINTED = 8, 40  # levels of 255 between them, of brightness and of a channel
GRAINY = 12  # standard deviation of brightness along a line
MOST_COLORS = 6  # of seams that are tried
OFF, FAR_OFF = 20, 60  # levels from the color of seams, of brightness and of a channel
STRANGE = 0.01  # of a line of a seam may be off
DEEPEST = 8  # cuts within cuts
SMALLEST_SIDE, SMALLEST_PANE = 0.08, 0.015  # of the longer side, of the area
LONGEST_PANE = 3.2  # times as long as wide: a title is longer
PICTURED = 6  # standard deviation of the brightness of what is no plain color
APART, REACH, CORNERS = 24, 4, 12  # levels; pixels in which a pane begins; 1/12 may be rounded
STRAIGHT = 0.85  # of a side that differs from the seam
ALL_SIDES, PANE_SIDES, SHEET_SIDES = 4, 2, 0.8  # that are straight: of a pane at least, in the mean
SAME_SIZE = 0.01  # by which panes of one size differ
PANES_SHARE = 0.45  # of the area
PERFORATIONS, OUT_OF_STEP = 8, 0.1  # marks of one size at equal distances: the holes of a film
TWIN, TWINS, PATTERN = 0.99, 4, 0.6  # panes that repeat each other, as tiles do
STEP, TIMES = 16, 3  # levels across the edge of two pictures, and times what is beside it
SEAM, FAINT = 0.82, 0.65  # of the line that is such an edge: in the mean, and at least
UNEVEN = 5  # standard deviation along it: a horizon has one color on each side
DIVISIONS, LEEWAY = (2, 3, 4), 0.01  # such pictures are equal
ASIDE, HAIRLINE = 4, 4  # where no other edge is, in leeways; pixels of a thin gutter
PLAIN, PLAIN_COLORS, PLAIN_AREA = 5, 6, 0.6  # levels; colors that cover so much of a window
LEAST_PLAIN, SECOND_PLAIN = 0.03, 0.05  # of the area: a color at all, the second one
LETTER, SMALLEST_LETTER = 0.025, 3  # of the longer side; pixels
LETTERS, LINES, LINES_A_SIDE = 12, 5, 50  # in a window at least; lines that the side has room for
MOST_OF_LINE, MOST_OF_BAR, STEADILY = 0.5, 0.6, 0.9  # that have the color of a bar
TITLE_BAR, SIDE_BAR, THINNEST_BAR = 0.14, 0.3, 0.02  # of the height, of the width
TALL, TALL_LINES, TALL_LETTERS = 1.6, 8, 30  # a telephone's screen may have no bar

Pixels = NDArray[np.uint8]
Numbers = NDArray[np.float32]
Lines = NDArray[np.bool_]
Box = tuple[int, int, int, int]


class Layout(StrEnum):
    """What a picture is that is not a single one."""

    SHEET = "sheet"
    WINDOW = "window"


def layout_of(source: ImageSource) -> Layout | None:
    """Whether an image is a sheet of pictures or a window of a program; null for a single one."""
    pixels = reduced(source)
    if min(pixels.shape[:2]) < SHORTEST:
        return None
    if is_window(pixels):
        return Layout.WINDOW
    return Layout.SHEET if panes_of(pixels) else None


def reduced(source: ImageSource) -> Pixels:
    """An image upright, with sides of about 1,024 pixels at most."""
    with open_image(source) as image:
        image.draft("RGB", (LONGEST, LONGEST))  # a JPEG need not be decoded whole
        is_plain = image.mode in ("RGB", "L") and not image.has_transparency_data
        # What is plain is made small first, which spares a copy of all its pixels.
        shown = load_rgb(_small(image) if is_plain else image, color_management=False)
    return np.asarray(_small(shown))


def _small(image: Image.Image) -> Image.Image:
    return image.reduce(max(1, min(max(image.size) // LONGEST, min(image.size) // SHORTEST)))


def panes_of(pixels: Pixels) -> list[Box]:
    """The pictures of a sheet; none of a single picture."""
    height, width = pixels.shape[:2]
    light = _brightness(pixels)
    wholes = [(0, 0, width, height)]
    best: list[Box] = []
    for color in _seam_colors(pixels, light):
        parts = _parts(_strange(pixels, light, color))
        wholes += [box for box in parts if _area(box) > PANES_SHARE * width * height]
        panes = _panes_among(parts, pixels, light, color)
        best = max(best, panes, key=len)
    return best or next(filter(None, (_touching(light, box) for box in wholes)), [])


def is_window(pixels: Pixels) -> bool:
    """Whether an image has the plain colors, the bar and the small letters of a window."""
    height, width = pixels.shape[:2]
    places = _plain_colors(pixels)
    shares = sorted((float(place.mean()) for place in places), reverse=True)
    if sum(shares) < PLAIN_AREA or len(shares) < 2 or shares[1] < SECOND_PLAIN:
        return False
    rest = ~np.logical_or.reduce(places)
    longest = max(height, width)
    letters = [
        box
        for box in _parts(rest)
        if SMALLEST_LETTER <= max(box[2] - box[0], box[3] - box[1]) <= LETTER * longest
    ]
    lines = len({(top + bottom) * LINES_A_SIDE // (2 * longest) for _, top, _, bottom in letters})
    if len(letters) < LETTERS or lines < LINES:
        return False
    if height >= TALL * width and len(letters) >= TALL_LETTERS and lines >= TALL_LINES:
        return True
    return _has_bar(places, TITLE_BAR) or _has_bar([place.T for place in places], SIDE_BAR)


def _brightness(pixels: NDArray[Any]) -> Numbers:
    light: Numbers = pixels @ np.array([0.299, 0.587, 0.114], np.float32)
    return light


def _size(box: Box) -> tuple[int, int]:
    left, top, right, bottom = box
    return right - left, bottom - top


def _area(box: Box) -> int:
    return math.prod(_size(box))


def _alike(size: tuple[int, int], other: tuple[int, int]) -> bool:
    return all(abs(a - b) <= max(2, SAME_SIZE * b) for a, b in zip(size, other, strict=True))


def runs(lines: Lines) -> list[tuple[int, int]]:
    """Where lines follow each other without a break, as starts and ends."""
    edges = np.flatnonzero(np.diff(np.r_[False, lines, False]))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]


def _seam_colors(pixels: Pixels, light: Numbers) -> list[Numbers]:
    """The colors of lines that go from side to side: first those inside, then those of margins."""
    inside, margins = list[Numbers](), list[Numbers]()
    for turned, grey in ((pixels, light), (pixels.swapaxes(0, 1), light.T)):
        flat = _flat_columns(turned, grey)
        for start, end in runs(flat):
            color = np.median(turned[:, (start + end) // 2], axis=0).astype(np.float32)
            (margins if start == 0 or end == len(flat) else inside).append(color)
    colors: list[Numbers] = []
    for color in (*inside, *margins):
        if all(np.abs(color - other).max() > STEADY for other in colors):
            colors.append(color)
    return colors[:MOST_COLORS]


def _flat_columns(pixels: Pixels, light: Numbers) -> Lines:
    """Which columns have one color from top to bottom, as far as packing leaves it."""
    flat: Lines = _block_range(light) <= STEADY
    flat[flat] = light[:, flat].std(0) <= GRAINY
    flat[flat] = _block_range(pixels[:, flat]).max(-1, initial=0) <= TINTED
    return flat


def _block_range(values: NDArray[Any]) -> Numbers:
    starts = np.unique(np.arange(BLOCKS) * len(values) // BLOCKS)
    counts = np.diff([*starts, len(values)]).reshape(-1, *[1] * (values.ndim - 1))
    sums = np.add.reduceat(values, starts, axis=0, dtype=np.float32)
    apart: Numbers = np.ptp(sums / counts, axis=0)
    return apart


def _near(pixels: Pixels, color: Numbers, levels: int) -> Lines:
    """Which pixels are so near to a color in every channel; looked up, which is fast."""
    red, green, blue = np.abs(np.arange(256) - color[:, None]) <= levels
    near: Lines = red[pixels[..., 0]] & green[pixels[..., 1]] & blue[pixels[..., 2]]
    return near


def _strange(pixels: Pixels, light: Numbers, color: Numbers) -> Lines:
    off: Lines = np.abs(light - _brightness(color)) > OFF
    return off | ~_near(pixels, color, FAR_OFF)


def _parts(strange: Lines) -> list[Box]:
    """What lies between lines without anything strange, cut down and across by turns."""

    def cut(box: Box, depth: int, unparted: int) -> Iterator[Box]:
        left, top, right, bottom = box
        is_down = depth % 2 == 0
        lines = strange[top:bottom, left:right].mean(0 if is_down else 1) > STRANGE
        spans = runs(lines)
        unparted = unparted + 1 if spans == [(0, len(lines))] else 0
        if unparted == 2 or depth == DEEPEST:
            yield box
            return
        for start, end in spans:
            down, across = (
                (left + start, top, left + end, bottom),
                (left, top + start, right, top + end),
            )
            yield from cut(down if is_down else across, depth + 1, unparted)

    return list(cut((0, 0, strange.shape[1], strange.shape[0]), 0, 0))


def _panes_among(parts: Sequence[Box], pixels: Pixels, light: Numbers, color: Numbers) -> list[Box]:
    """The parts that are pictures, where they make a sheet."""
    height, width = light.shape
    straight, marks = dict[Box, int](), list[Box]()
    for box in parts:
        left, top, right, bottom = box
        short, long = sorted(_size(box))
        if short < SMALLEST_SIDE * max(height, width) or _area(box) < SMALLEST_PANE * light.size:
            marks.append(box)
        elif long <= LONGEST_PANE * short and light[top:bottom, left:right].std() >= PICTURED:
            straight[box] = _straight_sides(pixels[top:bottom, left:right], color)
    # One whose sides have the color of the seams is known by its size.
    sizes = [_size(box) for box, sides in straight.items() if sides == ALL_SIDES]
    for box in straight:
        if any(_alike(_size(box), size) for size in sizes):
            straight[box] = ALL_SIDES
    panes = [box for box, sides in straight.items() if sides >= PANE_SIDES]
    is_sheet = (
        len(panes) > 1
        and sum(map(_area, panes)) >= PANES_SHARE * light.size
        and sum(straight[box] for box in panes) >= ALL_SIDES * SHEET_SIDES * len(panes)
        and not _is_perforated(marks)
        and not _is_pattern(light, panes)
    )
    return panes if is_sheet else []


def _straight_sides(pane: Pixels, color: Numbers) -> int:
    """How many sides of a pane are straight edges; what stands free has a round outline."""
    straight = 0
    for turned in (pane, pane[::-1], pane.swapaxes(0, 1), pane.swapaxes(0, 1)[::-1]):
        corner = turned.shape[1] // CORNERS
        side = turned[:REACH, corner : turned.shape[1] - corner]
        differs = ~_near(side, color, APART)
        straight += bool(differs.mean(1).max() >= STRAIGHT)
    return straight


def _is_perforated(marks: Sequence[Box]) -> bool:
    """Whether small marks stand in a row at equal distances."""
    rows: dict[tuple[str, int, int], list[float]] = {}
    for left, top, right, bottom in marks:
        rows.setdefault(("row", top // 4, bottom // 4), []).append((left + right) / 2)
        rows.setdefault(("column", left // 4, right // 4), []).append((top + bottom) / 2)
    for middles in rows.values():
        if len(middles) >= PERFORATIONS:
            steps = np.diff(sorted(middles))
            usual = np.median(steps)
            if (np.abs(steps - usual) <= OUT_OF_STEP * usual).mean() > 1 - 2 * OUT_OF_STEP:
                return True
    return False


def _is_pattern(light: Numbers, panes: Sequence[Box]) -> bool:
    """Whether most panes repeat another one."""
    if len(panes) < TWINS:
        return False
    grey = Image.fromarray(light.astype(np.uint8))
    small = [grey.resize((BLOCKS, BLOCKS), Image.Resampling.BOX, box=pane) for pane in panes]
    alike = np.corrcoef([np.asarray(pane, np.float32).ravel() for pane in small])
    nearest = (alike - 2 * np.eye(len(panes))).max(0)
    return bool((nearest >= TWIN).mean() >= PATTERN)


def _touching(light: Numbers, box: Box) -> list[Box]:
    """The equal pictures without a gutter that make up a box; none where it is one picture."""
    left, top, right, bottom = box
    whole = light[top:bottom, left:right]
    for is_down, grey in ((True, whole), (False, whole.T)):
        long, reach = grey.shape[1], max(2, round(grey.shape[1] * LEEWAY))
        if min(grey.shape) < SHORTEST:
            continue
        for count in DIVISIONS:
            places = [round(long * number / count) for number in range(count + 1)]
            seams = [_edge_share(grey, place, reach) for place in places[1:-1]]
            if min(seams) >= FAINT and np.mean(seams) >= SEAM:
                spans = pairwise(places)
                panes = [
                    (left + start, top, left + end, bottom)
                    if is_down
                    else (left, top + start, right, top + end)
                    for start, end in spans
                ]
                return [] if _is_pattern(light, panes) else panes
    return []


def _edge_share(grey: Numbers, place: int, reach: int) -> float:
    """How much of a column near a place is the edge of two pictures that touch."""
    near = grey[:, place - ASIDE * reach - 2 : place + ASIDE * reach + 3]
    steps = np.abs(np.diff(near, axis=1))
    across = np.abs(near[:, 2:] - near[:, :-2])[:, 1:-1]
    beside = np.maximum(steps[:, :-3], steps[:, 3:])
    shares = ((across > STEP) & (across > TIMES * beside)).mean(0)
    first = (ASIDE - 1) * reach
    at = first + int(shares[first : first + 2 * reach + 1].argmax())
    others = np.flatnonzero(shares >= shares[at] / 2)
    has_others = bool((np.abs(others - at) > HAIRLINE).any())  # as a bar or a gutter has
    is_even = min(map(_unevenness, (near[:, at], near[:, at + 4]))) < UNEVEN
    return 0.0 if has_others or is_even else float(shares[at])


def _unevenness(line: Numbers) -> float:
    """Standard deviation along a line, apart from light that falls off."""
    places = np.linspace(-1, 1, len(line))
    return float((line - np.polyval(np.polyfit(places, line, 2), places)).std())


def _plain_colors(pixels: Pixels) -> list[Lines]:
    """Where the commonest colors are, each but for places of those before it."""
    few = (pixels >> 2).astype(np.int32) @ np.array([1 << 12, 1 << 6, 1], np.int32)
    rest, places = np.ones(few.shape, bool), list[Lines]()
    while len(places) < PLAIN_COLORS and rest.any():
        commonest = np.bincount(few[rest]).argmax()
        color = pixels[few == commonest].mean(0, dtype=np.float32)
        place = _near(pixels, color, PLAIN) & rest
        if place.mean() < LEAST_PLAIN:
            break
        places.append(place)
        rest &= ~place
    return places


def _has_bar(places: Sequence[Lines], most: float) -> bool:
    """Whether rows at the top have one plain color, and those right below and at the end others."""
    shares = np.array([place.mean(1) for place in places])
    own = np.where(shares.max(0) >= MOST_OF_LINE, shares.argmax(0), -1)
    height = len(own)
    edge = max(1, height // 100)
    others = np.flatnonzero((own != own[edge]) & (own >= 0))
    if own[edge] < 0 or own[-edge - 1] == own[edge] or not len(others):  # the latter is a frame
        return False
    end = int(others[0])
    below = own[end : end + max(3, height // 50)]
    return (
        THINNEST_BAR * height <= end <= most * height
        and bool((own[:end] == own[edge]).mean() > MOST_OF_BAR)
        and bool((below == own[end]).mean() > STEADILY)
    )
