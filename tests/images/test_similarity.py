"""Tell re-encoded images from edited ones, and find similar ones among many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.images.similarity import (
    Contrasts,
    Means,
    SignatureIndex,
    compute_signature,
    has_same_details,
    is_same_shape,
    match_colors,
)
from tests.collect.images_like_posts import photograph

GREY = Image.new("RGB", (96, 64), (120, 120, 120))


def _same(one: Image.Image, other: Image.Image) -> bool:
    first, second = compute_signature(one), compute_signature(other)
    many = second.means[None], second.contrasts[None]
    return bool(match_colors(first.means, first.contrasts, *many)[0])


def test_a_signature_is_the_mean_and_spread_of_each_block() -> None:
    image = photograph(1, (256, 256))
    signature = compute_signature(image)
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
    white = Image.new("RGBA", (64, 64), (255, 255, 255, 255))
    clear = Image.new("RGBA", (64, 64), (255, 255, 255, 0))
    half = Image.new("RGBA", (64, 64), (9, 200, 80, 127))
    assert (compute_signature(clear).means[..., 3] == 0).all()
    assert compute_signature(half).means[0, 0, 3] == pytest.approx(127, abs=1)
    assert np.array_equal(
        compute_signature(clear).means[..., 0], compute_signature(white).means[..., 0]
    )
    assert not _same(white, clear)


def _with_block(image: Image.Image, step: int) -> Image.Image:
    levels = np.asarray(image).astype(int)
    levels[64:80, 32:48] += step
    return Image.fromarray(levels.clip(0, 255).astype(np.uint8))


FLAT = Image.new("RGB", (256, 256), (120, 120, 120))
STRIPES = np.zeros((256, 256, 3), np.uint8)
STRIPES[:, ::2] = 255  # which a step cannot make any brighter


@pytest.mark.parametrize(
    ("image", "step", "same"),
    [
        *((FLAT, step, same) for step, same in ((0, True), (1, True), (2, False), (-2, False))),
        (Image.fromarray(STRIPES), 20, True),
        (Image.fromarray(STRIPES), 28, False),
    ],
)
def test_a_flat_block_may_differ_by_less_than_two_levels_and_one_with_edges_by_more(
    image: Image.Image, step: int, same: bool
) -> None:
    assert _same(image, _with_block(image, step)) is same
    assert _same(_with_block(image, step), image) is same


@pytest.mark.parametrize(
    ("factor", "same"), [(0.99, True), (1.01, True), (0.98, False), (1.02, False)]
)
def test_a_whole_image_may_differ_by_a_level_and_a_half(factor: float, same: bool) -> None:
    random = np.random.default_rng(0)
    image = Image.fromarray(random.integers(60, 160, (256, 256, 3), dtype=np.uint8))
    brighter = image.point(lambda level: round(level * factor))  # around 110
    assert _same(image, brighter) is same


@pytest.mark.parametrize(("step", "same"), [(0, True), (6, True), (8, False), (-8, False)])
def test_eight_by_eight_pixels_may_differ_by_seven_levels(step: int, same: bool) -> None:
    for place in [(16, 8), (88, 56), (0, 0)]:
        for size in [(96, 64), (93, 61)]:
            image = GREY.crop((0, 0, *size))
            other = image.copy()
            other.paste((120 + step,) * 3, (*place, place[0] + 8, place[1] + 8))
            assert has_same_details(image, other) is same


@given(st.tuples(st.integers(40, 4000), st.integers(40, 4000)), st.floats(0.26, 1.0))
def test_a_scaled_image_has_the_shape_however_its_sides_were_rounded(
    size: tuple[int, int], factor: float
) -> None:
    for rounding in (round, int, math.ceil):
        small = rounding(size[0] * factor), rounding(size[1] * factor)
        if all(4 * few >= many for few, many in zip(small, size, strict=True)):
            assert is_same_shape(size, small)
            assert is_same_shape(small, size)


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
def test_a_cropped_a_squashed_and_a_tiny_image_have_another_shape(one: Any, other: Any) -> None:
    assert not is_same_shape(one, other)
    assert not is_same_shape(other, one)


def _signatures(seed: int, count: int, spread: float) -> tuple[Means, Contrasts]:
    random = np.random.default_rng(seed)
    families = random.normal([128, 0, 0, 0], 60, (max(1, count // 4), 1, 1, 4))
    means = families[random.integers(0, len(families), count)]
    means = means + random.normal(0, 20, (1, 16, 16, 4))
    # What is hardest to find differs as much as is allowed all over a cell.
    steps = random.choice([-1, 1], (count, 4, 4, 4)) * random.uniform(0, spread, (count, 1, 1, 1))
    means = means + steps.repeat(4, 1).repeat(4, 2)
    contrasts = random.gamma(0.5, 30, (count, 1, 1, 1)) * random.uniform(0.9, 1, (count, 16, 16, 4))
    return means.clip(-128, 255).astype(np.float16), contrasts.clip(0, 128).astype(np.uint8)


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([0.5, 1.0, 3.0, 8.0]))
def test_no_pair_with_the_same_colors_is_missed(seed: int, count: int, spread: float) -> None:
    means, contrasts = _signatures(seed, count, spread)
    index = SignatureIndex(means, contrasts)
    for one in range(count):
        same = np.flatnonzero(match_colors(means[one], contrasts[one], means, contrasts))
        near = index.find_near(one)
        assert set(same.tolist()) - {one} <= set(near)
        assert near == sorted(set(near) - {one})


@pytest.mark.parametrize("contrast", [0, 40])
def test_little_is_compared_in_vain(contrast: int) -> None:
    random = np.random.default_rng(0)
    cells = random.uniform([0, -60, -60, 255], [255, 60, 60, 255], (3000, 4, 4, 4))
    means = cells.repeat(4, 1).repeat(4, 2).astype(np.float16)
    index = SignatureIndex(means, np.full(means.shape, contrast, np.uint8))
    assert sum(len(index.find_near(one)) for one in range(300)) == 0
