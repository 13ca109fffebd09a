"""What is kept of inputs: within the bound, first come first kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.errors import ScoreError
from echo_hf.metrics import SimilarityCache

KEYS = st.tuples(st.sampled_from(["vit", "other"]), st.sampled_from([b"a", b"b", b"c", b"d"]))


@given(st.lists(KEYS, max_size=20), st.integers(0, 300))
def test_what_is_kept_is_the_first_that_fits(keys: list[tuple[str, bytes]], most: int) -> None:
    """By key, each once, as many as the bound holds."""
    cache, similarity = SimilarityCache(most_bytes=most), np.eye(4, dtype=np.float32)
    for key in keys:
        cache.keep(key, similarity)
    expected = list(dict.fromkeys(keys))[: most // 64]
    assert len(cache) == len(expected)
    assert cache.kept_bytes == 64 * len(expected) <= most
    for key in keys:
        assert (cache.find(key) is not None) == (key in expected)


def test_what_is_kept_holds_on_to_nothing_else() -> None:
    """A part of a batch is copied: it neither keeps the batch nor changes with it."""
    cache, batch = SimilarityCache(), np.zeros((8, 4, 4), np.float32)
    cache.keep(("vit", b"a"), batch[3])
    batch += 1
    kept = cache.find(("vit", b"a"))
    assert kept is not None
    assert kept.base is None
    assert kept.sum() == 0


@pytest.mark.parametrize("most", [-1, 1.5, "1 GB", None])
def test_a_bound_is_a_number_of_bytes(most: object) -> None:
    """Anything else is refused in one line."""
    with pytest.raises(ScoreError, match=r"^most_bytes is .*: expected a whole number from 0$"):
        SimilarityCache(most_bytes=most)  # type: ignore[arg-type]
