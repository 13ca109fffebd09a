"""Finding phrases in plain words, against plain comparison of every phrase at every place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.rules.words import Lexicon, phrases, plain_words

LETTERS = st.sampled_from("abc")
PHRASES = st.lists(st.lists(st.sampled_from("abc_"), min_size=1, max_size=4), max_size=6)


def found_by_comparison(several: Sequence[Sequence[str]], words: Sequence[str]) -> list[str]:
    """The phrases found from the left, the longest first, and of equal ones the most literal."""

    def fits(phrase: Sequence[str], at: int) -> bool:
        there = words[at : at + len(phrase)]
        same = (one in ("_", word) for one, word in zip(phrase, there, strict=False))
        return len(there) == len(phrase) and phrase[0] == there[0] and all(same)

    found, at = [], 0
    while at < len(words):
        fitting = [phrase for phrase in several if fits(phrase, at)]
        best = min(fitting, key=lambda one: (-len(one), [part == "_" for part in one]), default=())
        found += [" ".join(best)] if best else []
        at += len(best) or 1
    return found


@given(PHRASES, st.lists(LETTERS, max_size=12))
def test_finds_what_comparison_finds(several: list[list[str]], words: list[str]) -> None:
    """The longest phrase from the left is found; a word as written comes before any word."""
    written = [" ".join(phrase) for phrase in several]
    found = Lexicon((phrase, [phrase]) for phrase in written).find(words)
    assert [one.meaning for one in found] == found_by_comparison(several, words)


def test_the_first_meaning_of_a_phrase_stands() -> None:
    """A phrase with two meanings keeps the first."""
    lexicon = Lexicon([("first", ["cut off"]), ("second", ["cut off", "cut"])])
    assert [one.meaning for one in lexicon.find(["cut", "off", "cut"])] == ["first", "second"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("it can't", ["it", "cannot"]),
        ("it cant", ["it", "cannot"]),
        ("won't do", ["will", "not", "do"]),
        ("doesn't, doesnt", ["does", "not", "does", "not"]),
        ("it's really so very good", ["it", "good"]),
        ("les couleurs", ["couleurs"]),
    ],
)
def test_plain_words(text: str, words: list[str]) -> None:
    """Negations are written out; articles and words of degree are left out."""
    assert plain_words(text) == words


def test_refuses_a_phrase_of_which_too_little_is_left() -> None:
    """A phrase that shrinks to one common word would be found everywhere: it is refused."""
    with pytest.raises(ValueError, match="so close"):
        phrases(en="out of frame, so close")
