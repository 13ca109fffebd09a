"""Compare the faces of two sides: the best pair counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echo_hf.metrics.result import Unmeasured
from echo_hf.reasons import MetricReason

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Faces:
    """The faces of one picture.

    Attributes:
        boxes: Array [face, 4] of left, top, right, bottom, in pixels of the picture.
        embeddings: Array [face, dimension], of any length.
        failed: What the networks said where they failed on the picture; else empty.
    """

    boxes: NDArray[np.float32]
    embeddings: NDArray[np.float32]
    failed: str = ""


@dataclass(frozen=True, slots=True)
class FaceMatch:
    """The two faces of a sample that are most alike.

    Attributes:
        cosine: Of their embeddings, from -1 to 1.
        input: Which input the one is in; the first is 0.
        input_box: Where it is there: left, top, right, bottom in pixels.
        output_box: Where the other is in the output.
        input_faces: How many faces were found in all inputs together.
        output_faces: How many in the output.
    """

    cosine: float
    input: int
    input_box: Box
    output_box: Box
    input_faces: int
    output_faces: int


def best_match(inputs: Sequence[Faces], output: Faces) -> FaceMatch | Unmeasured:
    """The pair of a face in any input and a face in the output with the highest cosine.

    Args:
        inputs: The faces of each input.
        output: The faces of the output.

    Returns:
        The pair, the first of several that are equally alike; or why there is none. Where there
        are faces on neither side, the input's is said: no system could have kept one.

    Example:
        >>> box = np.zeros((1, 4), np.float32)
        >>> first = Faces(box, np.array([[3.0, 4.0]], np.float32))
        >>> second = Faces(box, np.array([[1.0, 0.0]], np.float32))
        >>> match = best_match([first], second)
        >>> round(match.cosine, 3)
        0.6
    """
    unmeasured = _unmeasured(inputs, output)
    if unmeasured:
        return unmeasured
    shown = [(at, faces) for at, faces in enumerate(inputs) if len(faces.boxes)]
    before = np.concatenate([_directions(faces.embeddings) for _, faces in shown])
    cosines = before @ _directions(output.embeddings).T
    if np.isnan(cosines).all():
        return Unmeasured(MetricReason.ZERO_NORM)
    face, other = np.unravel_index(np.nanargmax(cosines), cosines.shape)
    owners = [(at, box) for at, faces in shown for box in faces.boxes]
    owner, box = owners[face]
    return FaceMatch(
        cosine=float(np.clip(cosines[face, other], -1, 1)),
        input=owner,
        input_box=_box(box),
        output_box=_box(output.boxes[other]),
        input_faces=len(before),
        output_faces=len(output.boxes),
    )


def _unmeasured(inputs: Sequence[Faces], output: Faces) -> Unmeasured | None:
    names = [f"input {number}" for number in range(1, len(inputs) + 1)]
    for name, faces in zip([*names, "output"], [*inputs, output], strict=True):
        if faces.failed:
            return Unmeasured(MetricReason.MODEL_FAILED, detail=f"{name}: {faces.failed}")
        if not (np.isfinite(faces.boxes).all() and np.isfinite(faces.embeddings).all()):
            detail = f"{name}: a box or an embedding is not finite"
            return Unmeasured(MetricReason.MODEL_FAILED, detail=detail)
    if not any(len(faces.boxes) for faces in inputs):
        return Unmeasured(MetricReason.NO_FACE_IN_INPUT)
    if not len(output.boxes):
        return Unmeasured(MetricReason.NO_FACE_IN_OUTPUT)
    return None


def _directions(embeddings: NDArray[np.float32]) -> NDArray[np.float64]:
    """Embeddings of length 1, NaN where one has no direction."""
    lengths = np.linalg.norm(embeddings.astype(np.float64), axis=1, keepdims=True)
    usable = lengths > 0
    return np.where(usable, embeddings, np.nan) / np.where(usable, lengths, 1)


def _box(corners: NDArray[np.float32]) -> Box:
    left, top, right, bottom = (float(corner) for corner in corners)
    return left, top, right, bottom
