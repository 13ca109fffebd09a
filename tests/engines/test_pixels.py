"""The size in which an image is sent, and the way back to its own pixels."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.engines.base import ImageRef
from echo_hf.engines.checkpoint import FAMILIES
from echo_hf.engines.pixels import SentImage, Size, fitted, sent_image, sent_reference
from echo_hf.errors import EngineError, ImageError

SIDES = st.integers(1, 12_000)
SIZES = st.tuples(SIDES, SIDES).filter(lambda size: max(size) <= 200 * min(size))
NAMES = st.sampled_from(sorted(FAMILIES))
# From budgets that are hardly wide enough to those of published checkpoints.
LEAST = st.one_of(st.none(), st.integers(1, 300_000))
MOST = st.one_of(st.none(), st.integers(784, 20_000_000))
ASKED = {"family": NAMES, "min_pixels": LEAST, "max_pixels": MOST}


def _fitted(size: Size, asked: dict[str, Any]) -> Size:
    """The fitted size, where this budget has one; other examples are left out."""
    try:
        return fitted(size, **asked)
    except (EngineError, ImageError):
        assume(False)
        raise


@pytest.mark.parametrize(
    ("size", "family", "most", "expected"),
    [
        # 512 / 28 = 18.3, so 18 patches of 28; 512 / 32 = 16 exactly.
        ((512, 512), "qwen2_5_vl", None, (504, 504)),
        ((512, 512), "qwen3_vl", None, (512, 512)),
        # 100 / 28 = 3.6 and 300 / 28 = 10.7: 4 and 11.
        ((100, 300), "qwen2_5_vl", None, (112, 308)),
        # Halves go to the even neighbour: 1.5 to 2, 2.5 to 2.
        ((42, 70), "qwen2_vl", None, (56, 56)),
        # A phone's screen, as published for the checkpoint's budget and for 1280 patches.
        ((1290, 2796), "qwen2_5_vl", None, (1288, 2800)),
        ((1290, 2796), "qwen2_5_vl", 1_003_520, (672, 1456)),
        # sqrt(3136 / 100) = 5.6 times as large: 56 x 56.
        ((10, 10), "qwen2_5_vl", None, (56, 56)),
        # sqrt(65536 / 10000) = 2.56 times: 256 x 256.
        ((100, 100), "qwen3_vl", None, (256, 256)),
        # 1 x 200 at sqrt(3136 / 200) = 3.96 times: 4 and 792, of 28 each 1 and 29.
        ((1, 200), "qwen2_5_vl", None, (28, 812)),
        # No family: 2000 x 1000 at sqrt(500000 / 2000000) = 1/2.
        ((2000, 1000), None, 500_000, (1000, 500)),
        ((2000, 1000), None, 499_999, (999, 499)),
        ((2000, 1000), None, 2_000_000, (2000, 1000)),
        ((1, 90_000), None, None, (1, 90_000)),
    ],
)
def test_sizes_by_hand(size: Size, family: str | None, most: int | None, expected: Size) -> None:
    """Multiples of the family's factor inside the budget, each side as near as it can be."""
    assert fitted(size, family=family, max_pixels=most) == expected


def test_a_shape_that_rounding_makes_too_long_is_refused() -> None:
    """29 x 5615 is 194 times as high as wide, 28 x 5628 is 201: the server would refuse it."""
    with pytest.raises(ImageError, match="29 x 5615 pixels has one side more than 200 times"):
        fitted((29, 5615), family="qwen2_5_vl")


@given(SIZES, st.fixed_dictionaries(ASKED))
def test_a_fitted_size_is_left_alone(size: Size, asked: dict[str, Any]) -> None:
    """Whoever applies the rule again, with the same budget or a wider one, changes nothing."""
    once = _fitted(size, asked)
    assert fitted(once, **asked) == once
    wider = {"family": asked["family"], "min_pixels": 1, "max_pixels": 10**9}
    assert fitted(once, **wider) == once


