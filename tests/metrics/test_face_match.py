"""The best pair of faces, against a loop over all pairs, and how images are fed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.metrics.face_identity import FaceMatch, Faces, best_match, levels_of
from echo_hf.metrics.result import Unmeasured
from echo_hf.reasons import MetricReason
from tests.metrics.images_for_metrics import noise

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
    assert best_match(inputs, output) == Unmeasured(MetricReason(reason))  # type: ignore[call-arg]


def test_an_embedding_without_direction_is_passed_over() -> None:
    found = best_match([_faces([[0, 0], [0, 5]])], _faces([[0, 0], [0, -2]]))
    assert isinstance(found, FaceMatch)
    assert (found.cosine, found.input_box[0], found.output_box[0]) == (-1.0, 1.0, 1.0)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_the_networks_fail_on_is_named(number: float) -> None:
    fine, failed = _faces([[1, 2]]), Faces(NOBODY.boxes, NOBODY.embeddings, "error: too thin")
    odd = _faces([[1, 2], [number, 1]])
    lost = Faces(np.full((1, 4), number, np.float32), fine.embeddings)
    for inputs, output, said in (
        ([NOBODY, failed], NOBODY, "input 2: error: too thin"),
        ([fine], failed, "output: error: too thin"),
        ([fine, odd], fine, "input 2: a box or an embedding is not finite"),
        ([fine], odd, "output: a box or an embedding is not finite"),
        ([lost], fine, "input 1: a box or an embedding is not finite"),
    ):
        assert best_match(inputs, output) == Unmeasured(MetricReason.MODEL_FAILED, detail=said)


def test_channels_are_fed_as_the_protocol_has_them() -> None:
    image = noise(3)
    corrected, published = (levels_of(image, name) for name in ("corrected", "published"))
    np.testing.assert_array_equal(published.levels, np.asarray(image))
    for channel in range(3):
        np.testing.assert_array_equal(
            corrected.levels[..., channel], np.asarray(image)[..., 2 - channel]
        )
    assert corrected.levels.flags.c_contiguous


def test_images_are_known_by_what_is_fed() -> None:
    row, column = Image.new("RGB", (6, 2), "red"), Image.new("RGB", (2, 6), "red")
    grey = Image.new("RGB", (6, 2), (7, 7, 7))
    assert levels_of(row, "corrected").digest == levels_of(row.copy(), "corrected").digest
    assert levels_of(row, "corrected").digest != levels_of(column, "corrected").digest
    assert levels_of(row, "corrected").digest != levels_of(row, "published").digest
    assert levels_of(grey, "corrected").digest == levels_of(grey, "published").digest
