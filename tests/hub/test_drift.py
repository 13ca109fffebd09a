"""Drift is the total variation distance of two distributions, and the first words of prompts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.spatial.distance import cityblock

from echo_hf.hub.diff_rows import drift, first_bigram

COUNTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 50))


def as_array(counts: dict[str, int]) -> np.ndarray:
    """The counts of all names, as shares."""
    values = np.array([counts.get(name, 0) for name in "abcdef"], float)
    return values / values.sum()


@given(COUNTS, COUNTS)
def test_the_distance_is_half_the_city_block_distance_of_shares(
    a: dict[str, int], b: dict[str, int]
) -> None:
    """As scipy computes it, between 0 and 1, and the same in both directions."""
    assume(sum(a.values()) and sum(b.values()))
    found = drift(a, b)
    assert found.distance == pytest.approx(cityblock(as_array(a), as_array(b)) / 2)
    assert found.distance == pytest.approx(drift(b, a).distance)
    assert 0 <= found.distance <= 1 + 1e-12


@given(COUNTS, COUNTS)
def test_movers_are_all_changes_of_share_the_largest_first(
    a: dict[str, int], b: dict[str, int]
) -> None:
    """Their changes are those of the shares, sum to nothing, and leave out what stayed."""
    assume(sum(a.values()) and sum(b.values()))
    movers = drift(a, b).movers
    change = dict(zip("abcdef", as_array(b) - as_array(a), strict=True))
    for mover in movers:
        assert mover.change == pytest.approx(change[mover.name])
        assert (mover.a, mover.b) == (a.get(mover.name, 0), b.get(mover.name, 0))
    sizes = [abs(mover.change) for mover in movers]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(mover.change for mover in movers) == pytest.approx(0, abs=1e-12)
    assert {name for name in change if abs(change[name]) > 1e-12} <= {m.name for m in movers}


@pytest.mark.parametrize(("a", "b"), [({}, {"x": 1}), ({"x": 1}, {}), ({}, {}), ({"x": 0}, {})])
def test_nothing_counted_has_no_distance(a: dict[str, int], b: dict[str, int]) -> None:
    """No distance is not a distance of 0."""
    assert drift(a, b).distance is None
    assert drift(a, b).movers == ()


@pytest.mark.parametrize(
    ("prompt", "bigram"),
    [
        ("Make  THIS one", "make this"),
        ("“make this!”", "make this"),
        ("ÉTÉ straße", "été strasse"),
        ("雨の夜の街", "雨 の"),
        ("新しい cat", "新 し"),
        ("a雨", "a 雨"),
        ("3d render, please", "3d render"),
        ("draw_me now", "draw me"),
        ("한국어 그림 그려줘", "한국어 그림"),
        ("🙂 🙂 cat", None),
        ("cat", None),
        ("", None),
    ],
)
def test_the_first_two_words(prompt: str, bigram: str | None) -> None:
    """Words by space and punctuation, Chinese and Japanese by character."""
    assert first_bigram(prompt) == bigram


@given(st.text())
def test_any_prompt_has_two_words_or_none(prompt: str) -> None:
    """No text breaks the reading, and a word never holds a space."""
    found = first_bigram(prompt)
    assert found is None or len(found.split(" ")) == 2
