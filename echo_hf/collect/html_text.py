"""Plain text of the HTML that platforms write posts in, in one pass whatever it holds."""

from __future__ import annotations

import html
import re

# No parser: the standard library's needs quadratic time for a page of open tags, and stops at
# some declarations. Platforms write plain markup, in which `<` and `>` stand for tags alone.
MARKUP = re.compile(r"(<[^<>]*>)")
TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)(?=[\s/>])", re.ASCII | re.IGNORECASE)
LINK = re.compile(r"""\bhref\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.ASCII | re.IGNORECASE)
# Python refuses to read a number of thousands of digits; no character has more than seven.
ENDLESS = re.compile(r"&#[0-9]{8,};?", re.ASCII)
BEFORE_LINE_END = re.compile(r"(?<! ) +\n")  # begins at a run's first blank: no run is read twice
BLANK_LINES = re.compile(r"\n{3,}")
LINE_BREAKS = frozenset({"br", "li", "tr", "div", "blockquote"})
PARAGRAPHS = frozenset({"p", "ul", "ol", "pre", "table", "h1", "h2", "h3"})
UNSEEN = frozenset({"script", "style", "template", "noscript"})
WHITE = re.compile(r"[ \t\r\n]+")
CUT = ("...", "…")


def text_of_html(markup: str) -> str:
    r"""The text that a browser would show.

    Args:
        markup: A piece of HTML, well formed or not.

    Returns:
        The text without tags, paragraphs apart by an empty line; an address that is shown cut
        stands whole.

    Example:
        >>> text_of_html('<p>Tom &amp; I <a href="https://a.example/long">https://a.ex...</a><p>ok')
        'Tom & I https://a.example/long\n\nok'
    """
    parts: list[str] = []
    unseen, link, link_at, as_it_is = "", "", 0, False
    for piece in MARKUP.split(markup):
        tag = TAG.match(piece)
        name = tag[2].lower() if tag else ""
        closes = bool(tag and tag[1])
        if unseen:
            unseen = "" if closes and name == unseen else unseen
        elif name in UNSEEN and not closes:
            unseen = name
        elif name == "a" and closes:
            parts[link_at:] = [_whole("".join(parts[link_at:]), link)]
        elif name == "a":
            found = LINK.search(piece)
            link, link_at = _unescaped(found[1] or found[2] or "") if found else "", len(parts)
        elif not tag:
            parts.append(_unescaped(piece if as_it_is else _flowing(piece, parts)))
        as_it_is = not closes if name == "pre" else as_it_is
        if tag and not unseen and (line_end := _break(name)):
            parts.append(line_end)
    lines = BEFORE_LINE_END.sub("\n", "".join(parts))
    return BLANK_LINES.sub("\n\n", lines).strip()


def _flowing(text: str, before: list[str]) -> str:
    """White space as a browser shows it: one blank, and none at the beginning of a line."""
    flowing = WHITE.sub(" ", text)
    return flowing.lstrip(" ") if before and before[-1].endswith("\n") else flowing


def _break(name: str) -> str:
    return "\n\n" if name in PARAGRAPHS else "\n" if name in LINE_BREAKS else ""


def _whole(shown: str, link: str) -> str:
    """An address in the place of one that is shown cut."""
    cut = next((shown.removesuffix(end) for end in CUT if shown.endswith(end)), None)
    return link if cut and link.startswith(cut) else shown


def _unescaped(text: str) -> str:
    return html.unescape(ENDLESS.sub("\ufffd", text))
