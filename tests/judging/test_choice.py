"""A choice in a free answer, against a parser that knows no regular expression."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.judging.compare import read_choice, winner_of

WORDS = ("first", "second", "tie")
WHOLE = ("[[first]]", "[[ Second ]]", "[[tie]]", "[[fir\u017ft]]")
PIECES = st.sampled_from(["[", "]", "[[", "]]", " ", "\n", "First", "TIE", *WHOLE, *WORDS])


def by_hand(text: str) -> str:
    """Tries every place and every word in every spacing that can stand there."""
    made = set()
    for at in range(len(text)):
        rest = text[at:]
        if rest.startswith("[["):
            inside, closed, _ = rest[2:].partition("]]")
            if closed and inside.strip().lower() in WORDS:
                made.add(inside.strip().lower())
    if len(made) > 1:
        return "two_choices"
    return made.pop() if made else "no_choice"


@given(st.lists(PIECES, max_size=12).map("".join))
def test_the_choice_is_the_one_in_double_brackets(text: str) -> None:
    """One of three words, said once or always alike; anything else is none, with its reason."""
    assert str(read_choice(text)) == by_hand(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[first]",
        "[[fir\u017ft]]",
        "[[t\u0131e]]",
        "[[1]]",
        "[[first image]]",
        "first",
        "[[a]]",
    ],
)
def test_nothing_is_guessed(text: str) -> None:
    """What is not in the form that was asked for is no choice."""
    assert read_choice(text) == "no_choice"


@pytest.mark.parametrize(
    ("choice", "order", "winner"),
    [
        ("first", "ab", "a"),
        ("second", "ab", "b"),
        ("first", "ba", "b"),
        ("second", "ba", "a"),
        ("tie", "ab", "tie"),
        ("tie", "ba", "tie"),
    ],
)
def test_the_winner_is_a_system_and_not_a_place(
    choice: str, order: str, winner: str
) -> None:
    """By hand: all six cases."""
    assert winner_of(choice, order) == winner
