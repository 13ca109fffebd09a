"""How images are fed, and what becomes of a cosine."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from echo_hf.metrics.face_identity import levels_of, score_of
from echo_hf.metrics.face_reader import FaceMatch
from echo_hf.metrics.result import Unmeasured
from echo_hf.reasons import MetricReason
from tests.metrics.images_for_metrics import noise

HERE = (0.0, 0.0, 1.0, 1.0)


def test_channels_are_fed_as_the_protocol_has_them() -> None:
    """Blue first, as the networks expect it, or as they are; in one piece."""
    image = noise(3)
    corrected, published = (levels_of(image, name) for name in ("corrected", "published"))
    np.testing.assert_array_equal(published.levels, np.asarray(image))
    for channel in range(3):
        np.testing.assert_array_equal(
            corrected.levels[..., channel], np.asarray(image)[..., 2 - channel]
        )
    assert corrected.levels.flags.c_contiguous


def test_images_are_known_by_what_is_fed() -> None:
    """Equal ones are one; another shape of the same numbers and another order are not."""
    row, column = Image.new("RGB", (6, 2), "red"), Image.new("RGB", (2, 6), "red")
    grey = Image.new("RGB", (6, 2), (7, 7, 7))
    assert levels_of(row, "corrected").digest == levels_of(row.copy(), "corrected").digest
    assert levels_of(row, "corrected").digest != levels_of(column, "corrected").digest
    assert levels_of(row, "corrected").digest != levels_of(row, "published").digest
    assert levels_of(grey, "corrected").digest == levels_of(grey, "published").digest


@pytest.mark.parametrize("cosine", [-1.0, -0.2, 0.0])
def test_the_released_code_drops_what_is_not_above_zero(cosine: float) -> None:
    """And nothing else does."""
    pair = FaceMatch(cosine, 0, HERE, HERE, 1, 1)
    dropped = score_of(pair, "published")
    assert isinstance(dropped, Unmeasured)
    assert dropped.reason == MetricReason.NOT_ABOVE_ZERO
    assert score_of(pair, "corrected") == cosine


def test_a_reason_stays_and_so_does_a_likeness() -> None:
    """Under both protocols."""
    nobody = Unmeasured(MetricReason.NO_FACE_IN_OUTPUT)
    pair = FaceMatch(0.001, 0, HERE, HERE, 1, 1)
    assert {score_of(nobody, name) for name in ("corrected", "published")} == {nobody}
    assert {score_of(pair, name) for name in ("corrected", "published")} == {0.001}
