"""Words of any language."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.report.analysis.prompts import UnsegmentedError, first_bigram, word_definition, words

REASON = "needs icu4py: see `make test-extras`"
NO_ICU = find_spec("icu4py") is None


@given(st.text(st.characters(max_codepoint=127)))
def test_of_ascii_text_words_are_what_the_usual_expression_finds(text: str) -> None:
    r"""`\w+` of the text in small letters, found by Python itself."""
    plain = [word for word in re.findall(r"\w+", text.lower()) if word.strip("_") or "_" in word]
    assert list(words(text)) == plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("एक बिल्ली की तस्वीर", ["एक", "बिल्ली", "की", "तस्वीर"]),
        ("cafe\u0301 au lait", ["caf\u00e9", "au", "lait"]),
        ("ΣΊΣΥΦΟΣ Ίσως", ["σίσυφοσ", "ίσωσ"]),
        ("می‌خواهم یک گربه", ["می‌خواهم", "یک", "گربه"]),
        ("그림 그려줘", ["그림", "그려줘"]),
        ("📷 — \u0301 !", []),
    ],
    ids=["hindi", "two code points", "greek", "persian joiner", "korean", "no word"],
)
def test_marks_and_joiners_stay_in_their_word(text: str, expected: list[str]) -> None:
    """Vowel signs, accents and joiners are no word boundaries; lone ones are no words."""
    assert list(words(text)) == expected


@pytest.mark.extras
@pytest.mark.skipif(NO_ICU, reason=REASON)
@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("将照片里的两个人转换成Q版人物", ("将", "照片")),
        ("この写真をジブリ風にして", ("この", "写真")),
        ("ภาพแมวน่ารัก", ("ภาพ", "แมว")),
        ("生成一张图片", ("生成", "一张")),
    ],
    ids=["chinese", "japanese", "thai", "chinese order"],
)
def test_a_script_without_spaces_is_cut_into_words(text: str, first: tuple[str, str]) -> None:
    """The first two words as a dictionary has them, not the sentence as one word."""
    assert first_bigram(text) == first


@pytest.mark.extras
@pytest.mark.skipif(NO_ICU, reason=REASON)
def test_scripts_may_change_within_a_run() -> None:
    """Latin letters and digits between Chinese characters are words of their own."""
    assert list(words("转换成Q版 3D人物")) == ["转换", "成", "q", "版", "3d", "人物"]
    assert word_definition()["icu"] is not None


@pytest.mark.skipif(not NO_ICU, reason="icu4py is installed here")
def test_without_icu_such_a_text_is_not_guessed_at() -> None:
    """Rather no words than a sentence as one word; other scripts need no ICU."""
    with pytest.raises(UnsegmentedError):
        first_bigram("将照片里的两个人")
    assert first_bigram("a photo 将照片") == ("a", "photo")
    assert word_definition()["icu"] is None
