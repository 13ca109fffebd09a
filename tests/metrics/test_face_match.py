"""The best pair of faces, against a loop over all pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.metrics.face_reader import FaceMatch, Faces, best_match
from echo_hf.metrics.result import Unmeasured
from echo_hf.reasons import MetricReason

NUMBERS = st.integers(-9, 9).map(float)
VECTORS = st.lists(st.lists(NUMBERS, min_size=3, max_size=3).filter(any), max_size=4)
NOBODY = Faces(np.empty((0, 4), np.float32), np.empty((0, 0), np.float32))


def _faces(vectors: list[list[float]], failed: str = "") -> Faces:
    boxes = [[at, 0, at + 1, 1] for at in range(len(vectors))]
    return Faces(np.array(boxes, np.float32), np.array(vectors, np.float32), failed)


def _cosine(one: list[float], other: list[float]) -> float:
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / (math.hypot(*one) * math.hypot(*other))


@given(st.lists(VECTORS, min_size=1, max_size=3), VECTORS)
def test_the_highest_cosine_of_all_pairs_counts(
    inputs: list[list[list[float]]], output: list[list[float]]
) -> None:
    """Over faces of every input, empty ones among them; boxes and counts belong to the pair."""
    found = best_match([_faces(one) if one else NOBODY for one in inputs], _faces(output))
    pairs = [
        (_cosine(face, other), number, at, there)
        for number, one in enumerate(inputs)
        for at, face in enumerate(one)
        for there, other in enumerate(output)
    ]
    if not pairs:
        assert isinstance(found, Unmeasured)
        return
    assert isinstance(found, FaceMatch)
    assert found.cosine == pytest.approx(max(pairs)[0], abs=1e-9)
    chosen = found.input, int(found.input_box[0]), int(found.output_box[0])
    assert {pair[1:]: pair[0] for pair in pairs}[chosen] == pytest.approx(found.cosine)
    assert found.input_faces == sum(map(len, inputs))
    assert found.output_faces == len(output)


@given(st.lists(VECTORS.filter(bool), min_size=1, max_size=2), VECTORS.filter(bool), st.data())
def test_the_length_of_an_embedding_does_not_count(
    inputs: list[list[list[float]]], output: list[list[float]], data: st.DataObject
) -> None:
    """Nor which side is which, where there is one input."""
    times = data.draw(st.sampled_from([0.25, 3.0, 1000.0]))
    longer = [[number * times for number in vector] for vector in output]
    there, back = (
        best_match(*sides)
        for sides in (
            ([_faces(inputs[0])], _faces(longer)),
            ([_faces(output)], _faces(inputs[0])),
        )
    )
    assert isinstance(there, FaceMatch)
    assert isinstance(back, FaceMatch)
    assert there.cosine == pytest.approx(back.cosine, abs=1e-6)


@pytest.mark.parametrize(
    ("inputs", "output", "reason"),
    [
        ([NOBODY], NOBODY, "no_face_in_input"),
        ([NOBODY], _faces([[1, 2]]), "no_face_in_input"),
        ([NOBODY, _faces([[1, 2]])], NOBODY, "no_face_in_output"),
        ([_faces([[0, 0]])], _faces([[1, 2]]), "zero_norm"),
    ],
)
def test_without_two_faces_there_is_a_reason(
    inputs: list[Faces], output: Faces, reason: str
) -> None:
    """Where neither side has a face, the input's is said: no system could have kept one."""
    assert best_match(inputs, output) == Unmeasured(MetricReason(reason))  # type: ignore[call-arg]


def test_an_embedding_without_direction_is_passed_over() -> None:
    """The faces beside it count."""
    found = best_match([_faces([[0, 0], [0, 5]])], _faces([[0, 0], [0, -2]]))
    assert isinstance(found, FaceMatch)
    assert (found.cosine, found.input_box[0], found.output_box[0]) == (-1.0, 1.0, 1.0)


def test_what_the_networks_fail_on_is_named() -> None:
    """By the image and their own words, before anything else is said."""
    failed = Faces(NOBODY.boxes, NOBODY.embeddings, "error: too thin")
    for inputs, output, name in (
        ([NOBODY, failed], NOBODY, "input 2"),
        ([_faces([[1, 2]])], failed, "output"),
    ):
        expected = Unmeasured(MetricReason.MODEL_FAILED, detail=f"{name}: error: too thin")
        assert best_match(inputs, output) == expected


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_a_failure_of_the_networks(number: float) -> None:
    """Also of one face among others: the best pair might have been its own."""
    odd, fine = _faces([[1, 2], [number, 1]]), _faces([[1, 2]])
    lost = Faces(np.full((1, 4), number, np.float32), fine.embeddings)
    for inputs, output, name in (
        ([fine, odd], fine, "input 2"),
        ([fine], odd, "output"),
        ([lost], fine, "input 1"),
    ):
        detail = f"{name}: a box or an embedding is not finite"
        assert best_match(inputs, output) == Unmeasured(MetricReason.MODEL_FAILED, detail=detail)
