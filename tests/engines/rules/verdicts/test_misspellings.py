"""Words quoted because they are nearly right, against a distance computed by its definition."""

from __future__ import annotations

import time
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.rules.verdicts import misspelt, quotes_unasked

SIGN = "a wooden sign that reads “LAVENDER COTTAGE” above a door"
WORDS = st.text("abcd", min_size=4, max_size=8)


@cache
def distance(one: str, other: str) -> int:
    """Letters inserted, removed, replaced or swapped with a neighbour, by definition."""
    if not one or not other:
        return len(one) + len(other)
    ways = [
        distance(one[1:], other) + 1,
        distance(one, other[1:]) + 1,
        distance(one[1:], other[1:]) + (one[0] != other[0]),
    ]
    if one[:2] == other[1::-1] and len(one) > 1 and len(other) > 1:
        ways.append(distance(one[2:], other[2:]) + 1)
    return min(ways)


@given(WORDS, WORDS)
def test_nearly_is_one_letter_or_two(one: str, other: str) -> None:
    """One letter apart is nearly right, in words of seven letters and more two."""
    most = 2 if min(len(one), len(other)) >= 7 else 1
    short, long = sorted((one, other), key=len)
    plural = long in {short + ending for ending in ("s", "es", "n", "e")}
    tripled = any(letter * 3 in one for letter in "abcd")
    nearly = one != other and distance(one, other) <= most and not plural
    assert misspelt(f"it says “{one}”", f"the word “{other}”") is (nearly or tripled)


@pytest.mark.parametrize(
    "text",
    [
        "mine says LAVENDRE COTTAGE",
        "it wrote “lavender cotage”",
        "the first has LAVENDER, the second LAVENDAR",
        "aus „COTTAGE“ wurde „COTAGE“",
    ],
)
def test_misspelt(text: str) -> None:
    """Words in capitals or quotes are compared with those asked for, and with each other."""
    assert misspelt(text, SIGN)


@pytest.mark.parametrize(
    "text",
    [
        "LAVENDER COTTAGE, just as I asked",
        "the COTTAGES look lovely",
        "love the lavendar sign",
        "THIS IS THE BEST LAVENDAR SIGN I HAVE EVER SEEN",
        "",
    ],
)
def test_not_misspelt(text: str) -> None:
    """Right words, plurals, words not quoted, and comments all in capitals are left alone."""
    assert not misspelt(text, SIGN)


@pytest.mark.parametrize(
    ("text", "unasked"),
    [
        ("mine says “ROSE VILLA”", True),
        ("a mí me puso ROSA VILLA", True),
        ("it says LAVENDER COTTAGE", False),
        ("she said hello", False),
    ],
)
def test_quotes_unasked(text: str, unasked: bool) -> None:
    """What the picture reads counts where it was not asked for."""
    assert quotes_unasked(text, SIGN) is unasked


def test_hostile_text_takes_no_time() -> None:
    """Many long words in capitals are compared in little time."""
    text = " ".join(f"“{'ABCDEFGHIJ' * 3}{number}”" for number in range(20_000))
    start = time.perf_counter()
    misspelt(text, text)
    assert time.perf_counter() - start < 2
