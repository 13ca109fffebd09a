"""Keywords of failures: what all spellings of one have in common."""

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
# Singular words that end in s.
SINGULAR = re.compile(r"(?:ss|us|is|as|os|news|lens|glasses|always)$")
MIN_PLURAL_CHARACTERS = 4
RULE = "case folded, NFKC, signs as spaces, American spelling, plain plurals as singulars, sorted"


def normalize_keyword(keyword: str) -> str:
    """Return the form that all spellings of a keyword have in common."""
    folded = unicodedata.normalize("NFKC", keyword).casefold().replace("'", "").replace("’", "")
    words = set()
    for word in re.findall(r"[^\W_]+", folded):
        if len(word) >= MIN_PLURAL_CHARACTERS and word.endswith("s") and not SINGULAR.search(word):
            word = word[:-1]
        words.add(BRITISH.get(word, word))
    return " ".join(sorted(words))
