"""Boxes by which images may be cut, and the reasons why some may not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.samples.boxes import (
    Boxes,
    Convention,
    Frame,
    Pixels,
    area,
    checked_boxes,
    intersection,
    intersection_over_union,
    reading_order,
)

# A thousandth is a pixel across, and two down.
FRAME = Frame(Convention.REL_1000, (1000, 2000), (1000, 2000))
SIDE = st.integers(0, 12)
BOX = st.tuples(SIDE, SIDE, SIDE, SIDE)
NUMBER = st.floats(-200, 1200) | st.integers(-100, 1100) | st.sampled_from([0, 1, 500, 1000])
NUMBERS = st.lists(st.lists(NUMBER, min_size=4, max_size=4), max_size=5)


def reasons(boxes: Boxes) -> list[str]:
    """Names of the findings, in order."""
    return [str(notice) for notice, _ in boxes.findings]


def mask(box: Pixels) -> Any:
    """The pixels of a small box, one by one."""
    left, top, right, bottom = box
    grid = np.zeros((12, 12), bool)
    grid[top:bottom, left:right] = True
    return grid


def test_boxes_by_hand() -> None:
    """Mapped to whole pixels, right and bottom being the first ones outside."""
    boxes = checked_boxes([[100, 50, 400, 200]], [[0, 500, 1000, 900.4]], FRAME)
    assert (boxes.inputs, boxes.outputs) == ([(100, 100, 400, 400)], [(0, 1000, 1000, 1801)])
    assert (boxes.findings, boxes.usable) == ([], True)


@pytest.mark.parametrize(
    ("numbers", "expected", "usable"),
    [
        ([0, 0, 1001, 500], ["wrong_convention"], False),
        ([400, 0, 400, 500], ["degenerate_box"], False),
        ([400, 0, 300, 500], ["degenerate_box"], False),
        ([0, 500, 500, 400], ["degenerate_box"], False),
        ([100.1, 0, 100.4, 500], ["degenerate_box"], False),
        # 0.2 % of 1000 x 2000 are 4000 pixels: 100 x 40, and one row less.
        ([0, 0, 100, 20], [], True),
        ([0, 0, 100, 19.5], ["tiny_box"], False),
        # 95 % are 1000 x 1900.
        ([0, 0, 1000, 950], [], True),
        ([0, 0, 1000, 950.5], ["whole_box"], False),
        ([-30, 0, 500, 500], ["clamped_box"], True),
        ([-0.4, 0, 500, 500], [], True),
        ([-40, -40, 1000, 1000], ["clamped_box", "whole_box"], False),
    ],
)
def test_what_is_wrong_with_a_box(numbers: list[float], expected: list[str], usable: bool) -> None:
    """Empty, turned, tiny, whole, past the edge: named, and cut only where nothing is in doubt."""
    for given_ in (([numbers], []), ([], [numbers])):
        boxes = checked_boxes(*given_, FRAME)
        assert (reasons(boxes), boxes.usable) == (expected, usable)


def test_a_finding_shows_the_numbers_of_the_answer() -> None:
    """So that a person can see what the model meant."""
    boxes = checked_boxes([[0, 0, 500, 500]], [[400, 0, 300, 500]], FRAME)
    assert [detail for _, detail in boxes.findings] == ["output 1: [400, 0, 300, 500]"]
    boxes = checked_boxes([], [[0, 0, 1500, 500]], FRAME)
    assert [detail for _, detail in boxes.findings] == ["[0, 0, 1500, 500] in rel_1000"]


def test_one_wrong_number_spoils_the_answer() -> None:
    """Where one box cannot be meant that way none can be trusted."""
    boxes = checked_boxes([[0, 0, 500, 500]], [[0, 0, 1280, 720]], FRAME)
    assert (boxes.inputs, boxes.outputs, boxes.usable) == ([], [], False)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([0, 0, 500, 500], [500, 0, 1000, 500], []),
        # A tenth of the smaller one, and a hair more.
        ([0, 0, 500, 500], [450, 0, 950, 500], []),
        ([0, 0, 500, 500], [449, 0, 949, 500], ["overlapping_boxes"]),
        # A thumbnail on an image shares all of itself, though little of the image.
        ([0, 0, 1000, 900], [10, 10, 110, 60], ["overlapping_boxes"]),
        ([0, 0, 500, 500], [0, 0, 500, 500], ["overlapping_boxes"]),
    ],
)
def test_boxes_that_share_a_part(one: list[float], other: list[float], expected: list[str]) -> None:
    """A crop that shows a part of another image is no image."""
    assert reasons(checked_boxes([one], [other], FRAME)) == expected


def test_one_image_is_named_once() -> None:
    """Two boxes of one role around the same image: the first in reading order counts."""
    boxes = checked_boxes([], [[2, 2, 500, 500], [0, 0, 500, 500], [600, 0, 900, 500]], FRAME)
    assert boxes.outputs == [(0, 0, 500, 1000), (600, 0, 900, 1000)]
    assert (reasons(boxes), boxes.usable) == (["duplicate_box"], True)


def test_no_box_is_no_finding() -> None:
    """Whether there should have been one is not for the geometry to say."""
    assert checked_boxes([], [], FRAME) == Boxes()


@given(NUMBERS, NUMBERS, st.sampled_from(Convention), st.randoms(use_true_random=False))
def test_boxes_keep_to_the_image(
    inputs: list[list[float]], outputs: list[list[float]], convention: Convention, chance: Any
) -> None:
    """Whatever the numbers: what is kept has an area, lies inside, and does not depend on order."""
    frame = Frame(convention, (300, 500), (280, 504))
    boxes = checked_boxes(inputs, outputs, frame)
    every = [*boxes.inputs, *boxes.outputs]
    for left, top, right, bottom in every:
        assert 0 <= left < right <= 300
        assert 0 <= top < bottom <= 500
    if boxes.usable:
        assert len(every) + reasons(boxes).count("duplicate_box") == len(inputs) + len(outputs)
        for number, one in enumerate(every):
            for other in every[number + 1 :]:
                assert 10 * intersection(one, other) <= min(area(one), area(other))
    if frame.betrayed_by([*inputs, *outputs]) is None:
        turned = checked_boxes(
            chance.sample(inputs, len(inputs)), chance.sample(outputs, len(outputs)), frame
        )
        assert (turned.inputs, turned.outputs) == (boxes.inputs, boxes.outputs)
        assert Counter(reasons(turned)) == Counter(reasons(boxes))


@given(BOX, BOX)
def test_overlaps_are_those_of_the_pixels(one: Pixels, other: Pixels) -> None:
    """Counted pixel by pixel."""
    shared, either = (mask(one) & mask(other)).sum(), (mask(one) | mask(other)).sum()
    assert area(one) == mask(one).sum()
    assert intersection(one, other) == shared
    assert intersection_over_union(one, other) == (shared / either if shared else 0)


@given(st.lists(BOX, max_size=8), st.randoms(use_true_random=False))
def test_reading_order_is_one_order(boxes: list[Pixels], chance: Any) -> None:
    """The same for any order given; nothing is lost."""
    order = reading_order(boxes)
    assert reading_order(chance.sample(boxes, len(boxes))) == order
    assert Counter(order) == Counter(boxes)


def test_rows_are_read_from_the_left() -> None:
    """By hand: two rows whose images are a few pixels off each other's height."""
    first, second = (
        [(0, 12, 90, 100), (100, 10, 190, 98)],
        [(0, 110, 90, 200), (100, 108, 190, 190)],
    )
    assert reading_order([*second, *first]) == [*first, *second]
