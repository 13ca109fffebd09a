"""Texts that people read as the same are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.metrics.text_reader import normalized_text, signs_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Happy\n Birthday\t!", "happybirthday!"),
        ("ＨＥＬＬＯ　１２", "hello12"),
        ("ﬁne ﬂags", "fineflags"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Cafe\u0301", "caf\u00e9"),
        ("It’s ‘so’ `so´", "it's'so''so'"),
        ("“a” „b“ «c»", '"a""b""c"'),
        ("soft\u00adhyphen zero\u200bwidth", "softhyphenzerowidth"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("a-b", "a-b"),
        ("9–5 — 3−2", "9-5-3-2"),
        ("\u00a8\u00b8", "\u0327\u0308"),
    ],
)
def test_what_does_not_count_is_folded(text: str, expected: str) -> None:
    """Case, width, ligatures, composition, marks, spaces; letters and signs stay."""
    assert normalized_text(text) == expected


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    """For any text that there is."""
    assert normalized_text(normalized_text(text)) == normalized_text(text)


@given(st.text(), st.text(), st.sampled_from([" ", "\n", "\u3000", "\u00a0"]))
def test_spaces_do_not_count(one: str, other: str, space: str) -> None:
    """Wherever they stand, and of whatever kind."""
    assert normalized_text(f"{space}{one}{space} ") == normalized_text(one)
    assert normalized_text(f"a{space}b{other}") == normalized_text(f"ab{other}")


@given(st.text(st.characters(codec="ascii")))
def test_case_does_not_count(text: str) -> None:
    """Of any letter."""
    assert (
        normalized_text(text.upper())
        == normalized_text(text.lower())
        == normalized_text(text.swapcase())
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Straße", "Straße"),
        ("STRASSE", "STRAE"),
        ("Cafe\u0301 ", "Caf\u00e9"),
        ("Ｈ１ ﬁ", "H1fi"),
        ("“a”–b\u200b\n", '"a-b'),
        ("дом", "дом"),
    ],
)
def test_signs_are_told_as_they_are_written(text: str, expected: str) -> None:
    """Capitals and small letters apart, since a reader may know one of them alone."""
    assert signs_of(text) == set(expected)
