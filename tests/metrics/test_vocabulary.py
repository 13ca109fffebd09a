"""Words, scripts, and the list of words that there are."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from echo_hf.errors import MissingExtraError, ScoreError
from echo_hf.metrics.text_reader import check_vocabulary, mostly_latin, vocabulary_of, words_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The quick, brown fox.", ["the", "quick", "brown", "fox"]),
        ("a to be or 3rd 2025", []),
        ("well-known e.g. vis-à-vis", ["well", "known", "vis", "vis"]),
        ("O’Neill ’tis dogs’", ["o'neill", "tis", "dogs"]),
        ("ＷＩＤＥ ﬁne", ["wide", "fine"]),
        ("abc_def x1yz", ["abc", "def"]),
        ("東京タワー", ["東京タワー"]),
    ],
)
def test_words_have_three_letters_or_more(text: str, expected: list[str]) -> None:
    """In small letters; digits, hyphens and signs part them."""
    assert words_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("12:30", True),
        ("été", True),
        ("привет", False),
        ("ab 漢字", True),
        ("a 漢字", False),
    ],
)
def test_a_text_is_latin_when_half_its_letters_are(text: str, expected: bool) -> None:
    """Of no letters, all are."""
    assert mostly_latin(text) is expected


def test_a_list_of_the_users_own_knows_its_words_alone() -> None:
    """Folded as what is read; the list is told apart by its digest, in whatever order."""
    own = vocabulary_of(["Straße", "Ж", "gardener"])
    assert [own.knows(word) for word in ("strasse", "ж", "gardener's", "garden")] == [
        True, True, True, False
    ]  # fmt: skip
    assert own.definition == vocabulary_of({"gardener", "Ж", "straße"}).definition
    assert own.definition != vocabulary_of(["gardener"]).definition


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("words", "vocabulary holds something else than words: expected a list of strings"),
        ([1, 2], "vocabulary holds something else than words"),
        ([], "vocabulary is empty: expected words, or null for English"),
    ],
)
def test_what_is_no_list_of_words_is_told(words: Any, message: str) -> None:
    """In one line."""
    for use in (vocabulary_of, check_vocabulary):
        with pytest.raises(ScoreError, match=message):
            use(words)


def test_english_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of the user's own does not."""
    monkeypatch.setitem(sys.modules, "spellchecker", None)
    for use in (vocabulary_of, check_vocabulary):
        with pytest.raises(MissingExtraError, match=r"\"echo-hf\[ocr\]\"$"):
            use(None)
    check_vocabulary(["word"])


@pytest.mark.extras
def test_english_words_are_known_and_misspelt_ones_are_not() -> None:
    """Genitives are, too; the list and its version are told."""
    pytest.importorskip("spellchecker", reason="needs the extra `ocr`")
    english = vocabulary_of(None)
    known = ["mixture", "birthday", "gardener's", "don't"]
    assert all(map(english.knows, known))
    assert not any(map(english.knows, ["mitture", "brithday", "happybirthday"]))
    assert english.latin
    assert english.definition["language"] == "English"
    assert english.definition["words"] > 100_000
