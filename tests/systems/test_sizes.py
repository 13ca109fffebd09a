"""From the size that a config asks for to one that a model can draw."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.config.systems import FixedSize
from echo_hf.systems.images import chosen_size, nearest, read_size, within, written

SIDES = st.integers(1, 20_000)
MEGAPIXEL = 1024 * 1024


def _same(size: tuple[int, int]) -> tuple[int, int]:
    return size


def _turned(size: tuple[int, int]) -> tuple[int, int]:
    return size[::-1]


@pytest.mark.parametrize("first_input", [None, (640, 480)])
def test_auto_leaves_the_size_to_the_model(first_input: tuple[int, int] | None) -> None:
    """With and without inputs."""
    assert chosen_size("auto", first_input, _same) is None


def test_match_input_takes_the_shape_of_the_first_input() -> None:
    """As the model can draw it; without inputs the model chooses."""
    assert chosen_size("match_input", (640, 480), _turned) == (480, 640)
    assert chosen_size("match_input", None, _same) is None


def test_a_fixed_size_stands() -> None:
    """It is never brought nearer to what a model likes, whatever the inputs are."""
    fixed = FixedSize(width=1000, height=500)
    assert chosen_size(fixed, (640, 480), _turned) == (1000, 500)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1000, 1000), (1, 1)),
        ((1224, 1000), (1, 1)),  # the square root of 1.5, where both are equally far, is 1.2247
        ((1226, 1000), (3, 2)),
        ((1000, 1226), (2, 3)),
        ((9000, 10), (3, 2)),
    ],
)
def test_the_nearest_shape_is_nearest_in_the_logarithm(
    size: tuple[int, int], expected: tuple[int, int]
) -> None:
    """Between two ratios the border is their geometric mean."""
    assert nearest(size, [(3, 2), (1, 1), (2, 3)]) == expected


def test_of_one_shape_the_nearest_in_pixels_is_taken() -> None:
    """Then the first in the list."""
    assert nearest((900, 900), [(512, 512), (1024, 1024)]) == (1024, 1024)
    assert nearest((600, 600), [(1024, 1024), (512, 512)]) == (512, 512)
    assert nearest((10, 10), [(20, 5), (5, 20)]) == (20, 5)


@given(SIDES, SIDES)
def test_turning_the_image_turns_the_size(width: int, height: int) -> None:
    """No side is treated otherwise than the other."""
    assert within((height, width), MEGAPIXEL) == within((width, height), MEGAPIXEL)[::-1]
    choices = [(1, 1), (4, 3), (3, 4), (16, 9), (9, 16)]
    found = nearest((width, height), choices)
    assert nearest((height, width), [choice[::-1] for choice in choices]) == found[::-1]


# Buckets of a million pixels in steps of 64, as the report of SDXL lists them.
@pytest.mark.parametrize(
    "bucket", [(1024, 1024), (1152, 896), (1216, 832), (1344, 768), (1536, 640), (896, 1152)]
)
def test_published_sizes_are_found_by_their_shapes(bucket: tuple[int, int]) -> None:
    """Any image of that shape has that size, however large it is."""
    for times in (1, 3):
        assert within((bucket[0] * times, bucket[1] * times), MEGAPIXEL, 64) == bucket


@given(
    SIDES,
    SIDES,
    st.sampled_from([1, 8, 16, 28, 64]),
    st.integers(64 * 64, 9_000_000),
    st.sampled_from([1.0, 2.5, 3.0, math.inf]),
)
def test_a_size_is_always_inside_the_limits(
    width: int, height: int, multiple: int, most: int, longest: float
) -> None:
    """Multiples, no more pixels than allowed, and no longer than allowed."""
    size = within((width, height), most, multiple, longest)
    assert min(size) >= multiple
    assert [side % multiple for side in size] == [0, 0]
    assert size[0] * size[1] <= most
    assert max(size) <= longest * min(size)


@given(st.integers(300, 3000), st.integers(300, 3000))
def test_a_size_is_large_and_of_nearly_the_same_shape(width: int, height: int) -> None:
    """Within a step of 16 pixels of the exact answer, on each side."""
    ratio = max(width, height) / min(width, height)
    short = math.sqrt(MEGAPIXEL / ratio)
    size = within((width, height), MEGAPIXEL, 16)
    assert abs(min(size) - short) < 16
    assert abs(max(size) - min(size) * ratio) < 16 * ratio


@pytest.mark.parametrize("size", [(1, 1), (1536, 1024), (99_999, 16)])
def test_a_size_is_read_as_it_is_written(size: tuple[int, int]) -> None:
    """Width first."""
    assert read_size(written(size)) == size


@pytest.mark.parametrize("text", ["", "1024", "1024 x 1024", "0x5", "1024X1024", "1024x-5", "٣x٣"])
def test_what_is_no_size_is_told(text: str) -> None:
    """With the text and an example."""
    with pytest.raises(ValueError, match="is not a size: expected width and height such as"):
        read_size(text)
