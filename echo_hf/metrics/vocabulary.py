"""Which words there are: of English, or of a list that the user gives."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from echo_hf.errors import ScoreError
from echo_hf.metrics.extras import check_extra
from echo_hf.metrics.result import versions_of

PACKAGE, EXTRA = "pyspellchecker", "ocr"
MODULE = "spellchecker"
FEWEST_LETTERS = 3
# Runs of letters, and apostrophes between them.
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_APOSTROPHES = str.maketrans(dict.fromkeys("‘’ʼ′`", "'"))


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """Words, in small letters.

    Attributes:
        words: The words.
        latin: Whether it holds words in Latin letters alone.
        definition: What decides which words it holds.
    """

    words: frozenset[str]
    latin: bool
    definition: Mapping[str, Any]

    def knows(self, word: str) -> bool:
        """Whether there is such a word, with or without a genitive's ending.

        Args:
            word: As `words_of` gives it.

        Returns:
            True where there is.
        """
        return word in self.words or word.removesuffix("'s") in self.words


def vocabulary_of(words: Collection[str] | None) -> Vocabulary:
    """English, or the words that are given.

    Args:
        words: Null for the English list of pyspellchecker, 160 000 words, American spellings.

    Returns:
        The vocabulary.

    Raises:
        MissingExtraError: pyspellchecker is not installed.
        ScoreError: What is given are no words.

    Example:
        >>> vocabulary_of(["Echo", "l’eau"]).knows("l'eau")
        True
    """
    return _english() if words is None else _given(words)


def check_vocabulary(words: Collection[str] | None) -> None:
    """Refuses what is no vocabulary; loads none.

    Args:
        words: As for `vocabulary_of`.

    Raises:
        MissingExtraError: pyspellchecker is needed, and not installed.
        ScoreError: What is given are no words.
    """
    if words is None:
        check_extra("ocr_accuracy", EXTRA, [MODULE])
    else:
        _given(words)


def words_of(text: str) -> list[str]:
    """The words of a text that have three letters or more, in small letters.

    Args:
        text: The text.

    Returns:
        The words, in order.

    Example:
        >>> words_of("It’s 5 o'clock: DON'T be late, Zoë!")
        ["it's", "o'clock", "don't", 'late', 'zoë']
    """
    plain = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).casefold()
    return [word for word in _WORD.findall(plain) if _letters(word) >= FEWEST_LETTERS]


def mostly_latin(text: str) -> bool:
    """Whether at least half of a text's letters are Latin.

    Args:
        text: The text.

    Returns:
        True also where there are no letters.

    Example:
        >>> mostly_latin("東京 tower"), mostly_latin("東京タワー view")
        (True, False)
    """
    letters = [one for one in text if one.isalpha()]
    latin = sum(
        unicodedata.name(one, "").startswith(("LATIN", "FULLWIDTH LATIN")) for one in letters
    )
    return 2 * latin >= len(letters)


def _letters(word: str) -> int:
    return len(word) - word.count("'")


def _english() -> Vocabulary:
    check_extra("ocr_accuracy", EXTRA, [MODULE])
    from spellchecker import SpellChecker

    words = frozenset(SpellChecker(language="en").word_frequency.words())
    definition = {"language": "English", "words": len(words), **versions_of(PACKAGE)}
    return Vocabulary(words, True, definition)


def _given(words: Collection[str]) -> Vocabulary:
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise ScoreError("vocabulary holds something else than words: expected a list of strings")
    known = frozenset(word.translate(_APOSTROPHES).casefold() for word in words)
    if not known:
        raise ScoreError("vocabulary is empty: expected words, or null for English")
    digest = hashlib.sha256("\n".join(sorted(known)).encode(errors="surrogatepass")).hexdigest()
    return Vocabulary(known, False, {"words": len(known), "sha256": digest})
