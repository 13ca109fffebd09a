"""Pictures in a screenshot, found by their edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echo_hf.engines.rules.images import pictures_in

NOISE = np.random.default_rng(3).integers(0, 256, (400, 400, 3), dtype=np.int16)


def window(*boxes: tuple[int, int, int, int], ground: int = 250) -> Any:
    """Plain ground with noise in these boxes."""
    pixels = np.full((400, 300, 3), ground, dtype=np.int16)
    for left, top, right, bottom in boxes:
        pixels[top:bottom, left:right] = NOISE[top:bottom, left:right]
    return pixels


@pytest.mark.parametrize("ground", [0, 33, 250, 255])
def test_pictures_on_plain_ground(ground: int) -> None:
    """Light or dark, to the pixel, from top to bottom."""
    boxes = [(150, 10, 290, 100), (10, 120, 140, 300), (160, 120, 290, 300)]
    assert pictures_in(window(*boxes, ground=ground)) == boxes


def test_a_picture_in_a_bubble() -> None:
    """A bubble is plain and has words on it: what counts is the picture in there."""
    pixels = window()
    pixels[50:200, 60:280] = 200
    pixels[60:130, 80:180] = NOISE[60:130, 80:180]
    pixels[150:160, 80:260] = 20
    assert pictures_in(pixels) == [(80, 60, 180, 130)]


def test_words_and_controls_are_no_pictures() -> None:
    """Lines of text, an empty bubble, a bar with a border, a small icon."""
    pixels = window()
    pixels[20:30, 20:200] = 0
    pixels[60:110, 100:280] = 220
    pixels[80:90, 120:260] = 0
    pixels[300:340, 10:290] = 180
    pixels[302:338, 12:288] = 250
    pixels[200:215, 20:35] = NOISE[:15, :15]
    assert pictures_in(pixels) == []


def test_a_drawing_on_paper_is_a_picture() -> None:
    """Few colours, but one subject that takes up most of it."""
    pixels = window()
    pixels[50:250, 50:250] = 236
    pixels[90:210, 140:150] = 0
    pixels[140:150, 90:210] = 0
    assert pictures_in(pixels) == [(50, 50, 250, 250)]


@pytest.mark.parametrize("along", [0, 1])
def test_a_collage_without_a_gutter_is_cut_at_its_seams(along: int) -> None:
    """Two or three pictures edge to edge, beside or above each other."""
    for count in (2, 3):
        ramp = np.linspace(0, 60, 120)[:, None, None] + np.linspace(0, 60, 120)[None, :, None]
        tints = [np.array(tint) for tint in ((0, 20, 40), (120, 90, 10), (30, 130, 90))]
        pieces = [(ramp + tint).astype(np.int16) for tint in tints[:count]]
        found = pictures_in(np.concatenate(pieces, axis=along))
        ends = [(120 * n, 120 * n + 120) for n in range(count)]
        assert found == [(0, a, 120, b) if along == 0 else (a, 0, b, 120) for a, b in ends]


@pytest.mark.parametrize("shape", [(1, 1), (23, 900), (24, 24), (900, 30)])
def test_any_size_will_do(shape: tuple[int, int]) -> None:
    """Nothing is found in what is too small to show anything, and nothing goes wrong."""
    assert pictures_in(np.full((*shape, 3), 99, dtype=np.int16)) == []


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 5), st.integers(0, 2**32 - 1))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
def test_whatever_it_shows(height: int, width: int, colours: int, seed: int) -> None:
    """Boxes are inside, have an area, and are the same each time."""
    chance = np.random.default_rng(seed)
    blocks = chance.integers(0, colours + 1, (height, width, 1)) * (255 // colours)
    pixels = blocks.repeat(4, 0).repeat(4, 1).repeat(3, 2).astype(np.int16)
    found = pictures_in(pixels)
    assert found == pictures_in(pixels)
    assert len(set(found)) == len(found)
    for left, top, right, bottom in found:
        assert 0 <= left < right <= 4 * width
        assert 0 <= top < bottom <= 4 * height
