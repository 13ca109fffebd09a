"""A batch is set aside as a whole, and held in memory part by part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from datasets import Features, Value
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.hub.evaluate_metric import whole

FEATURES = Features({"predictions": Value("string"), "references": Value("int64")})
ROWS = st.lists(st.tuples(st.text(max_size=3) | st.none(), st.integers(-9, 9)), min_size=1)


@given(st.lists(ROWS, max_size=4))
def test_every_part_comes_back_as_it_was(rows: list[list[tuple[Any, int]]]) -> None:
    """In order; of no parts there is one without rows, which makes a batch of none."""
    parts = [
        {"predictions": [one for one, _ in part], "references": [one for _, one in part]}
        for part in rows
    ]
    with whole(iter(parts), FEATURES) as found:
        assert list(found) == (parts or [{"predictions": [], "references": []}])


def test_nothing_is_given_of_a_batch_that_ends_in_an_error() -> None:
    """Though parts before it were right."""
    taken: list[object] = []

    def parts() -> Iterator[dict[str, list[Any]]]:
        yield {"predictions": ["a"], "references": [1]}
        raise KeyError("wrong")

    with pytest.raises(KeyError), whole(parts(), FEATURES) as found:
        taken += found
    assert taken == []


def test_one_part_is_in_memory_at_a_time() -> None:
    """Sixty parts of a megabyte cost a few of them, as Arrow counts what it holds."""
    pool, most = pa.default_memory_pool(), 0
    before, megabyte = pool.bytes_allocated(), "x" * 2**20

    def parts() -> Iterator[dict[str, list[Any]]]:
        nonlocal most
        for number in range(60):
            most = max(most, pool.bytes_allocated() - before)
            yield {"predictions": [megabyte], "references": [number]}

    with whole(parts(), FEATURES) as found:
        for _ in found:
            most = max(most, pool.bytes_allocated() - before)
    assert most < 8 * 2**20
