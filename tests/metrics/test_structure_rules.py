"""Distances from self-similarities, and what the protocols make of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from echo_hf.errors import ScoreError
from echo_hf.metrics.image_features import SampleFeatures
from echo_hf.metrics.result import Unmeasured
from echo_hf.metrics.samples import LOADERS
from echo_hf.metrics.self_similarity import Squashed
from echo_hf.metrics.structure_distance import (
    REDUCTIONS,
    RULES,
    check_choices,
    distanced,
    failed_of,
    reduced,
    squared_difference,
)
from echo_hf.reasons import MetricReason

COSINES = arrays(np.float32, (4, 4), elements=st.floats(-1, 1, width=32))


@given(COSINES, COSINES)
def test_the_difference_is_the_mean_of_squares(one: Any, other: Any) -> None:
    """As summed number by number; the same both ways, and 0 from itself."""
    squares = [(float(a) - float(b)) ** 2 for a, b in zip(one.flat, other.flat, strict=True)]
    found = squared_difference(one, other)
    assert found == pytest.approx(sum(squares) / 16, abs=1e-6)
    assert found == squared_difference(other, one)
    assert squared_difference(one, one) == 0


def test_opposite_images_are_as_far_as_can_be() -> None:
    """All places alike on one side, all opposite on the other."""
    alike = np.ones((3, 3), np.float32)
    assert squared_difference(alike, -alike) == 4


@pytest.mark.parametrize(("name", "expected"), [("min", 0.1), ("max", 0.6), ("mean", 0.3)])
def test_reductions_are_what_they_are_called(name: Any, expected: float) -> None:
    """Of three distances."""
    assert reduced([0.2, 0.6, 0.1], None, "corrected", name) == (pytest.approx(expected), None)


def test_a_reason_stays_whatever_the_distances() -> None:
    """A placeholder has distances, and they do not count."""
    why = Unmeasured(MetricReason.PLACEHOLDER)
    assert reduced([0.2], why, "corrected", "min") == (None, why)
    assert reduced([], why, "published", "max") == (None, why)


def test_zero_is_missing_as_published_only() -> None:
    """And the smallest distance above it is none."""
    assert reduced([0.0], None, "corrected", "min") == (0, None)
    value, reason = reduced([0.0, 0.0], None, "published", "max")
    assert value is None
    assert reason == Unmeasured(MetricReason.ZERO_DISTANCE)
    assert reduced([0.0, 1e-12], None, "published", "max") == (1e-12, None)


def test_each_protocol_has_a_rule() -> None:
    """With a reduction that there is."""
    assert set(RULES) == set(LOADERS)
    assert {rule.reduction for rule in RULES.values()} <= set(REDUCTIONS)


def test_a_sample_has_the_distance_from_each_of_its_inputs() -> None:
    """By hand, of tables that are looked up by digest; none where it is not measured."""
    pixels = np.zeros((1, 1, 3), np.uint8)
    first, second, made = (Squashed(pixels, name) for name in (b"a", b"b", b"c"))
    found = {b"a": np.eye(2), b"b": np.zeros((2, 2)), b"c": np.ones((2, 2))}
    tables = {name: table.astype(np.float32) for name, table in found.items()}
    sample = SampleFeatures((first, second), made, None, ("in", "out"))
    assert distanced(sample, tables) == SampleFeatures((0.5, 1.0), None, None, ("in", "out"))
    why = Unmeasured(MetricReason.BAD_INPUT)
    assert distanced(SampleFeatures((), made, why, ("", "out")), tables).unmeasured == why
    tables[b"b"][0, 0] = math.nan
    failed = distanced(sample, tables).unmeasured
    assert failed is not None
    assert failed.reason == MetricReason.MODEL_FAILED


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_distance_that_is_not_finite_is_a_failure_of_the_model(number: float) -> None:
    """Also one of several, whichever of them would have counted."""
    detail = f"the distance from input 2 is {number}"
    failed = Unmeasured(MetricReason.MODEL_FAILED, detail=detail)
    assert failed_of([0.5, number, number]) == failed
    assert failed_of([0.5, 0.0]) is failed_of([]) is None


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
    """In one line, with the value."""
    given_ = {"protocol": "corrected", "reduction": None, **choices}
    with pytest.raises(ScoreError) as caught:
        check_choices(**given_)
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


def test_right_choices_pass() -> None:
    """The least that each may be."""
    check_choices("published", "mean", layer=0, size=1, batch_size=1)
