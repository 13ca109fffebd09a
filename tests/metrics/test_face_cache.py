"""Faces of inputs are kept up to a size, and never beyond it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.errors import ScoreError
from echo_hf.metrics.face_cache import OVERHEAD, FaceCache
from echo_hf.metrics.face_match import Faces


def _faces(count: int) -> Faces:
    return Faces(np.zeros((count, 4), np.float32), np.zeros((count, 16), np.float32))


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(0, 6000))
def test_what_came_first_stays(counts: list[int], most: int) -> None:
    """Each is kept that still fits: 80 bytes a face, and the overhead of a picture."""
    cache = FaceCache(most_bytes=most)
    room, expected = most, []
    for number, count in enumerate(counts):
        cache.keep(("pack", str(number)), _faces(count))
        fits = OVERHEAD + 80 * count <= room
        room -= (OVERHEAD + 80 * count) * fits
        expected.append(fits)
    found = [cache.find(("pack", str(number))) is not None for number in range(len(counts))]
    assert found == expected
    assert len(cache) == sum(expected)


def test_a_picture_is_found_by_what_decides_its_faces() -> None:
    """The same pixels in other networks are another entry; the same entry is kept once."""
    cache = FaceCache()
    first = _faces(1)
    cache.keep(("pack", "pixels"), first)
    cache.keep(("pack", "pixels"), _faces(2))
    assert cache.find(("pack", "pixels")) is first
    assert cache.find(("other", "pixels")) is None
    assert len(cache) == 1


@pytest.mark.parametrize("most", [-1, 1.5, "64 MiB"])
def test_a_size_is_a_number_of_bytes(most: object) -> None:
    """Said in one line."""
    with pytest.raises(ScoreError, match=f"most_bytes is {most!r}: expected a whole number"):
        FaceCache(most_bytes=most)  # type: ignore[arg-type]
