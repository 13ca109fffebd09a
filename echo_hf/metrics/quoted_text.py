"""Which words a prompt puts in quotation marks: the text that a picture is meant to show."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from echo_hf.metrics.folded_text import folded

# What opens is followed by what may close it. A mark inside others belongs to their text.
PAIRS = {
    "“": "”“",
    "„": "“”",
    "”": "”",
    "«": "»",
    "»": "«",
    "‹": "›",
    "›": "‹",
    "「": "」",
    "『": "』",
    "《": "》",
    "〝": "〞〟",
    "‘": "’",
    "‚": "‘’",
    "'": "'",
    '"': '"',
    "＂": "＂",
}
SINGLE = "‘‚'"
# What closes only after that is no quotation.
MOST_LETTERS = 1000
# Words that begin with an apostrophe, and decades, open no quotation.
ELISIONS = r"(?:\d\ds?|n|em|til|tis|twas|cause|bout|round|cuz)\b"


# An apostrophe has letters on both sides; between digits and marks stand inches and seconds.
_OTHERS = "".join(mark for mark in PAIRS if mark not in SINGLE and mark != '"')
_OPENING = re.compile(rf"(?<!\w)[{SINGLE}](?!\s|{ELISIONS})|(?<!\d)\"|[{_OTHERS}]", re.IGNORECASE)
_CLOSING = {
    opening: re.compile(rf"[{re.escape(closings)}]" + (r"(?!\w)" if opening in SINGLE else ""))
    for opening, closings in PAIRS.items()
}
_EMPTY_LINE = re.compile(r"\n[ \t]*\n")


def quoted(prompt: str) -> tuple[str, ...]:
    r"""The strings in quotation marks, each once.

    Straight and curly marks, single and double, guillemets and the marks of Chinese and Japanese
    count; apostrophes and inches do not. Of marks within marks the outer ones count.

    Args:
        prompt: The text of a prompt.

    Returns:
        The strings in order, without what surrounds them; none without a letter or a digit.

    Example:
        >>> quoted("Don't change the 24\" sign: write “Fish & Chips”, below it 'Today's catch'")
        ('Fish & Chips', "Today's catch")
    """
    found: dict[str, str] = {}
    for text in map(str.strip, _between_marks(prompt)):
        if any(letter.isalnum() for letter in text):
            found.setdefault(folded(text), text)
    return tuple(found.values())


class _Nearest:
    """The next match of each of a few patterns, each part of the text being searched once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[re.Pattern[str], int] = {}

    def __call__(self, pattern: re.Pattern[str], start: int) -> int:
        """Where the first match from `start` on begins, beyond the text where there is none."""
        found = self._found.get(pattern, -1)
        if found < start:
            match = pattern.search(self._text, start)
            found = self._found[pattern] = match.start() if match else sys.maxsize
        return found


def _between_marks(prompt: str) -> Iterator[str]:
    """What stands between marks of one kind, without an empty line in it."""
    nearest, start = _Nearest(prompt), 0
    while opening := _OPENING.search(prompt, start):
        start = opening.end()
        end = nearest(_CLOSING[opening[0]], start)
        if 0 < end - start <= MOST_LETTERS and end < nearest(_EMPTY_LINE, start):
            yield prompt[start:end]
            start = end + 1
