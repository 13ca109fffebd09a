"""From arrays to names: nulls, ranks, and pairs that change places."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from echo_hf.scores.judge_votes import best_first, counted_pairs, flipped, named, number, ranks

RATES = st.lists(st.integers(0, 5).map(lambda tenths: tenths / 10), max_size=6)


def test_nan_is_null_and_numbers_are_plain() -> None:
    """What JSON can hold."""
    assert named(["a", "b"], np.array([0.5, math.nan])) == {"a": 0.5, "b": None}
    assert type(number(float(np.float64(0.5)))) is float


def test_counts_are_whole_and_leave_the_diagonal_out() -> None:
    """A system does not meet itself."""
    counts = counted_pairs(["a", "b"], np.array([[9.0, 2.0], [3.0, 9.0]]))
    assert counts == {"a": {"b": 2}, "b": {"a": 3}}
    assert type(counts["a"]["b"]) is int


@given(rates=RATES)
def test_ranks_are_scipys(rates: list[float]) -> None:
    """Equal rates share the better place; the order of names follows the ranks."""
    by_name = {str(at): rate for at, rate in enumerate(rates)}
    expected = rankdata([-rate for rate in rates], method="min")
    found = ranks(by_name)
    assert list(found.values()) == list(expected)
    assert [found[name] for name in best_first(by_name)] == sorted(expected)


def test_what_has_no_rate_has_no_rank_and_comes_last() -> None:
    """Also behind a rate of 0."""
    rates = {"a": None, "b": 0.0, "c": 0.4}
    assert ranks(rates) == {"a": None, "b": 2, "c": 1}
    assert best_first(rates) == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("other", "pairs"),
    [
        ({"a": 0.9, "b": 0.5, "c": 0.1}, ()),
        ({"a": 0.5, "b": 0.5, "c": 0.1}, ()),
        ({"a": 0.1, "b": 0.5, "c": 0.3}, (("a", "b"), ("a", "c"))),
        ({"a": None, "b": 0.1, "c": 0.5}, (("b", "c"),)),
        ({"b": 0.1 + 1e-15, "c": 0.1}, ()),
    ],
)
def test_flips_are_pairs_in_opposite_orders(
    other: dict[str, float | None], pairs: tuple[tuple[str, str], ...]
) -> None:
    """Equal, unknown and nearly equal rates are in no order."""
    assert flipped({"a": 0.9, "b": 0.5, "c": 0.1}, other) == pairs
