"""One form for the spellings of a keyword, so that `Color-shifts` and `colour shift` count as one.

A rule, not a measure of likeness: what it merges is the same words, and never only similar ones.
"""

from __future__ import annotations

import re
import unicodedata

BRITISH = {
    "aeroplane": "airplane",
    "behaviour": "behavior",
    "centre": "center",
    "colour": "color",
    "coloured": "colored",
    "colouring": "coloring",
    "discolouration": "discoloration",
    "grey": "gray",
    "mould": "mold",
    "stylised": "stylized",
}
# Singular though they end in s.
SINGULAR = re.compile(r"(?:ss|us|is|as|os|news|lens|glasses|always)$")
SHORTEST_PLURAL = 4
RULE = "case folded, NFKC, signs as spaces, American spelling, plain plurals as singulars, sorted"


def keyword_form(keyword: str) -> str:
    """The form that all spellings of a keyword share.

    Args:
        keyword: As a model gave it.

    Returns:
        Its words in alphabetical order, each once; empty when it has none.

    Example:
        >>> keyword_form("Colour-Shifts"), keyword_form("shift of color")
        ('color shift', 'color of shift')
        >>> keyword_form("extra fingers") == keyword_form("Fingers, extra")
        True
    """
    folded = unicodedata.normalize("NFKC", keyword).casefold().replace("'", "").replace("’", "")
    words = re.findall(r"[^\W_]+", folded)
    return " ".join(sorted({_plain(word) for word in words}))


def _plain(word: str) -> str:
    if len(word) >= SHORTEST_PLURAL and word.endswith("s") and not SINGULAR.search(word):
        word = word[:-1]
    return BRITISH.get(word, word)
