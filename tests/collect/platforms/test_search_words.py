"""How a search term is put to a platform."""

from __future__ import annotations

import pytest

from echo_hf.collect.platforms.access import search_words
from echo_hf.collect.platforms.base import UnanswerableError


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("4o", "4o"),
        ("create  image", "create image"),
        ("gpt-4o", '"gpt-4o"'),
        ('"image gen" fox', '"image gen" fox'),
        ("生成 画像", "生成 画像"),
        ("#AIart $echo", "#AIart $echo"),
        # what would be an operator is a word
        ("fox OR hare", 'fox "OR" hare'),
        ("-fox from:mira has:images (a", '"-fox" "from:mira" "has:images" "(a"'),
        ('fox "hare', "fox hare"),
        ("back\\slash", "back slash"),
        ("fox -", "fox"),
    ],
)
def test_a_term_is_its_words(term: str, expected: str) -> None:
    """All words have to be found, and none of them means anything else to a platform."""
    assert search_words(term) == expected


@pytest.mark.parametrize("term", ["", " ", '""', "- (", "\\"])
def test_a_term_without_a_word_is_put_aside(term: str) -> None:
    """There is nothing to search for."""
    with pytest.raises(UnanswerableError, match="no word"):
        search_words(term)
