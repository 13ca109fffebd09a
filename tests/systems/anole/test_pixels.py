"""An image as Chameleon's encoder sees it."""

from __future__ import annotations

import numpy as np
import pytest

from echo_hf.systems.anole_tokens import pixels
from tests.systems.tasks_for_tests import blocks
from tests.systems.tiny_anole import REASON

SIZES = [(512, 512), (640, 480), (333, 777), (40, 40), (1001, 513), (100, 900)]


@pytest.mark.extras
@pytest.mark.parametrize("size", SIZES)
def test_pixels_are_those_of_the_model_s_own_processor(size: tuple[int, int]) -> None:
    """Scaled, cut and shifted as transformers does it for Chameleon."""
    pytest.importorskip("transformers", reason=REASON, exc_type=ImportError)
    from transformers import ChameleonImageProcessorPil

    image = blocks(size, 3)
    expected = ChameleonImageProcessorPil()(image, return_tensors="np")["pixel_values"][0]
    found = pixels(image, 512)
    assert found.shape == (3, 512, 512)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_middle_is_seen() -> None:
    """Of an image twice as wide as high, neither the first nor the last quarter."""
    image = blocks((64, 32), 1)
    middle = image.crop((16, 0, 48, 32))
    np.testing.assert_array_equal(pixels(image, 32), pixels(middle, 32))
