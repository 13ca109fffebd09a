"""Text for people: safe in terminals and Markdown, shortened, numbers formatted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

MAX_TEXT_CHARACTERS = 160


def clean(text: str | None, limit: int = MAX_TEXT_CHARACTERS) -> str:
    """Return untrusted text, safe to print and cut to a limit."""
    cleaned = strip_controls(" ".join((text or "").split()))
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1] + "…"


def strip_controls(text: str) -> str:
    if text.isprintable():
        return text
    allowed = {"\n", "\u200d"}  # the second joins the parts of an emoji
    return "".join(
        character
        for character in text
        if character in allowed or not unicodedata.category(character).startswith("C")
    )


FOLDERS = re.compile(r"(?<![\w./:\\-])(?:~|[A-Za-z]:)?[/\\](?:[^\s/\\'\"]+[/\\])+")


def remove_folders(text: str) -> str:
    """Remove the folders of absolute paths from a text; file names stay.

    Examples:
        >>> remove_folders("--weights=/data/mira/lumen.ckpt"), remove_folders("models/lumen.ckpt")
        ('--weights=lumen.ckpt', 'models/lumen.ckpt')
    """
    return FOLDERS.sub("", text.rstrip("/"))


MARK = re.compile(r"\[\.\.\. \d+ (?:characters|descriptions) left out\]")


def shorten_texts(texts: Sequence[str | None], max_each: int, max_total: int) -> list[str | None]:
    """Cut texts to one length, the greatest at which all fit; each says what it lost."""
    lengths = sorted(min(len(text), max_each) for text in texts if text)
    limit, remaining = max_each, len(lengths)
    for length in lengths:
        if length * remaining > max_total:
            limit = max_total // remaining
            break
        max_total -= length
        remaining -= 1
    return [
        text
        if text is None or len(text) <= limit
        else f"{text[:limit]}\n[... {len(text) - limit} characters left out]"
        for text in texts
    ]


def pluralize(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


MIN_SECONDS = 2.0


def format_rate(number: int, seconds: float) -> str:
    """Format a rate in parentheses; empty where too little time went by.

    Examples:
        >>> format_rate(120, 10), format_rate(2, 30), format_rate(500, 0.1)
        (' (12/s)', ' (4 a minute)', '')
    """
    if seconds < MIN_SECONDS or not number:
        return ""
    rate = number / seconds
    return f" ({rate:,.0f}/s)" if rate >= 1 else f" ({60 * rate:.0f} a minute)"


def format_share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def format_rounded(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:z.{digits}f}"


def format_interval(ends: tuple[float, float] | None, digits: int = 3) -> str:
    return "-" if ends is None else f"{ends[0]:z.{digits}f} to {ends[1]:z.{digits}f}"


def percent(value: float | None) -> str:
    """Format a number from 0 to 1 in whole percent."""
    return "-" if value is None else f"{100 * value:.0f} %"


def name_stand_in(name: str, in_place_of: str | None) -> str:
    return f"{name}, in place of {in_place_of}" if in_place_of else name


def escape_markdown(text: object) -> str:
    r"""Escape text for Markdown, also in a table cell; it names nobody's account.

    Examples:
        >>> escape_markdown("<b>"), escape_markdown("by @mira of lab/echo@v1")
        ('\\<b\\>', 'by @\u200bmira of lab/echo@v1')
    """
    escaped = re.sub(r"([\\`*_\[\]<>|&~$#])", r"\\\1", one_line(text))
    return re.sub(r"(?<![A-Za-z0-9])@", "@\N{ZERO WIDTH SPACE}", escaped)


def one_line(text: object) -> str:
    return " ".join(str(text).split())


def format_table_row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def format_table(headings: Iterable[str], rows: Iterable[Iterable[str]], numbers: int = 0) -> str:
    names = list(headings)
    sides = ["---"] * (len(names) - numbers) + ["---:"] * numbers
    lines = [
        format_table_row(*names),
        format_table_row(*sides),
        *(format_table_row(*row) for row in rows),
    ]
    return "\n".join(lines)
