"""What is no work of a system: sheets of one color, and outputs that stand for several tasks."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from PIL import Image

from echo_hf.metrics.samples import FLAT_LEVELS, is_flat, placeholders
from tests.images_for_tests import encoded

DIGESTS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y", ""])))


@given(
    arrays(np.uint8, st.tuples(st.integers(2, 40), st.integers(2, 40), st.just(3)),
           elements=st.integers(100, 104), fill=st.just(101))
)  # fmt: skip
def test_a_sheet_has_no_channel_with_levels_far_apart(levels: NDArray[np.uint8]) -> None:
    """All pixels count, not only those that are looked at first."""
    widest = max(int(one.max()) - int(one.min()) for one in np.moveaxis(levels, -1, 0))
    assert is_flat(Image.fromarray(levels)) == (widest <= FLAT_LEVELS)


@pytest.mark.parametrize("name", ["PNG", "JPEG", "WEBP", "AVIF"])
def test_a_sheet_stays_one_in_every_format(name: str) -> None:
    """Packing may change its color, and leaves it one color."""
    with Image.open(io.BytesIO(encoded(Image.new("RGB", (64, 48), (201, 99, 7)), name))) as shown:
        assert is_flat(shown.convert("RGB"))


def test_one_pixel_makes_an_image() -> None:
    """A dot on white is drawn by somebody."""
    image = Image.new("RGB", (501, 307), "white")
    image.putpixel((77, 199), (0, 0, 0))
    assert not is_flat(image)


@given(DIGESTS)
def test_placeholders_are_outputs_with_two_kinds_of_inputs(digests: list[tuple[str, str]]) -> None:
    """Each pair of samples is compared with each other."""
    expected = {
        at
        for at, (inputs, output) in enumerate(digests)
        if output and any(output == other and inputs != its for its, other in digests)
    }
    assert placeholders(digests) == expected
