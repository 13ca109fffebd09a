"""Sheets of images and windows are told from single images by their pixels."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from echo_hf.errors import ImageError
from echo_hf.images.panes import MAX_SIDE, Layout, detect_layout, find_panes, shrink_to_pixels
from tests.conftest import ROOT
from tests.images.drawn_layouts import (
    LAYOUTS,
    Drawn,
    abutting,
    comic,
    drawing,
    sheet,
    sheets,
    singles,
    windows,
    with_arrow,
)
from tests.images_for_tests import encoded

DRAWN_BY_PEOPLE = ROOT / "echo_hf" / "quickstart" / "pictures"
SCREENSHOTS = ROOT / "tests" / "data" / "screenshots"
NOT_SINGLE = {
    "chat_glass",
    "chat_glass_end",
    "chat_list",
    "chat_ramen",
    "collage_chair",
    "mill_chat",
}


def found_among(drawn: Iterable[Drawn]) -> tuple[int, int]:
    """How many are called sheets or windows, and how many there are."""
    answers = [detect_layout(one.data) is not None for one in drawn]
    return sum(answers), len(answers)


def test_sheets_of_many_layouts_are_found() -> None:
    """Rows, columns, lattices, unequal panes; gutters of 3 to 30 pixels in colors of pictures."""
    found, every = found_among(sheets(1000))
    assert found >= 0.8 * every


def test_windows_are_found() -> None:
    found, every = found_among(one for seed in (1000, 1001) for one in windows(seed))
    assert found >= 0.8 * every


def test_inputs_and_outputs_with_an_arrow_between_are_found() -> None:
    found, every = found_among(one for seed in range(1000, 1006) for one in with_arrow(seed))
    assert found >= 0.6 * every


def test_images_that_touch_are_found_where_no_edge_of_one_image_is_so_long() -> None:
    found, every = found_among(one for seed in (1000, 1001) for one in abutting(seed))
    assert found >= 0.4 * every


@pytest.mark.parametrize("seed", [1000, 1001])
def test_single_images_stay_whatever_their_edges(seed: int) -> None:
    """Shelves, window frames, tiles, film strips, buildings, posters, products, horizons, flags."""
    wrong = [one.kind for one in singles(seed) if detect_layout(one.data) is not None]
    assert len(wrong) <= 1


@pytest.mark.slow
def test_precision_and_recall_on_many_drawn_images() -> None:
    counts: Counter[str] = Counter()
    for seed in range(2000, 2008):
        for name, drawn in (("sheets", sheets(seed)), ("windows", windows(seed))):
            found, every = found_among(drawn)
            counts[name] += found
            counts[f"all {name}"] += every
        found, every = found_among(singles(seed))
        counts["wrong"] += found
        counts["all singles"] += every
    assert counts["sheets"] >= 0.85 * counts["all sheets"]
    assert counts["windows"] >= 0.85 * counts["all windows"]
    assert counts["wrong"] <= 0.02 * counts["all singles"]


def test_a_page_of_a_comic_is_laid_out_as_a_sheet_is() -> None:
    """Pixels do not tell them apart: it is doubted, and a model or a person says what it is."""
    assert detect_layout(comic(7).data) is Layout.SHEET


def test_images_that_people_drew_stay() -> None:
    single = [one for one in DRAWN_BY_PEOPLE.iterdir() if one.stem not in NOT_SINGLE]
    assert [one.name for one in single if detect_layout(one) is not None] == []
    assert detect_layout(DRAWN_BY_PEOPLE / "collage_chair.jpg") is Layout.SHEET


def test_outputs_that_were_posted_stay(test_data: Path) -> None:
    posted = sorted(test_data.glob("posts/gpt4o_prompt_posts/raw/*/*.png"))
    assert len(posted) == 5
    assert [one.name for one in posted if detect_layout(one) is not None] == []


def test_screenshots_that_a_browser_rendered_are_found() -> None:
    shots = sorted(SCREENSHOTS.glob("*/pictures/*.png"))
    missed = [one for one in shots if detect_layout(one) is None]
    assert len(shots) == 24
    assert len(missed) <= 6


@pytest.mark.parametrize("name", ["1x2", "2x2", "one large, two small"])
def test_panes_lie_where_they_were_drawn(name: str) -> None:
    rng = np.random.default_rng(3)
    image = sheet(rng, LAYOUTS[name], gutter=20, color=(255, 255, 255), margin=True, unit=240)
    pixels = np.asarray(image)
    panes = sorted(find_panes(pixels))
    expected = sorted(
        (20 + left * 260, 20 + top * 260, right * 260, bottom * 260)
        for left, top, right, bottom in LAYOUTS[name]
    )
    assert len(panes) == len(expected)
    assert np.abs(np.array(panes) - expected).max() <= 3


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_large_images_are_looked_at_small(kind: str) -> None:
    image = Image.new("RGB", (4800, 3200), (250, 250, 250))
    image.paste(drawing("cat_rain.jpg").resize((2300, 3000)), (60, 100))
    image.paste(drawing("lake_day.jpg").resize((2300, 3000)), (2440, 100))
    data = encoded(image, kind)
    assert max(shrink_to_pixels(data).shape) <= 2 * MAX_SIDE
    assert detect_layout(data) is Layout.SHEET


def test_images_are_looked_at_upright() -> None:
    """A column of two that a camera wrote down as a row."""
    rng, turned = np.random.default_rng(3), Image.Exif()
    turned[0x0112] = 6
    image = sheet(rng, LAYOUTS["1x2"], gutter=20, color=(255, 255, 255), margin=True, unit=900)
    data = encoded(image, "JPEG", exif=turned)
    assert shrink_to_pixels(data).shape[:2] == (1860, 940)
    assert detect_layout(data) is not None


def test_a_long_strip_keeps_its_width() -> None:
    assert shrink_to_pixels(encoded(Image.new("RGB", (9000, 3)), "PNG")).shape[0] == 3


def test_there_is_nothing_to_see_in_a_very_small_image() -> None:
    assert detect_layout(encoded(Image.new("RGB", (40, 900)), "PNG")) is None


def test_what_is_no_image_is_an_error_of_images() -> None:
    with pytest.raises(ImageError):
        detect_layout(io.BytesIO(b"no image").getvalue())
