"""Tell whether a picture is a screenshot of a conversation, and whether a picture stands in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from echo_hf.engines.rules.multimodal.looks import Array, Look

FEWEST_GROUND, MOST_GROUND_CHROMA = 0.3, 36
TOLERANCE = 5.0  # an answer's bubble is often but a shade from the ground
SHADES, TINTS = 24, 6
SMALLEST_BLOCK = 0.0015  # of the window
SMALLEST_PICTURE, LARGEST_PICTURE = 0.03, 0.75
FULL = 0.8
FEWEST_TINTS, MOST_GROUND_INSIDE = 10, 0.3
MOST_PLAIN, MOST_PLAIN_IF_TALL, FEWEST_HIGH, FEWEST_COLOURS = 0.62, 0.85, 0.18, 15.0
ACROSS, MOST_ROWS_OF_A_LINE = 0.7, 2
FEWEST_OTHERS = 2
OFF_CENTRE = 0.16


@dataclass(frozen=True)
class Block:
    """Something that stands on the ground of a window.

    Attributes:
        top: Its first row, in parts of the window; the others likewise.
        bottom: Behind its last row.
        left: Its first column.
        right: Behind its last column.
        full: How much of its box it fills.
        ground: How much of its box has the colour of the ground.
        plain: How much of its box has one colour.
        tints: How many tints it has.
        colours: How far these are from each other, as `Look.colourfulness` measures it.
    """

    top: float
    bottom: float
    left: float
    right: float
    full: float
    ground: float
    plain: float
    tints: int
    colours: float

    @property
    def area(self) -> float:
        """The size of its box, in parts of the window."""
        return (self.bottom - self.top) * (self.right - self.left)

    @property
    def is_picture(self) -> bool:
        """Whether it is a filled rectangle of many colours.

        A bubble is mostly of one, and between lines of text there is much of the ground.
        """
        fits = SMALLEST_PICTURE < self.area < LARGEST_PICTURE and self.full > FULL
        tall = self.bottom - self.top > FEWEST_HIGH
        plain = MOST_PLAIN_IF_TALL if tall and self.colours > FEWEST_COLOURS else MOST_PLAIN
        busy = self.tints >= FEWEST_TINTS and self.plain < plain
        return fits and busy and self.ground < MOST_GROUND_INSIDE

    @property
    def is_bubble(self) -> bool:
        """Whether it is a plain box at the right, as what people say to a model."""
        placed = self.left > 0.2 and self.right > 0.85 and self.bottom - self.top < 0.35
        return placed and self.full > FULL and not self.is_picture

    @property
    def is_bar(self) -> bool:
        """Whether it is a wide, low box at the bottom."""
        wide = self.right - self.left > 0.55 and self.bottom - self.top < 0.2
        return wide and self.top > 0.75 and self.full > FULL

    @property
    def leans(self) -> bool:
        """Whether it stands to one side: what people say to the right, answers to the left."""
        return abs(self.left - (1 - self.right)) > OFF_CENTRE


@dataclass(frozen=True)
class Window:
    """A picture, looked at as if it were a window.

    Attributes:
        look: The picture.
    """

    look: Look

    @property
    def is_conversation(self) -> bool:
        """Whether it has the plain ground and the blocks to either side that a conversation has."""
        if not self._has_plain_ground:
            return False
        others = [one for one in self.blocks if not one.is_picture]
        leaning = [one for one in others if one.leans]
        return len(others) >= FEWEST_OTHERS and bool(leaning) and self._is_stacked

    @property
    def has_controls(self) -> bool:
        """Whether it has a bubble to the right and a bar to type into below."""
        bubble = any(one.is_bubble for one in self.blocks)
        return bubble and any(one.is_bar for one in self.blocks)

    @property
    def shows_a_picture(self) -> bool:
        """Whether a picture stands among its blocks."""
        return any(one.is_picture for one in self.blocks)

    @property
    def shows_a_picture_among_others(self) -> bool:
        """Whether a picture and something else stand on a plain ground."""
        return self._has_plain_ground and self.shows_a_picture and len(self.blocks) > 1

    @cached_property
    def blocks(self) -> list[Block]:
        """What stands on the ground, the larger pieces."""
        found = _without_panels(np.abs(self.look.rgb - self._ground).max(axis=2) > TOLERANCE)
        # Letters and lines of one paragraph are one block.
        joined = ndimage.binary_closing(np.pad(found, 4), np.ones((3, 7)))[4:-4, 4:-4]
        labels, _ = ndimage.label(joined)
        boxes = ndimage.find_objects(labels)
        some = [
            self._block(labels[box] == n, box) for n, box in enumerate(boxes, 1) if _size(box) > 12
        ]
        return [one for one in some if one.area > SMALLEST_BLOCK]

    @cached_property
    def _ground(self) -> Array:
        pixels = self.look.rgb.reshape(-1, 3)
        codes = _codes(pixels, SHADES)
        return _middle(pixels[codes == np.bincount(codes).argmax()])

    @property
    def _has_plain_ground(self) -> bool:
        plain = np.abs(self.look.rgb - self._ground).max(axis=2) <= TOLERANCE
        return (
            float(plain.mean()) >= FEWEST_GROUND
            and float(np.ptp(self._ground)) <= MOST_GROUND_CHROMA
        )

    @property
    def _is_stacked(self) -> bool:
        # Nothing surrounds the rest, as the frame of a poster does.
        return all(one.area < LARGEST_PICTURE for one in self.blocks)

    def _block(self, at: NDArray[np.bool_], box: tuple[slice, slice]) -> Block:
        rows, columns = box
        height, width = self.look.grey.shape
        inside = self.look.rgb[box].reshape(-1, 3)
        tints = _codes(inside, TINTS)
        counts = np.bincount(tints)
        main = _middle(inside[tints == counts.argmax()])
        return Block(
            rows.start / height,
            rows.stop / height,
            columns.start / width,
            columns.stop / width,
            float(at.mean()),
            float((np.abs(inside - self._ground).max(axis=1) <= TOLERANCE).mean()),
            float((np.abs(inside - main).max(axis=1) < 2 * TOLERANCE).mean()),
            int(np.count_nonzero(counts)),
            self.look.part(*box).colourfulness,
        )


def _size(box: tuple[slice, slice]) -> int:
    return int((box[0].stop - box[0].start) * (box[1].stop - box[1].start))


def _codes(colours: Array, levels: int) -> NDArray[np.int64]:
    """One number for each colour, the same for colours of the same levels."""
    coarse = (colours * (levels / 256)).astype(np.int64)
    codes: NDArray[np.int64] = coarse @ np.array([levels * levels, levels, 1])
    return codes


def _middle(colours: Array) -> Array:
    middle: Array = np.median(colours, axis=0)
    return middle


def _without_panels(found: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Leaves out bars along a whole side, and thin lines across."""
    columns = found.mean(axis=0) > 0.97
    kept: NDArray[np.bool_] = found & ~columns
    rows = kept.mean(axis=1) > ACROSS * (1 - columns.mean())
    labels, count = ndimage.label(rows)
    for n in range(1, count + 1):
        if (labels == n).sum() <= MOST_ROWS_OF_A_LINE:
            kept[labels == n] = False
    return kept
