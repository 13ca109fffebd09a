"""The text of a post that its platform writes as HTML; nothing in it is ever executed or shown."""

from __future__ import annotations

import re
from html.parser import HTMLParser

LONGEST = 2**20
# Python refuses to read a number of thousands of digits; no character has more than seven.
ENDLESS_NUMBER = re.compile(r"&#\d{8,};?")
# Without attributes, which may hold anything, and with which a parser can be kept busy for minutes.
TAG = re.compile(r"<(/?[a-zA-Z][a-zA-Z0-9]*)(?=[\s/>])[^<>]*>|<")
BLANK_LINE_AROUND = frozenset({"p", "blockquote", "pre", "ul", "ol", "h1", "h2", "h3"})
OWN_LINE = frozenset({"li", "div", "tr"})
NOT_TEXT = frozenset({"script", "style", "template", "noscript"})


def text_of_html(html: str) -> str:
    r"""What a reader sees of HTML, with its paragraphs and line ends.

    Args:
        html: The HTML, whoever wrote it; what comes after a million characters is left out.

    Returns:
        The text. Cut links are whole, because what a page hides of a link is part of its text.

    Example:
        >>> text_of_html("<p>a fox &amp; a <b>hare</b><br>in watercolour</p><p>second try</p>")
        'a fox & a hare\nin watercolour\n\nsecond try'
    """
    parser = _Text()
    # What is no tag is text, declarations too: the parser stumbles over broken ones.
    plain = TAG.sub(lambda found: f"<{found[1]}>" if found[1] else "&lt;", html[:LONGEST])
    parser.feed(ENDLESS_NUMBER.sub("\ufffd", plain))
    parser.close()
    lines = [line.strip(" \t") for line in "".join(parser.parts).splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.silent += tag in NOT_TEXT
        if tag == "br":
            self.parts.append("\n")
        self._line_end(tag)

    def handle_endtag(self, tag: str) -> None:
        self.silent = max(0, self.silent - (tag in NOT_TEXT))
        self._line_end(tag)

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.parts.append(re.sub(r"[ \t\r\n]+", " ", data))

    def _line_end(self, tag: str) -> None:
        if tag in BLANK_LINE_AROUND:
            self.parts.append("\n\n")
        elif tag in OWN_LINE:
            self.parts.append("\n")
