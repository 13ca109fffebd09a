"""Pages as readers see them: what a Markdown parser makes of a text."""

from __future__ import annotations

from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

TEXTS = {"text", "text_special", "softbreak"}


def split(text: str) -> tuple[dict[str, Any], str]:
    """Front matter and page, cut at the delimiters by hand."""
    lines = text.split("\n")
    assert lines[0] == "---"
    end = lines.index("---", 1)
    return yaml.safe_load("\n".join(lines[1:end])), "\n".join(lines[end + 1 :])


def tokens(page: str) -> list[Token]:
    return MarkdownIt("commonmark", {"html": True}).enable("table").parse(page)


def titled_files(page: str) -> list[tuple[str, str]]:
    """The files of a page: blocks with a title, by that name."""
    fences = [token for token in tokens(page) if token.type == "fence" and " title=" in token.info]
    return [(token.info.split('"')[1], token.content) for token in fences]


def plain(token: Token) -> str:
    return "".join(child.content for child in token.children or [])


def cells(page: str) -> list[list[str]]:
    rows: list[list[str]] = []
    found = tokens(page)
    for place, token in enumerate(found):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("td_open", "th_open"):
            rows[-1].append(plain(found[place + 1]))
    return rows


def shown(page: str) -> str:
    return "\n".join(plain(token) for token in tokens(page) if token.type == "inline")


def shape(page: str) -> list[str]:
    kinds: list[str] = []
    for token in tokens(page):
        kinds.append(token.type)
        kinds += [child.type for child in token.children or [] if child.type not in TEXTS]
    return kinds
