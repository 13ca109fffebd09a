"""The rules of the structure distance that need no network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from echo_hf.errors import ScoreError
from echo_hf.metrics import StructureDistance
from echo_hf.metrics.structure_distance import resized, squared_difference
from tests.metrics.images_for_metrics import noise

COSINES = arrays(np.float32, (4, 4), elements=st.floats(-1, 1, width=32))


@given(COSINES, COSINES)
def test_the_difference_is_the_mean_of_squares(one: Any, other: Any) -> None:
    squares = [(float(a) - float(b)) ** 2 for a, b in zip(one.flat, other.flat, strict=True)]
    found = squared_difference(one, other)
    assert found == pytest.approx(sum(squares) / 16, abs=1e-6)
    assert found == squared_difference(other, one)
    assert squared_difference(one, one) == 0


@pytest.mark.parametrize(
    ("choices", "says"),
    [
        ({"protocol": "correct"}, "unknown protocol 'correct'; did you mean 'corrected'"),
        ({"reduction": "mini"}, "unknown reduction 'mini'; did you mean 'min'"),
        ({"layer": -1}, "layer is -1: expected a whole number from 0"),
        ({"layer": "11"}, "layer is '11': expected a whole number from 0"),
        ({"size": 0}, "size is 0: expected a whole number from 1"),
        ({"batch_size": 2.5}, "batch_size is 2.5: expected a whole number from 1"),
    ],
)
def test_wrong_choices_are_told(choices: dict[str, Any], says: str) -> None:
    with pytest.raises(ScoreError) as caught:
        StructureDistance(**choices)
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


def test_whole_multiples_are_weighted_by_distance() -> None:
    row = np.repeat(np.array([[0, 0, 80, 160]], np.uint8), 4, axis=0)
    image = Image.fromarray(row).convert("RGB")
    # Weights 3, 3, 1 of the three that are there: the one before the edge is not.
    left, right = (3 * 0 + 3 * 0 + 1 * 80) / 7, (1 * 0 + 3 * 80 + 3 * 160) / 7
    found = resized(image, 2).pixels
    assert found.shape == (2, 2, 3)
    assert found.dtype == np.uint8
    assert found[0, :, 0] == pytest.approx([left, right], abs=0.5)


def test_equal_squares_share_a_digest_and_others_do_not() -> None:
    small = noise(1, size=(16, 16))
    assert resized(small, 16).digest == resized(small.copy(), 16).digest
    changed = np.array(small)
    changed[0, 0, 0] ^= 1
    assert resized(Image.fromarray(changed), 16).digest != resized(small, 16).digest


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"layer": 5}, "layer is 11 there and 5 here: expected the same"),
        ({"size": 448}, "size is 224 there and 448 here: expected the same"),
        ({"model": "mine/own"}, "model is 'facebook/dino-vits16' there and 'mine/own' here"),
        ({"revision": "v2"}, "revision is None there and 'v2' here: expected the same"),
    ],
)
def test_parts_of_other_options_do_not_merge_before_loading(
    options: dict[str, Any], says: str
) -> None:
    with pytest.raises(ScoreError, match=says):
        StructureDistance(**options).merge(StructureDistance())
