"""Cutting texts into pieces."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.curate.guards import pieces

TEXTS = st.lists(st.text(alphabet="ab \n\u3000画", max_size=30), max_size=5)


@given(TEXTS, st.integers(1, 12))
def test_no_character_is_lost_and_none_is_said_twice(texts: list[str], longest: int) -> None:
    """Put together again, the pieces are the texts; each fits, and none stands there empty."""
    made = pieces(texts, longest)

    assert "".join("".join(some) for some in made) == "".join(texts)
    assert all(sum(map(len, some)) <= longest for some in made)
    assert all(made) is bool(texts)


@given(TEXTS, st.integers(1, 12))
def test_no_piece_is_begun_without_need(texts: list[str], longest: int) -> None:
    """What begins a piece had no room in the one before."""
    for before, after in pairwise(pieces(texts, longest)):
        assert sum(map(len, before)) + len(after[0]) > longest


def test_a_text_is_cut_between_words() -> None:
    """By hand: after the last space that there is room for; in a word that is longer than that."""
    assert pieces(["one two three"], 8) == [("one two ",), ("three",)]
    assert pieces(["one two three"], 7) == [("one ",), ("two ",), ("three",)]
    assert pieces(["abcdefgh i"], 4) == [("abcd",), ("efgh",), (" i",)]
    assert pieces(["雨の日の猫"], 2) == [("雨の",), ("日の",), ("猫",)]


def test_texts_share_a_piece_while_there_is_room() -> None:
    """An empty one takes none."""
    assert pieces(["abc", "", "de", "f"], 5) == [("abc", "", "de"), ("f",)]
    assert pieces([], 5) == [()]
    assert pieces([""], 5) == [("",)]
