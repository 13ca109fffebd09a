"""Samples with distances become a result, without a ViT."""

from __future__ import annotations

from functools import partial

import pytest

from echo_hf.metrics.image_features import SampleFeatures
from echo_hf.metrics.result import Unmeasured
from echo_hf.metrics.structure_distance import reduced, result_of
from echo_hf.reasons import MetricReason

MISSING = Unmeasured(MetricReason.MISSING_OUTPUT)
SAMPLES = [
    SampleFeatures((0.25, 0.5), None, None, ("a", "b")),
    SampleFeatures((), None, MISSING, ("c", "")),
    SampleFeatures((0.75,), None, None, ("d", "e")),
]


def test_the_value_is_the_mean_of_the_samples_that_have_one() -> None:
    """By hand; the others have a reason and no distances."""
    rule = partial(reduced, protocol="corrected", reduction="min")
    result = result_of(SAMPLES, rule, {}, n_boot=0, seed=0)
    assert result.value == pytest.approx((0.25 + 0.75) / 2)
    assert result.per_sample == (0.25, None, 0.75)
    assert result.per_input == ((0.25, 0.5), None, (0.75,))
    assert result.reasons == (None, MISSING, None)
    assert (result.n, result.coverage) == (2, pytest.approx(2 / 3))


def test_an_output_that_two_samples_share_has_no_distance() -> None:
    """What is screened over all samples is screened here."""
    shared = [SampleFeatures((0.5,), None, None, (name, "card")) for name in ("a", "b")]
    rule = partial(reduced, protocol="corrected", reduction="min")
    result = result_of(shared, rule, {}, n_boot=0, seed=0)
    assert result.counts == {MetricReason.PLACEHOLDER: 2}
    assert result.per_input == (None, None)
