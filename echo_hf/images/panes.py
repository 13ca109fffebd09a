"""Tell sheets of several images, and windows of programs, from single images.

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

MAX_SIDE = 1024  # pixels of the longer side that is looked at
MIN_SIDE = 48  # there is nothing to see in less
BLOCKS = 16  # parts of a line whose means are compared: packing averages out, light does not
STEADY_LEVELS, TINT_LEVELS = 8, 40  # levels of 255 between them, of brightness and of a channel
MAX_GRAIN = 12  # standard deviation of brightness along a line
MAX_COLORS = 6  # of seams that are tried
# Levels from the color of seams, of brightness and of a channel.
OFF_LEVELS, FAR_OFF_LEVELS = 20, 60
OFF_SHARE = 0.01  # of a line of a seam may be off
MAX_DEPTH = 8  # cuts within cuts
MIN_PANE_SIDE, MIN_PANE_AREA = 0.08, 0.015  # of the longer side, of the area
MAX_PANE_RATIO = 3.2  # times as long as wide: a title is longer
MIN_DEVIATION = 6  # standard deviation of the brightness of what is no plain color
# Levels; pixels in which a pane begins; 1/12 may be rounded.
EDGE_LEVELS, REACH, CORNER_PARTS = 24, 4, 12
STRAIGHT_SHARE = 0.85  # of a side that differs from the seam
ALL_SIDES, PANE_SIDES, SHEET_SIDES = 4, 2, 0.8  # that are straight: of a pane at least, in the mean
SAME_SIZE = 0.01  # by which panes of one size differ
PANES_SHARE = 0.45  # of the area
PERFORATIONS, OUT_OF_STEP = 8, 0.1  # marks of one size at equal distances: the holes of a film
TWIN_CORRELATION, MIN_TWINS, PATTERN = 0.99, 4, 0.6  # panes that repeat each other, as tiles do
SEAM_STEP, SEAM_RATIO = 16, 3  # levels across the edge of two pictures, and times what is beside it
MEAN_SEAM, MIN_SEAM = 0.82, 0.65  # of the line that is such an edge: in the mean, and at least
MIN_UNEVENNESS = 5  # standard deviation along it: a horizon has one color on each side
DIVISIONS, LEEWAY = (2, 3, 4), 0.01  # such pictures are equal
SEARCH_LEEWAYS, HAIRLINE = 4, 4  # where no other edge is, in leeways; pixels of a thin gutter
PLAIN_LEVELS, PLAIN_COLORS, PLAIN_AREA = 5, 6, 0.6  # levels; colors that cover so much of a window
MIN_PLAIN, SECOND_PLAIN = 0.03, 0.05  # of the area: a color at all, the second one
MAX_LETTER, MIN_LETTER = 0.025, 3  # of the longer side; pixels
# In a window at least; lines that the side has room for.
MIN_LETTERS, MIN_LINES, LINES_A_SIDE = 12, 5, 50
LINE_SHARE, BAR_SHARE, STEADY_SHARE = 0.5, 0.6, 0.9  # that have the color of a bar
TITLE_BAR, SIDE_BAR, MIN_BAR = 0.14, 0.3, 0.02  # of the height, of the width
TALL_RATIO, TALL_LINES, TALL_LETTERS = 1.6, 8, 30  # a telephone's screen may have no bar

PixelArray = NDArray[np.uint8]
FloatArray = NDArray[np.float32]
LineMask = NDArray[np.bool_]
PixelBox = tuple[int, int, int, int]


class Layout(StrEnum):
    """Layouts of an image that is not a single one."""

    SHEET = "sheet"
    WINDOW = "window"


def detect_layout(source: ImageSource) -> Layout | None:
    """Detect a sheet of images or a program's window; null for a single image."""
    pixels = shrink_to_pixels(source)
    if min(pixels.shape[:2]) < MIN_SIDE:
        return None
    if is_window(pixels):
        return Layout.WINDOW
    return Layout.SHEET if find_panes(pixels) else None


def shrink_to_pixels(source: ImageSource) -> PixelArray:
    """Load an image upright, with sides of about 1,024 pixels at most."""
    with open_image(source) as image:
        image.draft("RGB", (MAX_SIDE, MAX_SIDE))  # a JPEG need not be decoded whole
        is_plain = image.mode in ("RGB", "L") and not image.has_transparency_data
        # What is plain is made small first, which spares a copy of all its pixels.
        rgb = load_rgb(_shrink(image) if is_plain else image, color_management=False)
    return np.asarray(_shrink(rgb))