@given(SIZES, st.fixed_dictionaries(ASKED))
def test_a_fitted_size_keeps_the_rule(size: Size, asked: dict[str, Any]) -> None:
    """Both sides are multiples of the factor, and their product is inside the budget."""
    own = FAMILIES[asked["family"]]
    width, height = _fitted(size, asked)
    assert width % own.factor == height % own.factor == 0
    least = asked["min_pixels"] or own.min_pixels
    assert least <= width * height <= (asked["max_pixels"] or own.max_pixels or 0)


@given(SIZES, st.fixed_dictionaries(ASKED))
def test_the_shape_is_kept_to_a_factor(size: Size, asked: dict[str, Any]) -> None:
    """One and the same stretch brings both sides to within a factor of where they end."""
    own = FAMILIES[asked["family"]]
    sent = _fitted(size, asked)
    area = size[0] * size[1]
    low, high = asked["min_pixels"] or own.min_pixels, asked["max_pixels"] or own.max_pixels
    stretches = (1.0, math.sqrt(low / area), math.sqrt((high or 0) / area))
    assert any(
        all(abs(side * by - to) <= own.factor for side, to in zip(size, sent, strict=True))
        for by in stretches
    )


@given(SIZES, st.fixed_dictionaries(ASKED))
def test_turning_an_image_turns_its_size(size: Size, asked: dict[str, Any]) -> None:
    """Width and height are treated alike."""
    upright = _fitted(size, asked)
    assert fitted(size[::-1], **asked) == upright[::-1]


@pytest.mark.models
@given(SIZES, st.fixed_dictionaries(ASKED))
def test_the_rule_is_that_of_transformers(size: Size, asked: dict[str, Any]) -> None:
    """Where its answer is inside the budget and one that it takes again, ours is the same.

    Else ours is an error.
    """
    smart_resize = _processors().smart_resize
    own = FAMILIES[asked["family"]]
    least, most = asked["min_pixels"] or own.min_pixels, asked["max_pixels"] or own.max_pixels
    assume(own.factor**2 <= most >= least)
    height, width = smart_resize(size[1], size[0], own.factor, least, most)
    is_taken_again = max(width, height) <= 200 * min(width, height)
    if least <= width * height <= most and is_taken_again:
        assert fitted(size, **asked) == (width, height)
    else:
        with pytest.raises(ImageError):
            fitted(size, **asked)


@pytest.mark.models
@pytest.mark.parametrize("size", [(250, 333), (1290, 2796), (20, 30)])
def test_a_sent_image_is_what_the_processor_would_make(tmp_path: Path, size: Size) -> None:
    """Its own resize of the original, and none of ours, give the model the same numbers."""
    noise = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    budget = {"shortest_edge": 3136, "longest_edge": 200_704}
    processor = _processors().Qwen2VLImageProcessorPil(size=budget)
    sent = sent_image(tmp_path / "a.png", family="qwen2_5_vl", max_pixels=200_704)
    ours = processor(images=[sent.image], do_resize=False, return_tensors="np")
    theirs = processor(images=[Image.fromarray(noise)], return_tensors="np")
    np.testing.assert_array_equal(ours["image_grid_thw"], theirs["image_grid_thw"])
    np.testing.assert_allclose(ours["pixel_values"], theirs["pixel_values"], atol=1e-6)


@pytest.mark.parametrize(("size", "family"), [((201, 1), "qwen2_5_vl"), ((28, 5601), "qwen3_vl")])
def test_an_image_that_is_all_length_is_refused(size: Size, family: str) -> None:
    """One side above 200 times the other is beyond the families' rule; exactly 200 is not."""
    with pytest.raises(ImageError) as caught:
        fitted(size, family=family)
    assert str(caught.value) == (
        f"an image of {size[0]} x {size[1]} pixels has one side more than 200 times the other: "
        "crop it"
    )
    assert fitted((5600, 28), family="qwen2_5_vl") == (5600, 28)


