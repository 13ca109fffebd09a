"""How a search term is put to a platform, so that it means the same on each of them."""

from __future__ import annotations

import re

from echo_hf.collect.platforms.base import UnanswerableError

PART = re.compile(r'"([^"]*)"|([^\s"]+)')
PLAIN = re.compile(r"[#$]?\w+")
# Platforms read these as something else than words.
OPERATORS = frozenset({"AND", "OR", "NOT"})


def search_words(term: str) -> str:
    """A term as platforms understand it: all its words, wherever they stand in a post.

    Args:
        term: The term of a config; what stands in double quotes has to stand so in a post.

    Returns:
        Its words; those that a platform could take for an operator are quoted.

    Raises:
        UnanswerableError: It has no word.

    Example:
        >>> search_words('create image gpt-4o "text to image"')
        'create image "gpt-4o" "text to image"'
    """
    parts = [_part(found[1], found[2]) for found in PART.finditer(term.replace("\\", " "))]
    words = [part for part in parts if part]
    if not words:
        raise UnanswerableError(f"{term!r} has no word to search for")
    return " ".join(words)


def _part(phrase: str | None, word: str | None) -> str:
    if word is not None:
        plain = PLAIN.fullmatch(word) and word not in OPERATORS
        return word if plain else _quoted(word)
    return _quoted(" ".join((phrase or "").split()))


def _quoted(words: str) -> str:
    return f'"{words}"' if re.search(r"\w", words) else ""
