"""Text for people: safe to print in a terminal or to show in Markdown, truncated, percentages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

LONGEST_TEXT = 160


def plain(text: str | None, longest: int = LONGEST_TEXT) -> str:
    """Somebody's text, safe to print and no longer than asked."""
    shown = disarmed(" ".join((text or "").split()))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def disarmed(text: str) -> str:
    if text.isprintable():
        return text
    kept = {"\n", "\u200d"}  # the second joins the parts of an emoji
    return "".join(c for c in text if c in kept or not unicodedata.category(c).startswith("C"))


FOLDERS = re.compile(r"(?<![\w./:\\-])(?:~|[A-Za-z]:)?[/\\](?:[^\s/\\'\"]+[/\\])+")


def without_folders(text: str) -> str:
    """A text without the folders of absolute paths; the names of files stay.

    Examples:
        >>> without_folders("--weights=/data/mira/lumen.ckpt"), without_folders("models/lumen.ckpt")
        ('--weights=lumen.ckpt', 'models/lumen.ckpt')
    """
    return FOLDERS.sub("", text.rstrip("/"))


MARK = re.compile(r"\[\.\.\. \d+ (?:characters|descriptions) left out\]")


def shortened(texts: Sequence[str | None], longest: int, together: int) -> list[str | None]:
    """Texts cut to one length, the greatest at which all of them fit; each says what it lost."""
    lengths = sorted(min(len(text), longest) for text in texts if text)
    limit, left = longest, len(lengths)
    for length in lengths:
        if length * left > together:
            limit = together // left
            break
        together -= length
        left -= 1
    return [
        text
        if text is None or len(text) <= limit
        else f"{text[:limit]}\n[... {len(text) - limit} characters left out]"
        for text in texts
    ]


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


FEWEST_SECONDS = 2.0


def pace(number: int, seconds: float) -> str:
    """Formats a rate in parentheses; nothing where too little time went by.

    Examples:
        >>> pace(120, 10), pace(2, 30), pace(500, 0.1)
        (' (12/s)', ' (4 a minute)', '')
    """
    if seconds < FEWEST_SECONDS or not number:
        return ""
    rate = number / seconds
    return f" ({rate:,.0f}/s)" if rate >= 1 else f" ({60 * rate:.0f} a minute)"


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def rounded(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:z.{digits}f}"


def rounded_interval(ends: tuple[float, float] | None, digits: int = 3) -> str:
    return "-" if ends is None else f"{ends[0]:z.{digits}f} to {ends[1]:z.{digits}f}"


def percent(value: float | None) -> str:
    """A number from 0 to 1 in whole percent."""
    return "-" if value is None else f"{100 * value:.0f} %"


def in_place(name: str, in_place_of: str | None) -> str:
    return f"{name}, in place of {in_place_of}" if in_place_of else name


def escaped(text: object) -> str:
    """Text that Markdown shows as it is, also in the cell of a table."""
    return re.sub(r"([\\`*_\[\]<>|&~$#])", r"\\\1", one_line(text))


def one_line(text: object) -> str:
    return " ".join(str(text).split())


def table_row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def table(headings: Iterable[str], rows: Iterable[Iterable[str]], numbers: int = 0) -> str:
    names = list(headings)
    sides = ["---"] * (len(names) - numbers) + ["---:"] * numbers
    lines = [table_row(*names), table_row(*sides), *(table_row(*row) for row in rows)]
    return "\n".join(lines)
