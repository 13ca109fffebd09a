"""Find phrases of many languages in a text: as whole words where the script has spaces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import yaml

APOSTROPHES = "’ʼ`´"
# What goes on a word of a script that sets spaces between words; `re` takes much longer to compile
# a class of all the others.
LETTER = r"(?-i:(?=[\0-\u2e7f])\w)"
WORD = re.compile(f"{LETTER}+")
# The same in ASCII, and many times as fast.
BLANKED = "".join(
    chr(code) if chr(code).isalnum() or code == ord("_") else " " for code in range(128)
).encode()
BLANKED = BLANKED.ljust(256)


def straighten(text: str) -> str:
    for apostrophe in APOSTROPHES:
        text = text.replace(apostrophe, "'")
    return text


def any_of_pattern(phrases: Iterable[str]) -> str:
    word_start, word_end = rf"(?<!{LETTER})", rf"(?!{LETTER})"
    longest_first = sorted(phrases, key=len, reverse=True)
    bounds = [(re.match(LETTER, phrase), re.match(LETTER, phrase[-1])) for phrase in longest_first]
    if all(map(all, bounds)):  # said once, as each costs much to compile
        return f"{word_start}(?:{'|'.join(map(re.escape, longest_first))}){word_end}"
    return "|".join(
        f"{word_start if starts else ''}{re.escape(phrase)}{word_end if ends else ''}"
        for phrase, (starts, ends) in zip(longest_first, bounds, strict=True)
    )


class Phrases:
    def __init__(self, phrases: Iterable[str]) -> None:
        lower = {straighten(phrase).lower() for phrase in phrases}
        self._words = frozenset(filter(WORD.fullmatch, lower))
        self._others = sorted(lower - self._words)
        self._spellings = frozenset(word for phrase in lower for word in WORD.findall(phrase))
        # A phrase is only where its longest word is.
        longest = {
            phrase: max(WORD.findall(phrase), key=len, default="") for phrase in self._others
        }
        self._hints = frozenset(longest.values())
        without_words = [phrase for phrase in self._others if not longest[phrase]]
        self._without_words = {False: without_words, True: list(filter(str.isascii, without_words))}

    def match(self, text: str) -> bool:
        """Return whether any phrase is in a text: as words, then longer ones by regex."""
        lower, words = lower_words(text)
        if not words.isdisjoint(self._words):
            return True
        is_hinted = not words.isdisjoint(self._hints)
        candidates = self._others if is_hinted else self._without_words[lower.isascii()]
        return any(map(lower.__contains__, candidates)) and bool(self._longer_pattern.search(lower))

    def match_all(self, text: str) -> bool:
        """Return whether a text consists of phrases only; a single unknown word decides that."""
        words = (match.group() for match in WORD.finditer(straighten(text).lower()))
        return all(map(self._spellings.__contains__, words)) and not re.search(
            r"\w", self.pattern.sub(" ", text)
        )

    def remove_from(self, text: str) -> str:
        return self.pattern.sub(" ", straighten(text)) if self.match(text) else text

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(any_of_pattern([*self._words, *self._others]), re.IGNORECASE)

    @cached_property
    def _longer_pattern(self) -> re.Pattern[str]:
        return re.compile(any_of_pattern(self._others))


@lru_cache(maxsize=32)
def lower_words(text: str) -> tuple[str, frozenset[str]]:
    lower = straighten(text).lower()
    if lower.isascii():
        return lower, frozenset(lower.encode().translate(BLANKED).decode().split())
    return lower, frozenset(WORD.findall(lower))


@cache
def read_words(file: Path) -> Mapping[str, Any]:
    """Read the word lists of a YAML file."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same, and much faster
    words: Mapping[str, Any] = yaml.load(file.read_text("utf-8"), Loader=loader)  # noqa: S506
    return words
