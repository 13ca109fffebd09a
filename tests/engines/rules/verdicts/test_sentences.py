"""Cutting comments into sentences and clauses; expected pieces are written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.rules.verdicts import sentences_of


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("nice hat. bad face", [[["nice", "hat"]], [["bad", "face"]]]),
        ("nice, bad", [[["nice"], ["bad"]]]),
        ("faces: still drift", [[["faces"], ["still", "drift"]]]),
        ("v4.5 at 16:9", [[["v4", "5", "at", "16x9"]]]),
        ("nice but bad", [[["nice"]], [["bad"]]]),
        ("bonito pero malo", [[["bonito"]], [["malo"]]]),
        ("joli mais flou", [[["joli"]], [["flou"]]]),
        ("schön aber falsch", [[["schön"]], [["falsch"]]]),
        ("bello ma la faccia", [[["bello"]], [["faccia"]]]),
        ("voici ma photo", [[["voici", "ma", "photo"]]]),
        ("butter", [[["butter"]]]),
    ],
)
def test_cuts(text: str, clauses: list[list[list[str]]]) -> None:
    """Marks end sentences and clauses; so do words of contrast, but not words that look alike."""
    assert [sentence.clauses for sentence in sentences_of(text)] == clauses


def test_knows_how_a_sentence_ends() -> None:
    """A question is known by its mark, a contrast by its word."""
    asked, contrasted, last = sentences_of("is it? nice but bad")
    assert (asked.asks, asked.before_contrast) == (True, False)
    assert (contrasted.asks, contrasted.before_contrast) == (False, True)
    assert (last.asks, last.before_contrast) == (False, False)


@given(st.text(max_size=200))
def test_loses_no_text(text: str) -> None:
    """Every letter and digit of ASCII stands in a sentence or in the word of contrast after it."""
    kept = "".join(sentence.text + sentence.end for sentence in sentences_of(text.lower()))
    ascii_only = [one for one in text.lower() if one.isascii() and one.isalnum() and one != "x"]
    assert [one for one in kept if one.isascii() and one.isalnum() and one != "x"] == ascii_only
