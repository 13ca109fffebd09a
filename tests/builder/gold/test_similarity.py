"""Similarity of prompts, against the definition."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.builder.gold.measures import distance, similarity

TEXTS = st.text(alphabet="abc é猫", max_size=12)


def by_definition(one: str, other: str) -> int:
    """Levenshtein's recursion, as it is written in textbooks."""

    @cache
    def of(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        change = of(i - 1, j - 1) + (one[i - 1] != other[j - 1])
        return min(of(i - 1, j) + 1, of(i, j - 1) + 1, change)

    return of(len(one), len(other))


@given(TEXTS, TEXTS)
def test_the_distance_is_by_definition(one: str, other: str) -> None:
    """The rows of arrays give what the recursion gives."""
    assert distance(one, other) == by_definition(one, other)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("intention", "execution", 5), ("Saturday", "Sunday", 3), ("", "abc", 3), ("", "", 0)],
)
def test_known_distances(one: str, other: str, expected: int) -> None:
    """Examples that textbooks give."""
    assert distance(one, other) == distance(other, one) == expected


@given(TEXTS, TEXTS)
def test_similarity_is_symmetric_and_bounded(one: str, other: str) -> None:
    """It lies between 0 and 1, is 1 for texts that differ in white space alone, and only then."""
    found = similarity(one, other)
    assert found == similarity(other, one)
    assert 0 <= found <= 1
    assert (found == 1) is (one.split() == other.split())


def test_a_share_by_hand() -> None:
    """One letter of nine is missing."""
    assert similarity("a\tred\n fox", "a red ox") == pytest.approx(8 / 9)
    assert similarity("abc", "xyz") == 0
