"""Find phrases of many languages in a text: whole words, or wherever a script sets no spaces."""

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
SPELLED = re.compile(f"{LETTER}+")
# The same in ASCII, and many times as fast.
BLANKED = "".join(chr(n) if chr(n).isalnum() or n == ord("_") else " " for n in range(128)).encode()
BLANKED = BLANKED.ljust(256)


def straight(text: str) -> str:
    for one in APOSTROPHES:
        text = text.replace(one, "'")
    return text


def one_of(phrases: Iterable[str]) -> str:
    before, after = rf"(?<!{LETTER})", rf"(?!{LETTER})"
    every = sorted(phrases, key=len, reverse=True)
    bounds = [(re.match(LETTER, one), re.match(LETTER, one[-1])) for one in every]
    if all(map(all, bounds)):  # said once, as each costs much to compile
        return f"{before}(?:{'|'.join(map(re.escape, every))}){after}"
    return "|".join(
        f"{before if starts else ''}{re.escape(one)}{after if ends else ''}"
        for one, (starts, ends) in zip(every, bounds, strict=True)
    )


class Phrases:
    def __init__(self, phrases: Iterable[str]) -> None:
        lower = {straight(one).lower() for one in phrases}
        self._words = frozenset(filter(SPELLED.fullmatch, lower))
        self._others = sorted(lower - self._words)
        self._spelled = frozenset(word for one in lower for word in SPELLED.findall(one))
        # A phrase is only where its longest word is.
        longest = {one: max(SPELLED.findall(one), key=len, default="") for one in self._others}
        self._hints = frozenset(longest.values())
        unspelled = [one for one in self._others if not longest[one]]
        self._unspelled = {False: unspelled, True: list(filter(str.isascii, unspelled))}

    def are_in(self, text: str) -> bool:
        """Looks words up, which is fast, and for a longer phrase only where its letters are."""
        lower, words = lower_words(text)
        if not words.isdisjoint(self._words):
            return True
        is_hinted = not words.isdisjoint(self._hints)
        some = self._others if is_hinted else self._unspelled[lower.isascii()]
        return any(map(lower.__contains__, some)) and bool(self._longer.search(lower))

    def are_all(self, text: str) -> bool:
        """Whether a text says nothing else; one word that is in no phrase answers that."""
        words = (one.group() for one in SPELLED.finditer(straight(text).lower()))
        return all(map(self._spelled.__contains__, words)) and not re.search(
            r"\w", self.pattern.sub(" ", text)
        )

    def replaced(self, text: str) -> str:
        return self.pattern.sub(" ", straight(text)) if self.are_in(text) else text

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(one_of([*self._words, *self._others]), re.IGNORECASE)

    @cached_property
    def _longer(self) -> re.Pattern[str]:
        return re.compile(one_of(self._others))


@lru_cache(maxsize=32)
def lower_words(text: str) -> tuple[str, frozenset[str]]:
    lower = straight(text).lower()
    if lower.isascii():
        return lower, frozenset(lower.encode().translate(BLANKED).decode().split())
    return lower, frozenset(SPELLED.findall(lower))


@cache
def read_words(file: Path) -> Mapping[str, Any]:
    """The lists of words in a YAML file."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same, and much faster
    words: Mapping[str, Any] = yaml.load(file.read_text("utf-8"), Loader=loader)  # noqa: S506
    return words
