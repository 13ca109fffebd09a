"""Shorten what people wrote to what one request has room for."""

from __future__ import annotations

import re
from collections.abc import Sequence

MARK = re.compile(r"\[\.\.\. \d+ (?:characters|descriptions) left out\]")


def shortened(texts: Sequence[str | None], longest: int, together: int) -> list[str | None]:
    r"""Cuts the longest of some texts, so that all of them fit.

    Args:
        texts: Texts; null for one that is not there.
        longest: Most characters of one.
        together: Most characters of all of them, marks of what was cut not counted.

    Returns:
        The texts in order, one that was cut with a mark that says by how much.

    Example:
        >>> shortened(["a fox", None, "abcdefghij"], 100, 10)
        ['a fox', None, 'abcde\n[... 5 characters left out]']
    """
    limit = _limit([min(len(text), longest) for text in texts if text], longest, together)
    return [text if text is None else _cut(text, limit) for text in texts]


def _limit(lengths: Sequence[int], longest: int, together: int) -> int:
    left = len(lengths)
    for length in sorted(lengths):
        if length * left > together:
            return together // left
        together -= length
        left -= 1
    return longest


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[... {len(text) - limit} characters left out]"
