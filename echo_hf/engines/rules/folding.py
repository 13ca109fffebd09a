"""Fold a text for matching without moving its characters, and cut it into words."""

from __future__ import annotations

import re
import unicodedata

LETTER = r"[a-z0-9_\u00df-\u024f]"
WORD = re.compile(LETTER + "+")
LINK = re.compile(r"(?:https?://|www\.)\S+|(?<!\S)pic\.twitter\.com/\S+", re.IGNORECASE)
ADDRESSEES = re.compile(r"\s*(?:rt\s+)?(?:[@＠][\w.-]+[:,]?\s*)+", re.IGNORECASE)


def _one_to_one() -> dict[int, str]:
    # Full-width and mathematical letters are how people write "bold" where there is no markup.
    styled = (*range(0x1D400, 0x1D800), *range(0xFF01, 0xFF5F), *range(0x24B6, 0x24EA))
    plain = {code: unicodedata.normalize("NFKC", chr(code)).lower() for code in styled}
    return {code: letter for code, letter in plain.items() if len(letter) == 1}


STYLED = _one_to_one()


def fold(text: str) -> str:
    """Small letters, and plain ones for styled ones.

    Args:
        text: Any text.

    Returns:
        A text of the same length, so that offsets in it hold in the original.

    Example:
        >>> fold("𝗣𝗿𝗼𝗺𝗽𝘁: A Cat"), len(fold("İstanbul"))
        ('prompt: a cat', 8)
    """
    if text.isascii():
        return text.lower()
    folded = text.translate(STYLED).lower()
    if len(folded) == len(text):
        return folded
    # A few letters have small forms of two characters.
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)


def words_of(folded: str) -> list[str]:
    """The words of a folded text in Latin letters, in order.

    Example:
        >>> words_of("turn @mira_draws's cat into 用gpt-4o生成")
        ['turn', 'mira_draws', 's', 'cat', 'into', 'gpt', '4o']
    """
    return WORD.findall(folded)


def without_addresses(text: str) -> str:
    """A text without the handles it begins with, and without links.

    Example:
        >>> without_addresses("@mira_draws @tomo look https://example.org/x here").split()
        ['look', 'here']
    """
    if "@" in text or "＠" in text:
        leading = ADDRESSEES.match(text)
        text = text[leading.end() :] if leading else text
    return LINK.sub(" ", text) if "http" in text or "www." in text or "pic." in text else text
