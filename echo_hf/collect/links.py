"""Undo what X does to a text: shortened links, the link to its own picture, three escapes."""

from __future__ import annotations

import re
from collections.abc import Mapping

LINK = re.compile(r"https?://[\w.-]+/\w+", re.ASCII)


def plain_text(text: str, links: Mapping[str, str]) -> str:
    """A text as its author wrote it.

    Args:
        text: The text with shortened links, in which `&`, `<` and `>` are escaped.
        links: For each shortened link what stands for it; nothing for the post's own picture.

    Returns:
        The text, without blanks at its ends.

    Example:
        >>> plain_text("cats &amp; https://t.co/a", {"https://t.co/a": "https://example.org/"})
        'cats & https://example.org/'
    """
    # Just these three: a general decoder would also undo what the author typed, and trips over
    # endless numbers. First, because an address is not escaped.
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return LINK.sub(lambda found: links.get(found[0], found[0]), text).strip()
