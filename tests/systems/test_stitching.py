"""Several inputs in one image."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.systems.images import Pixels, stitched, stitched_sizes, within
from tests.systems.tasks_for_tests import blocks

SIDES = st.integers(60, 4000)
SIZES = st.lists(st.tuples(SIDES, SIDES), min_size=1, max_size=6)
MOST = 1024 * 1024
RED, GREEN, BLUE = (250, 10, 20), (10, 250, 20), (10, 20, 250)
Levels = np.ndarray[Any, np.dtype[np.float64]]


def _megapixel(size: Pixels) -> Pixels:
    return within(size, MOST)


def _lanczos(levels: Levels, length: int) -> Levels:
    """Resamples the first axis with three lobes of a windowed sinc, written out."""
    scale = len(levels) / length
    width = max(scale, 1.0)
    places = (np.arange(length) + 0.5) * scale
    away = (np.arange(len(levels)) + 0.5 - places[:, None]) / width
    weights = np.where(np.abs(away) < 3, np.sinc(away) * np.sinc(away / 3), 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    found: Levels = np.clip(np.tensordot(weights, levels, axes=1), 0, 255)
    return found


def _resampled(image: Image.Image, size: Pixels) -> Levels:
    # Pillow rounds after each direction, rows first.
    rows = np.asarray(image, dtype=np.float64).transpose(1, 0, 2)
    wide = np.round(_lanczos(rows, size[0])).transpose(1, 0, 2)
    return _lanczos(wide, size[1])


@given(SIZES)
def test_sides_fit_the_model(sizes: list[Pixels]) -> None:
    """All have one height, all sides are multiples of 16, and the whole has no more pixels."""
    found = stitched_sizes(sizes, _megapixel, MOST, 16)
    assert len(found) == len(sizes)
    assert len({height for _, height in found}) == 1
    assert all(side % 16 == 0 and side > 0 for size in found for side in size)
    assert sum(width for width, _ in found) * found[0][1] <= MOST


@given(SIZES)
def test_no_image_loses_its_shape(sizes: list[Pixels]) -> None:
    """An image is as wide as its shape and the height say, less at most 15 columns."""
    found = stitched_sizes(sizes, lambda size: size, MOST, 16)
    for (width, height), (given_width, given_height) in zip(found, sizes, strict=True):
        exact = height * given_width / given_height
        assert exact - 16 < width <= max(exact + 1e-6, 16)


def test_the_first_image_alone_is_the_size_of_the_model() -> None:
    """With one image, or with room for all, nothing is scaled further."""
    assert stitched_sizes([(640, 480)], lambda _: (1184, 880), 2 * MOST, 16) == [(1184, 880)]
    assert stitched_sizes([(640, 480), (10, 20)], lambda _: (1184, 880), 2 * MOST, 16) == [
        (1184, 880),
        (432, 880),
    ]


def test_the_height_is_what_the_pixels_allow() -> None:
    """Two squares in 131,072 pixels are 256 high: 2 x 256 x 256."""
    squares = [(1000, 1000), (10, 10)]
    assert stitched_sizes(squares, _megapixel, 131_072, 16) == [(256, 256), (256, 256)]
    assert math.prod((512, 256)) == 131_072


@pytest.mark.parametrize("colors", [(RED, GREEN, BLUE), (BLUE, RED, GREEN)])
def test_images_stand_in_their_order(colors: tuple[tuple[int, int, int], ...]) -> None:
    """From the left, each as a rectangle of its own with no line between."""
    images = [Image.new("RGB", (300, 200), color) for color in colors]
    whole = np.asarray(stitched(images, lambda _: (288, 192), 3 * 288 * 192, 16))
    expected = np.zeros((192, 864, 3), dtype=np.uint8)
    for number, color in enumerate(colors):
        expected[:, number * 288 : (number + 1) * 288] = color
    np.testing.assert_array_equal(whole, expected)


def test_pixels_are_those_of_each_image_alone() -> None:
    """Lanczos with three lobes, written out, gives the same levels, but for rounding."""
    images = [blocks((150, 100), 1), blocks((70, 130), 2)]
    whole = np.asarray(stitched(images, lambda _: (144, 96), 10_000, 16), dtype=np.float64)
    sizes = [(96, 64), (32, 64)]
    expected = [_resampled(one, size) for one, size in zip(images, sizes, strict=True)]
    assert whole.shape == (64, 128, 3)
    np.testing.assert_allclose(whole, np.concatenate(expected, axis=1), atol=1.01)
