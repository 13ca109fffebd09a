"""What becomes of one sample's pictures: two faces that are alike, a number, or a reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from xxhash import xxh3_128

from echo_hf.metrics.face_cache import FaceCache
from echo_hf.metrics.face_match import FaceMatch, Faces, best_match
from echo_hf.metrics.face_reader import FaceReader
from echo_hf.metrics.loading import Protocol
from echo_hf.metrics.result import Unmeasured
from echo_hf.metrics.seen import Seen
from echo_hf.reasons import MetricReason

Found = FaceMatch | Unmeasured
# The shortest and the longest side of a picture that the released code takes, in pixels.
PUBLISHED_SIDES = (10, 10_000)


class FaceRule(NamedTuple):
    """What the protocols differ in, in words."""

    loader: str
    channels: str
    inputs: str
    value: str


RULES: Mapping[Protocol, FaceRule] = {
    "published": FaceRule(
        "plain conversion to RGB",
        "red, green, blue",
        "samples with one",
        "mean over samples of the best cosine, of those above 0",
    ),
    "corrected": FaceRule(
        "echo_hf.load_rgb",
        "blue, green, red",
        "all",
        "mean over samples of the best cosine",
    ),
}


class Levels(NamedTuple):
    """A picture as it is fed to the networks.

    Attributes:
        levels: Array [row, column, channel].
        digest: Of the levels and their shape; equal ones have the same.
    """

    levels: NDArray[np.uint8]
    digest: bytes


def levels_of(picture: Image.Image, protocol: Protocol) -> Levels:
    """A picture's levels in the order of channels of the protocol.

    Args:
        picture: In mode RGB.
        protocol: The networks swap the channels of what they are given: `corrected` gives them
            blue first, so that they see red first, as they were trained; `published` does not.

    Returns:
        The levels.

    Example:
        >>> orange = Image.new("RGB", (2, 2), (255, 128, 0))
        >>> levels_of(orange, "corrected").levels[0, 0].tolist()
        [0, 128, 255]
    """
    levels = np.asarray(picture)
    fed = np.ascontiguousarray(levels if protocol == "published" else levels[..., ::-1])
    return Levels(fed, xxh3_128(f"{fed.shape}".encode() + fed.tobytes()).digest())


def compared(
    sample: Seen[Levels], reader: FaceReader, cache: FaceCache, protocol: Protocol
) -> Seen[Found]:
    """Finds the faces of a sample, and the two that are most alike.

    Args:
        sample: Its pictures.
        reader: The networks.
        cache: Holds the faces of inputs that were looked at before.
        protocol: `corrected` or `published`.

    Returns:
        The sample without its pictures, with the pair or the reason as its output.
    """
    if sample.output is None or sample.unmeasured:
        return sample.measured(None)
    dropped = _dropped(sample) if protocol == "published" else None
    if dropped:
        return sample.measured(dropped)
    inputs = [_kept_faces(one, reader, cache) for one in sample.inputs]
    return sample.measured(best_match(inputs, reader.faces(sample.output.levels)))


def score_of(found: Found, protocol: Protocol) -> float | Unmeasured:
    """The number of a sample.

    Args:
        found: Its best pair, or why there is none.
        protocol: `corrected` or `published`.

    Returns:
        The cosine, or why there is no number.

    Example:
        >>> here = (0.0, 0.0, 1.0, 1.0)
        >>> pair = FaceMatch(-0.25, 0, here, here, 1, 1)
        >>> score_of(pair, "corrected"), score_of(pair, "published").detail
        (-0.25, 'cosine -0.2500')
    """
    if isinstance(found, Unmeasured):
        return found
    if protocol == "published" and found.cosine <= 0:
        return Unmeasured(MetricReason.NOT_ABOVE_ZERO, detail=f"cosine {found.cosine:.4f}")
    return found.cosine


def _dropped(sample: Seen[Levels]) -> Unmeasured | None:
    """Why the released code makes no number of a sample that has all its pictures."""
    if len(sample.inputs) > 1:
        return Unmeasured(MetricReason.SEVERAL_INPUTS, detail=f"{len(sample.inputs)} inputs")
    return _outside(one.levels.shape[:2] for one in (*sample.inputs, sample.output) if one)


def _outside(shapes: Iterable[tuple[int, ...]]) -> Unmeasured | None:
    least, most = PUBLISHED_SIDES
    for height, width in shapes:
        if min(height, width) < least or max(height, width) > most:
            detail = f"{width} x {height} pixels, expected {least} to {most} a side"
            return Unmeasured(MetricReason.SIZE_NOT_TAKEN, detail=detail)
    return None


def _kept_faces(picture: Levels, reader: FaceReader, cache: FaceCache) -> Faces:
    key = (reader.key, picture.digest)
    faces = cache.find(key)
    if faces is None:
        faces = reader.faces(picture.levels)
        cache.keep(key, faces)
    return faces
