"""Closeness: 1 for the same image, 0 for a blank sheet, and each kind of fault lowers it."""

from __future__ import annotations

import io
import runpy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.stages_for_tests import ROOT

SCRIPT = ROOT / "scripts" / "rate_stand_ins.py"
difference = runpy.run_path(str(SCRIPT))["difference"]
Pixels = np.ndarray[Any, np.dtype[np.uint8]]
GREY = 119  # lightness 50.03
# What the posts show as wrong, and some reply says so, with the image that was meant.
WRONG = {
    "fox_yellow.png": "pictures/fox_teal.png",
    "poster_blue_huor.png": "pictures/poster_blue_hour.png",
    "lake_night.jpg": "truth/lake_night_same_shore.png",
    "cat_rain.jpg": "truth/cat_one_tail.png",
    "portrait_astronaut.png": "truth/astronaut_her_face.png",
    "mug_logo.png": "truth/mug_yellow_sun.png",
    "cart_restored.jpg": "truth/cart_gelati.png",
    "hands_six.png": "pictures/hands_five.png",
    "balloons_square.png": "pictures/balloons_wide.png",
}


def closeness(output: Pixels, truth: Pixels) -> float:
    return float(difference(output, truth).closeness)


def image(path: str) -> Pixels:
    return np.asarray(Image.open(ROOT / "echo_hf" / "quickstart" / path).convert("RGB"))


def grey(levels: Any) -> Pixels:
    return np.repeat(np.asarray(levels, np.uint8)[..., None], 3, axis=2)


def tiles(*levels: int) -> Pixels:
    return grey(np.hstack([np.full((16, 16), level) for level in levels]))


def patches(seed: int, size: int, rows: int, columns: int) -> Pixels:
    colors = np.random.default_rng(seed).integers(0, 256, (rows, columns, 3), np.uint8)
    return colors.repeat(size, axis=0).repeat(size, axis=1)


IMAGES = st.builds(
    patches, st.integers(0, 2**32), st.integers(1, 12), st.integers(2, 8), st.integers(2, 8)
)


def test_color_by_hand() -> None:
    """Two even tiles, black and white, the white one made grey: 24.98 units of 50 are missing.

    In place and in order the difference is (0 + 49.97) / 2; the blank sheet in the middle is 50
    away from both, and even tiles have no detail. Of four tiles, two change places: half of what is
    100 apart in place, by 2 of 4; the output is 50 away in place and 0 in order.
    """
    assert closeness(tiles(0, GREY), tiles(0, 255)) == pytest.approx(1 - 24.98 / 50, abs=2e-4)
    moved = closeness(tiles(0, 255, 0, 255), tiles(0, 0, 255, 255))
    assert moved == pytest.approx(1 - 25 / 50)


def test_detail_by_hand() -> None:
    """Two tiles, half black and half white; one of them loses its halves and is grey.

    A tile's lightness is 50 above and below its mean: 2500 in the square. Of 2500 + 2500 and 2500
    in the two tiles 2500 is missing; the blank sheet misses 2500 of 2500 twice.
    """
    halves = np.hstack([np.zeros((16, 8)), np.full((16, 8), 255)])
    truth, output = (
        grey(np.hstack([halves, other])) for other in (halves, np.full((16, 16), GREY))
    )
    found = difference(output, truth)
    assert found.output.detail == pytest.approx(2500 / (7500 + 2), abs=1e-3)
    assert found.output.worst == pytest.approx(2500 / (2500 + 25), abs=1e-3)
    assert found.blank.detail == pytest.approx(5000 / (5000 + 2), abs=1e-3)
    missed = 2500 / 7502 + 0.25 * 2500 / 2525
    most = 5000 / 5002 + 0.25 * 2500 / 2525
    assert found.closeness == pytest.approx(1 - missed / most, abs=2e-3)


@given(IMAGES, IMAGES, st.tuples(*[st.integers(0, 255)] * 3))
def test_it_lies_between_0_and_1(output: Pixels, truth: Pixels, color: tuple[int, ...]) -> None:
    """The same pixels give exactly 1, a sheet of any one color 0 up to rounding."""
    assert 0 <= closeness(output, truth) <= 1
    assert closeness(truth.copy(), truth) == 1
    blank = np.broadcast_to(np.array(color, np.uint8), truth.shape)
    assert closeness(blank, truth) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("wrong", WRONG)
def test_what_replies_complain_about_costs(wrong: str) -> None:
    meant, file = image(WRONG[wrong]), io.BytesIO()
    Image.fromarray(meant).save(file, "JPEG", quality=85)
    again = closeness(np.asarray(Image.open(file)), meant)
    assert 0.94 < again < 1
    assert closeness(image(f"pictures/{wrong}"), meant) < again - 0.05


def test_a_truth_of_one_color_can_be_met_and_missed() -> None:
    assert closeness(tiles(255), tiles(255)) == 1
    assert 0 < closeness(tiles(250), tiles(255)) < 1
    assert closeness(tiles(0), tiles(255)) == 0


def test_another_shape_costs_the_ratio_of_the_shapes() -> None:
    """A square in place of 16:9 gets 9/16 at most."""
    wide, square = (np.zeros((90, width), np.uint8) for width in (160, 90))
    assert difference(grey(square), grey(wide)).shape == pytest.approx(9 / 16)
