"""The two looks that tell a re-encoded image from an edited one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.images.similarity import block_signature, same_colors, same_details, same_shape
from tests.collect.images_like_posts import photograph

GREY = Image.new("RGB", (96, 64), (120, 120, 120))


def _same(one: Image.Image, other: Image.Image) -> bool:
    first, second = block_signature(one), block_signature(other)
    many = second.means[None], second.contrasts[None]
    return bool(same_colors(first.means, first.contrasts, *many)[0])


def test_a_signature_is_the_mean_and_spread_of_each_block() -> None:
    """At 256 pixels a side nothing is scaled: the numbers are those of the pixels."""
    image = photograph(1, (256, 256))
    signature = block_signature(image)
    red, green, blue = np.moveaxis(np.asarray(image, np.float64), -1, 0)
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    channels = [luma, (blue - luma) * 0.564334, (red - luma) * 0.713267]  # ITU-R BT.601
    assert signature.size == (256, 256)
    for row, column in [(0, 0), (3, 9), (15, 15)]:
        for channel, levels in enumerate(channels):
            block = levels[row * 16 : row * 16 + 16, column * 16 : column * 16 + 16]
            assert signature.means[row, column, channel] == pytest.approx(block.mean(), abs=0.07)
            assert abs(signature.contrasts[row, column, channel] - block.std()) <= 0.51
    assert (signature.means[..., 3] == 255).all()
    assert not signature.contrasts[..., 3].any()


def test_opacity_is_a_channel_of_its_own() -> None:
    """White and transparent look alike on a white page, and are not the same image."""
    white = Image.new("RGBA", (64, 64), (255, 255, 255, 255))
    clear = Image.new("RGBA", (64, 64), (255, 255, 255, 0))
    half = Image.new("RGBA", (64, 64), (9, 200, 80, 127))
    assert (block_signature(clear).means[..., 3] == 0).all()
    assert block_signature(half).means[0, 0, 3] == pytest.approx(127, abs=1)
    assert np.array_equal(
        block_signature(clear).means[..., 0], block_signature(white).means[..., 0]
    )
    assert not _same(white, clear)


def _with_block(image: Image.Image, step: int) -> Image.Image:
    """The image with one of its blocks of 16 pixels brighter or darker."""
    levels = np.asarray(image).astype(int)
    levels[64:80, 32:48] += step
    return Image.fromarray(levels.clip(0, 255).astype(np.uint8))


@pytest.mark.parametrize(("step", "same"), [(0, True), (1, True), (2, False), (-2, False)])
def test_a_flat_block_may_differ_by_less_than_two_levels(step: int, same: bool) -> None:
    """One block of 256 decides, whatever the rest is."""
    grey = Image.new("RGB", (256, 256), (120, 120, 120))
    assert _same(grey, _with_block(grey, step)) is same
    assert _same(_with_block(grey, step), grey) is same


@pytest.mark.parametrize(("step", "same"), [(20, True), (28, False)])
def test_a_block_with_edges_may_differ_by_more(step: int, same: bool) -> None:
    """By 0.08 of its spread: where black meets white that is 10 levels, half of the step here."""
    stripes = np.zeros((256, 256, 3), np.uint8)
    stripes[:, ::2] = 255  # which the step cannot make any brighter
    image = Image.fromarray(stripes)
    assert _same(image, _with_block(image, step)) is same


@pytest.mark.parametrize(
    ("factor", "same"), [(0.99, True), (1.01, True), (0.98, False), (1.02, False)]
)
def test_a_whole_image_may_differ_by_a_level_and_a_half(factor: float, same: bool) -> None:
    """Though each of its blocks, full of edges, might differ by more."""
    random = np.random.default_rng(0)
    image = Image.fromarray(random.integers(60, 160, (256, 256, 3), dtype=np.uint8))
    brighter = image.point(lambda level: round(level * factor))  # around 110
    assert _same(image, brighter) is same


@pytest.mark.parametrize(("step", "same"), [(0, True), (6, True), (8, False), (-8, False)])
def test_eight_by_eight_pixels_may_differ_by_seven_levels(step: int, same: bool) -> None:
    """In a flat place, and also in the part of a block at the right and lower border."""
    for place in [(16, 8), (88, 56), (0, 0)]:
        for size in [(96, 64), (93, 61)]:
            image = GREY.crop((0, 0, *size))
            other = image.copy()
            other.paste((120 + step,) * 3, (*place, place[0] + 8, place[1] + 8))
            assert same_details(image, other) is same


def test_details_are_compared_at_the_smaller_size() -> None:
    """What a scaled copy cannot show does not count against it, and its order does not matter."""
    image = photograph(2)
    for factor in (2, 3):
        small = image.resize((480 // factor, 360 // factor), Image.Resampling.LANCZOS)
        assert same_details(image, small)
        assert same_details(small, image)
    assert not same_details(image, photograph(3))


@given(
    st.tuples(st.integers(40, 4000), st.integers(40, 4000)),
    st.floats(0.26, 1.0),
    st.sampled_from([round, int, lambda side: -int(-side // 1)]),
)
def test_a_scaled_image_has_the_shape_however_its_sides_were_rounded(
    size: tuple[int, int], factor: float, rounding: object
) -> None:
    """Up, down or to the nearest, in both directions."""
    assert callable(rounding)
    small = int(rounding(size[0] * factor)), int(rounding(size[1] * factor))
    if all(4 * few >= many for few, many in zip(small, size, strict=True)):
        assert same_shape(size, small)
        assert same_shape(small, size)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1024, 1024), (1024, 1536)),
        ((336, 336), (384, 216)),
        ((1000, 1000), (1000, 990)),
        ((1024, 683), (683, 1024)),
        ((2048, 2048), (500, 500)),
    ],
)
def test_a_cropped_a_squashed_and_a_tiny_image_have_another_shape(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    """A change of shape is an edit, and an icon shows too little to tell."""
    assert not same_shape(one, other)
    assert not same_shape(other, one)
