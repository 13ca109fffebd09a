"""What the characters of a text look like."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.curate.personal_data import readable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("noor@example.org", "noor@example.org"),
        ("ｎｏｏｒ＠ｅｘａｍｐｌｅ．ｏｒｇ", "noor@example.org"),
        ("n\u200bo\u2060o\ufeffr\u00ad@\u202eexample\ufe0f", "noor@example"),
        ("𝓷𝓸𝓸𝓻 ⓝⓞⓞⓡ", "noor noor"),
        ("Ñandú o\u0308", "Nandu o"),
        ("ø и ω", "x x x"),
        ("１２３ ①② ４²", "123 12 42"),
        ("描いて 그려", "描いて 그려"),
    ],
)
def test_what_a_reader_sees(text: str, shown: str) -> None:
    """By hand: full width, invisible, ornamental, accented, other alphabets; Hangul as jamo."""
    assert "".join(readable(text)) == unicodedata.normalize("NFD", shown)


@given(st.text(), st.text())
def test_each_character_is_looked_at_by_itself(one: str, other: str) -> None:
    """One piece a character, whatever stands around it."""
    assert len(readable(one)) == len(one)
    assert readable(one + other) == readable(one) + readable(other)


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_is_as_it_looks(text: str) -> None:
    """Nothing is done to what is plain already."""
    assert readable(text) == list(text)