def _shrink(image: Image.Image) -> Image.Image:
    return image.reduce(max(1, min(max(image.size) // MAX_SIDE, min(image.size) // MIN_SIDE)))


def find_panes(pixels: PixelArray) -> list[PixelBox]:
    """Return the images of a sheet; empty for a single image."""
    height, width = pixels.shape[:2]
    light = _compute_brightness(pixels)
    wholes = [(0, 0, width, height)]
    best: list[PixelBox] = []
    for color in _find_seam_colors(pixels, light):
        parts = _split_parts(_mark_off_color(pixels, light, color))
        wholes += [box for box in parts if _box_area(box) > PANES_SHARE * width * height]
        panes = _select_panes(parts, pixels, light, color)
        best = max(best, panes, key=len)
    return best or next(filter(None, (_split_touching(light, box) for box in wholes)), [])


def is_window(pixels: PixelArray) -> bool:
    """Return whether an image has the plain colors, bar and small letters of a window."""
    height, width = pixels.shape[:2]
    masks = _find_plain_colors(pixels)
    shares = sorted((float(mask.mean()) for mask in masks), reverse=True)
    if sum(shares) < PLAIN_AREA or len(shares) < 2 or shares[1] < SECOND_PLAIN:
        return False
    is_detail = ~np.logical_or.reduce(masks)
    longest = max(height, width)
    letters = [
        box
        for box in _split_parts(is_detail)
        if MIN_LETTER <= max(box[2] - box[0], box[3] - box[1]) <= MAX_LETTER * longest
    ]
    lines = len({(top + bottom) * LINES_A_SIDE // (2 * longest) for _, top, _, bottom in letters})
    if len(letters) < MIN_LETTERS or lines < MIN_LINES:
        return False
    if height >= TALL_RATIO * width and len(letters) >= TALL_LETTERS and lines >= TALL_LINES:
        return True
    return _has_bar(masks, TITLE_BAR) or _has_bar([mask.T for mask in masks], SIDE_BAR)


def _compute_brightness(pixels: NDArray[Any]) -> FloatArray:
    light: FloatArray = pixels @ np.array([0.299, 0.587, 0.114], np.float32)
    return light


def _box_size(box: PixelBox) -> tuple[int, int]:
    left, top, right, bottom = box
    return right - left, bottom - top


def _box_area(box: PixelBox) -> int:
    return math.prod(_box_size(box))


def _is_same_size(size: tuple[int, int], other: tuple[int, int]) -> bool:
    return all(abs(a - b) <= max(2, SAME_SIZE * b) for a, b in zip(size, other, strict=True))


def find_runs(lines: LineMask) -> list[tuple[int, int]]:
    """Return starts and ends of the runs of true values."""
    edges = np.flatnonzero(np.diff(np.r_[False, lines, False]))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]


def _find_seam_colors(pixels: PixelArray, light: FloatArray) -> list[FloatArray]:
    """Return colors of lines from side to side: inside ones first, then margins."""
    inside, margins = list[FloatArray](), list[FloatArray]()
    for rows, grey in ((pixels, light), (pixels.swapaxes(0, 1), light.T)):
        flat = _find_flat_columns(rows, grey)
        for start, end in find_runs(flat):
            color = np.median(rows[:, (start + end) // 2], axis=0).astype(np.float32)
            (margins if start == 0 or end == len(flat) else inside).append(color)
    colors: list[FloatArray] = []
    for color in (*inside, *margins):
        if all(np.abs(color - other).max() > STEADY_LEVELS for other in colors):
            colors.append(color)
    return colors[:MAX_COLORS]


def _find_flat_columns(pixels: PixelArray, light: FloatArray) -> LineMask:
    """Return which columns have one color throughout, apart from compression noise."""
    flat: LineMask = _measure_range(light) <= STEADY_LEVELS
    flat[flat] = light[:, flat].std(0) <= MAX_GRAIN
    flat[flat] = _measure_range(pixels[:, flat]).max(-1, initial=0) <= TINT_LEVELS
    return flat


def _measure_range(values: NDArray[Any]) -> FloatArray:
    starts = np.unique(np.arange(BLOCKS) * len(values) // BLOCKS)
    counts = np.diff([*starts, len(values)]).reshape(-1, *[1] * (values.ndim - 1))
    sums = np.add.reduceat(values, starts, axis=0, dtype=np.float32)
    spread: FloatArray = np.ptp(sums / counts, axis=0)
    return spread


def _match_color(pixels: PixelArray, color: FloatArray, levels: int) -> LineMask:
    """Return which pixels are close to a color in every channel, by look-up tables."""
    red, green, blue = np.abs(np.arange(256) - color[:, None]) <= levels
    is_near: LineMask = red[pixels[..., 0]] & green[pixels[..., 1]] & blue[pixels[..., 2]]
    return is_near


def _mark_off_color(pixels: PixelArray, light: FloatArray, color: FloatArray) -> LineMask:
    is_off: LineMask = np.abs(light - _compute_brightness(color)) > OFF_LEVELS
    return is_off | ~_match_color(pixels, color, FAR_OFF_LEVELS)


def _split_parts(is_off: LineMask) -> list[PixelBox]:
    """Return the boxes between seams, cut down and across by turns."""

    def cut(box: PixelBox, depth: int, unparted: int) -> Iterator[PixelBox]:
        left, top, right, bottom = box
        is_down = depth % 2 == 0
        lines = is_off[top:bottom, left:right].mean(0 if is_down else 1) > OFF_SHARE
        spans = find_runs(lines)
        unparted = unparted + 1 if spans == [(0, len(lines))] else 0
        if unparted == 2 or depth == MAX_DEPTH:
            yield box
            return
        for start, end in spans:
            down, across = (
                (left + start, top, left + end, bottom),
                (left, top + start, right, top + end),
            )
            yield from cut(down if is_down else across, depth + 1, unparted)

    return list(cut((0, 0, is_off.shape[1], is_off.shape[0]), 0, 0))


def _select_panes(
    parts: Sequence[PixelBox], pixels: PixelArray, light: FloatArray, color: FloatArray
) -> list[PixelBox]:
    """Return the parts that are images, where they make up a sheet."""
    height, width = light.shape
    straight, marks = dict[PixelBox, int](), list[PixelBox]()
    for box in parts:
        left, top, right, bottom = box
        short, long = sorted(_box_size(box))
        if (
            short < MIN_PANE_SIDE * max(height, width)
            or _box_area(box) < MIN_PANE_AREA * light.size
        ):
            marks.append(box)
        elif (
            long <= MAX_PANE_RATIO * short and light[top:bottom, left:right].std() >= MIN_DEVIATION
        ):
            straight[box] = _count_straight_sides(pixels[top:bottom, left:right], color)
    # One whose sides have the color of the seams is known by its size.
    sizes = [_box_size(box) for box, sides in straight.items() if sides == ALL_SIDES]
    for box in straight:
        if any(_is_same_size(_box_size(box), size) for size in sizes):
            straight[box] = ALL_SIDES
    panes = [box for box, sides in straight.items() if sides >= PANE_SIDES]
    is_sheet = (
        len(panes) > 1
        and sum(map(_box_area, panes)) >= PANES_SHARE * light.size
        and sum(straight[box] for box in panes) >= ALL_SIDES * SHEET_SIDES * len(panes)
        and not _is_perforated(marks)
        and not _is_pattern(light, panes)
    )
    return panes if is_sheet else []


def _count_straight_sides(pane: PixelArray, color: FloatArray) -> int:
    """Count a pane's straight sides; a free-standing object has a round outline."""
    straight = 0
    for rows in (pane, pane[::-1], pane.swapaxes(0, 1), pane.swapaxes(0, 1)[::-1]):
        corner = rows.shape[1] // CORNER_PARTS
        side = rows[:REACH, corner : rows.shape[1] - corner]
        differs = ~_match_color(side, color, EDGE_LEVELS)
        straight += bool(differs.mean(1).max() >= STRAIGHT_SHARE)
    return straight


def _is_perforated(marks: Sequence[PixelBox]) -> bool:
    """Return whether small marks stand in a row at equal distances."""
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


def _is_pattern(light: FloatArray, panes: Sequence[PixelBox]) -> bool:
    """Return whether most panes repeat another one."""
    if len(panes) < MIN_TWINS:
        return False
    grey = Image.fromarray(light.astype(np.uint8))
    thumbnails = [grey.resize((BLOCKS, BLOCKS), Image.Resampling.BOX, box=pane) for pane in panes]
    correlations = np.corrcoef(
        [np.asarray(thumbnail, np.float32).ravel() for thumbnail in thumbnails]
    )
    best = (correlations - 2 * np.eye(len(panes))).max(0)
    return bool((best >= TWIN_CORRELATION).mean() >= PATTERN)


def _split_touching(light: FloatArray, box: PixelBox) -> list[PixelBox]:
    """Return the equal images without a gutter that make up a box; else none."""
    left, top, right, bottom = box
    area = light[top:bottom, left:right]
    for is_down, grey in ((True, area), (False, area.T)):
        length, reach = grey.shape[1], max(2, round(grey.shape[1] * LEEWAY))
        if min(grey.shape) < MIN_SIDE:
            continue
        for count in DIVISIONS:
            edges = [round(length * number / count) for number in range(count + 1)]
            seams = [_measure_edge(grey, edge, reach) for edge in edges[1:-1]]
            if min(seams) >= MIN_SEAM and np.mean(seams) >= MEAN_SEAM:
                spans = pairwise(edges)
                panes = [
                    (left + start, top, left + end, bottom)
                    if is_down
                    else (left, top + start, right, top + end)
                    for start, end in spans
                ]
                return [] if _is_pattern(light, panes) else panes
    return []


def _measure_edge(grey: FloatArray, column: int, reach: int) -> float:
    """Measure how much of a column near a place is the edge of two touching images."""
    strip = grey[:, column - SEARCH_LEEWAYS * reach - 2 : column + SEARCH_LEEWAYS * reach + 3]
    steps = np.abs(np.diff(strip, axis=1))
    double_steps = np.abs(strip[:, 2:] - strip[:, :-2])[:, 1:-1]
    neighbors = np.maximum(steps[:, :-3], steps[:, 3:])
    shares = ((double_steps > SEAM_STEP) & (double_steps > SEAM_RATIO * neighbors)).mean(0)
    first = (SEARCH_LEEWAYS - 1) * reach
    best = first + int(shares[first : first + 2 * reach + 1].argmax())
    candidates = np.flatnonzero(shares >= shares[best] / 2)
    has_others = bool((np.abs(candidates - best) > HAIRLINE).any())  # as a bar or a gutter has
    is_even = min(map(_measure_unevenness, (strip[:, best], strip[:, best + 4]))) < MIN_UNEVENNESS
    return 0.0 if has_others or is_even else float(shares[best])


def _measure_unevenness(line: FloatArray) -> float:
    """Return the standard deviation along a line, apart from a gradual falloff."""
    places = np.linspace(-1, 1, len(line))
    return float((line - np.polyval(np.polyfit(places, line, 2), places)).std())


def _find_plain_colors(pixels: PixelArray) -> list[LineMask]:
    """Return masks of the most common colors, which do not overlap."""
    codes = (pixels >> 2).astype(np.int32) @ np.array([1 << 12, 1 << 6, 1], np.int32)
    is_left, masks = np.ones(codes.shape, bool), list[LineMask]()
    while len(masks) < PLAIN_COLORS and is_left.any():
        commonest = np.bincount(codes[is_left]).argmax()
        color = pixels[codes == commonest].mean(0, dtype=np.float32)
        mask = _match_color(pixels, color, PLAIN_LEVELS) & is_left
        if mask.mean() < MIN_PLAIN:
            break
        masks.append(mask)
        is_left &= ~mask
    return masks


def _has_bar(masks: Sequence[LineMask], max_share: float) -> bool:
    """Return whether the top rows share a plain color that those below do not have."""
    shares = np.array([mask.mean(1) for mask in masks])
    line_colors = np.where(shares.max(0) >= LINE_SHARE, shares.argmax(0), -1)
    height = len(line_colors)
    edge = max(1, height // 100)
    changes = np.flatnonzero((line_colors != line_colors[edge]) & (line_colors >= 0))
    is_frame = line_colors[-edge - 1] == line_colors[edge]
    if line_colors[edge] < 0 or is_frame or not len(changes):
        return False
    end = int(changes[0])
    below = line_colors[end : end + max(3, height // 50)]
    return (
        MIN_BAR * height <= end <= max_share * height
        and bool((line_colors[:end] == line_colors[edge]).mean() > BAR_SHARE)
        and bool((below == line_colors[end]).mean() > STEADY_SHARE)
    )
