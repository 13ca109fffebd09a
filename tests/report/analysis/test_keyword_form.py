"""One form for the spellings of a keyword."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.report.analysis.failures import keyword_form


@pytest.mark.parametrize(
    "spellings",
    [
        (
            "colour cast",
            "Color Cast",
            "color-casts",
            "cast, colour",
            "COLOUR_CAST",
            "ｃｏｌｏｒ cast",
        ),
        ("extra fingers", "extra finger", "fingers (extra)"),
        ("can't spell", "cant spell", "can’t spell"),
        ("文字错误", "文字错误。"),
    ],
    ids=["colour", "plural", "apostrophe", "chinese"],
)
def test_spellings_of_the_same_words_have_one_form(spellings: tuple[str, ...]) -> None:
    """Case, signs, order, plural and British spelling make no other keyword."""
    assert len({keyword_form(one) for one in spellings}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("wrong hands", "wrong hair"),
        ("glass", "glas"),
        ("too bright", "too dark"),
        ("text", "texture"),
    ],
)
def test_other_words_have_other_forms(one: str, other: str) -> None:
    """Nothing is merged because it is merely similar."""
    assert keyword_form(one) != keyword_form(other)


@given(st.text())
def test_a_form_is_its_own_form(keyword: str) -> None:
    """Merging twice merges nothing more, as long as a word is no plural of a plural."""
    form = keyword_form(keyword)
    if not any(word.endswith("s") for word in form.split()):
        assert keyword_form(form) == form
