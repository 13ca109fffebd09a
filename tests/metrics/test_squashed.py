"""Images as squares, and the digest that tells equal ones."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from echo_hf.metrics.self_similarity import resized
from tests.metrics.images_for_metrics import noise


def test_whole_multiples_are_weighted_by_distance() -> None:
    """Made half as large, a level is the triangle-weighted mean of four, by hand."""
    row = np.repeat(np.array([[0, 0, 80, 160]], np.uint8), 4, axis=0)
    image = Image.fromarray(row).convert("RGB")
    # Weights 3, 3, 1 of the three that are there: the one before the edge is not.
    left, right = (3 * 0 + 3 * 0 + 1 * 80) / 7, (1 * 0 + 3 * 80 + 3 * 160) / 7
    found = resized(image, 2).pixels
    assert found.shape == (2, 2, 3)
    assert found.dtype == np.uint8
    assert found[0, :, 0] == pytest.approx([left, right], abs=0.5)


@pytest.mark.parametrize("size", [(7, 90), (90, 7), (16, 16), (2, 2)])
def test_every_shape_becomes_the_same_square(size: tuple[int, int]) -> None:
    """Longer, wider or smaller than the square."""
    assert resized(noise(0, size=size), 16).pixels.shape == (16, 16, 3)


def test_equal_squares_share_a_digest_and_others_do_not() -> None:
    """However they came to be equal."""
    small = noise(1, size=(16, 16))
    assert resized(small, 16).digest == resized(small.copy(), 16).digest
    changed = np.array(small)
    changed[0, 0, 0] ^= 1
    assert resized(Image.fromarray(changed), 16).digest != resized(small, 16).digest