def test_a_budget_that_a_shape_cannot_meet_is_told() -> None:
    """A strip one patch high and 200 long has 156,800 pixels at least: 100,000 do not hold it."""
    with pytest.raises(ImageError) as caught:
        fitted((5600, 28), family="qwen2_5_vl", max_pixels=100_000)
    assert str(caught.value) == (
        "an image of 5600 x 28 pixels has no size between min_pixels 3136 and max_pixels 100000 "
        "in steps of 28: allow a wider range"
    )


@given(SIZES, SIZES, st.tuples(*[st.floats(-100, 12_100)] * 4))
def test_coordinates_map_back_exactly(
    original: Size, sent: Size, box: tuple[float, float, float, float]
) -> None:
    """Each axis by its own ratio, to the last digits of a float; outside stays outside."""
    image = SentImage(Image.new("1", sent), original)
    across, down = (Fraction(o, s) for o, s in zip(original, sent, strict=True))
    exact = [Fraction(box[0]) * across, Fraction(box[1]) * down]
    exact += [Fraction(box[2]) * across, Fraction(box[3]) * down]
    assert image.to_original(box) == pytest.approx([float(x) for x in exact], rel=1e-15)
    assert image.to_original_point(box[:2]) == image.to_original(box)[:2]
    assert image.scale == pytest.approx((float(across), float(down)), rel=1e-15)


@given(SIZES, SIZES)
def test_the_whole_image_maps_to_the_whole_image(original: Size, sent: Size) -> None:
    """Its far corner is the far corner, without a rounding error."""
    image = SentImage(Image.new("1", sent), original)
    assert image.to_original((0, 0, *sent)) == (0, 0, *original)


def test_a_drawn_mark_is_found_again(tmp_path: Path) -> None:
    """A rectangle's corners, seen in the sent image, map to where it was drawn."""
    pixels = np.zeros((2796, 1290, 3), np.uint8)
    pixels[1398:2097, 258:774] = 255
    Image.fromarray(pixels).save(tmp_path / "a.png")
    sent = sent_image(tmp_path / "a.png", family="qwen2_5_vl", max_pixels=1_003_520)
    assert (sent.size, sent.original_size) == ((672, 1456), (1290, 2796))
    rows, columns = np.nonzero(np.asarray(sent.image)[..., 0] > 127)
    seen = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    assert sent.to_original(seen) == pytest.approx((258, 1398, 774, 2097), abs=1.0)


def test_an_image_without_a_rule_is_sent_as_it_is(tmp_path: Path) -> None:
    """No family and no budget: not a pixel changes, whatever its shape."""
    noise = np.random.default_rng(1).integers(0, 256, (2, 900, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    sent = sent_image(tmp_path / "a.png", family=None)
    np.testing.assert_array_equal(np.asarray(sent.image), noise)
    assert sent.scale == (1.0, 1.0)


def test_coordinates_are_those_of_the_upright_image(tmp_path: Path) -> None:
    """A photo stored on its side is 100 wide and 300 high to those who look at it."""
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (300, 100)).save(tmp_path / "a.jpg", exif=exif)
    sent = sent_image(tmp_path / "a.jpg", family="qwen2_5_vl")
    assert (sent.original_size, sent.size) == ((100, 300), (112, 308))


def test_an_image_of_a_message_is_the_one_with_its_digest(tmp_path: Path) -> None:
    """Without a file, or with other bytes in it, there is no image to send."""
    path = tmp_path / "a.png"
    Image.new("RGB", (60, 60)).save(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert sent_reference(ImageRef(digest, path), family="qwen3_vl").size == (256, 256)
    with pytest.raises(ImageError, match="has changed on disk"):
        sent_reference(ImageRef("0" * 64, path), family=None)
    with pytest.raises(ImageError) as caught:
        sent_reference(ImageRef(digest), family=None)
    assert str(caught.value) == f"image {digest!r} has no file: run `collect` to fetch it"


def _processors() -> Any:
    name = "transformers.models.qwen2_vl.image_processing_pil_qwen2_vl"
    reason = "needs transformers: see `make test-vllm`"
    return pytest.importorskip(name, reason=reason, exc_type=ImportError)
