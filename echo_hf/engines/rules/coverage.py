"""Say whether the word lists cover the language of a text; where they do not, rules abstain."""

from __future__ import annotations

import re
from collections.abc import Set

from echo_hf.engines.rules.common_words import ELSEWHERE, FAMILIAR
from echo_hf.engines.rules.han_words import HAN_OR_KANA
from echo_hf.engines.rules.words import LOOK, PICTURE

# Greek to Ethiopic and beyond, Hangul, presentation forms of Hebrew and Arabic, other planes.
OTHER_SCRIPT = re.compile(
    r"[\u0370-\u1dff\u1f00-\u1fff\u3131-\u318e\ua000-\ua4cf\uac00-\ud7af\ufb1d-\ufdff\ufe70-\ufefc"
    r"\U00010000-\U0001bfff\U0001e000-\U0001efff]"
)
LATIN_LETTER = re.compile(r"[a-z\u00df-\u024f\u1e00-\u1eff]")
MOST_OTHER_SCRIPT = 0.3
FEWEST_WORDS = 7
WORDS_FOR_ONE_FAMILIAR = 12
KNOWN = FAMILIAR | PICTURE | LOOK


def covers(folded: str, words: Set[str]) -> bool:
    """Whether the language of a text is one that the word lists know.

    Args:
        folded: The text, folded.
        words: Its different words in Latin letters.

    Returns:
        False when much of it is in another script, or when it has enough words in Latin letters
        to tell and too few of them are familiar. A text without letters is covered.

    Example:
        >>> covers("привет, как дела", set()), covers("wow", {"wow"})
        (False, True)
    """
    return _known_script(folded) and _known_language(folded, words)


def _known_script(folded: str) -> bool:
    if folded.isascii():
        return True
    other = len(OTHER_SCRIPT.findall(folded))
    if not other:
        return True
    known = len(LATIN_LETTER.findall(folded)) + 2 * len(HAN_OR_KANA.findall(folded))
    return other <= MOST_OTHER_SCRIPT * (other + known)


def _known_language(folded: str, words: Set[str]) -> bool:
    if len(words) < FEWEST_WORDS:
        return True
    if not folded.isascii() and len(HAN_OR_KANA.findall(folded)) > len(words):
        return True
    known = len(words & KNOWN)
    return known * WORDS_FOR_ONE_FAMILIAR >= len(words) and known > len(words & ELSEWHERE)
