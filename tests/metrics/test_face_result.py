"""Samples with pairs of faces become a result, without a network."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from echo_hf.metrics.face_identity import Found, result_of, score_of
from echo_hf.metrics.face_reader import FaceMatch
from echo_hf.metrics.image_features import SampleFeatures
from echo_hf.metrics.result import Unmeasured
from echo_hf.reasons import MetricReason

BOX = (0.0, 0.0, 1.0, 1.0)
LOST = Unmeasured(MetricReason.NO_FACE_IN_OUTPUT)


def _pair(cosine: float) -> FaceMatch:
    return FaceMatch(cosine, 0, BOX, BOX, 1, 1)


def _samples(*found: Found) -> list[SampleFeatures[Found]]:
    return [
        SampleFeatures((), one, None, (f"in {at}", f"out {at}")) for at, one in enumerate(found)
    ]


@pytest.mark.parametrize(
    ("protocol", "value", "n", "reasons"),
    [
        ("corrected", (0.75 - 0.25) / 2, 2, [None, "no_face_in_output", None]),
        ("published", 0.75, 1, [None, "no_face_in_output", "not_above_zero"]),
    ],
)
def test_the_value_is_the_mean_by_the_protocol(
    protocol: Any, value: float, n: int, reasons: list[str | None]
) -> None:
    """By hand; a pair that is dropped is still told."""
    samples = _samples(_pair(0.75), LOST, _pair(-0.25))
    result = result_of(samples, partial(score_of, protocol=protocol), {}, n_boot=0, seed=0)
    assert (result.value, result.n) == (pytest.approx(value), n)
    assert result.coverage == pytest.approx(n / 3)
    assert [one and one.reason.value for one in result.reasons] == reasons
    assert result.matches == (_pair(0.75), None, _pair(-0.25))


def test_an_output_that_two_samples_share_has_no_number() -> None:
    """What is screened over all samples is screened here."""
    shared: list[SampleFeatures[Found]] = [
        SampleFeatures((), _pair(1.0), None, (name, "card")) for name in "ab"
    ]
    result = result_of(shared, partial(score_of, protocol="corrected"), {}, n_boot=0, seed=0)
    assert result.counts == {MetricReason.PLACEHOLDER: 2}
    assert (result.value, result.matches) == (None, (None, None))
