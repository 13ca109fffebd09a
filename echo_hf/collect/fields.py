"""Read single fields of a record: texts, links, times, numbers; what does not fit is a finding."""

from __future__ import annotations

import datetime
import gzip
import html
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import Repr
from typing import Any, TextIO

from echo_hf.collect.sources.base import Finding
from echo_hf.collect.urls import canonical_url, web_url
from echo_hf.reasons import Notice

LONGEST_SHOWN = 80
LONGEST_LIST = 200
# repr itself recurses into what a record nests, and a record may nest as deep as Python can go.
SHORT = Repr()
SHORT.maxlevel, SHORT.maxstring, SHORT.maxother = 2, LONGEST_SHOWN, LONGEST_SHOWN
LARGEST = 2**63 - 1
DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{8}(?!\d)")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass
class Fields:
    record: Mapping[str, Any]
    findings: list[Finding] = field(default_factory=list)
    place: str = ""

    def text(self, name: str) -> str | None:
        """A text; null when absent, or not a text."""
        value = self.record.get(name)
        if value is None:
            return None
        if isinstance(value, str):
            return self.clean(name, value)
        self._bad(name, value, "a text")
        return None

    def clean(self, name: str, value: str) -> str:
        """A text without what no table can hold: half characters and NUL."""
        cleaned = value.encode("utf-8", "replace").decode().replace("\x00", "")
        if cleaned != value:
            self._bad(name, value, "a text without NUL or half characters")
        return cleaned

    def address(self, name: str) -> str | None:
        """The canonical address of another post; null when absent or unusable."""
        value = self.text(name)
        if value is None:
            return None
        address = canonical_url(value, fragment=True)
        if address is None:
            self._bad(name, value, "an address")
        return address

    def link(self, name: str) -> str | None:
        """The web address of an image; null when absent or unusable."""
        value = self.text(name)
        if value is None:
            return None
        address = web_url(value)
        if address is None:
            self._bad(name, value, "a web address")
        return address

    def moment(self, name: str) -> datetime.datetime | None:
        """A time in UTC; null when absent or unreadable."""
        value = self.record.get(name)
        if value is None:
            return None
        read = read_moment(value)
        if read is None:
            self.find(Notice.BAD_TIMESTAMP, name, value, "an ISO 8601 date or seconds since 1970")
        return read

    def count(self, name: str) -> int | None:
        """A count of zero or more; null when absent or not one."""
        value = self.record.get(name)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST:
            return value
        self._bad(name, value, "a whole number")
        return None

    def texts(self, name: str) -> list[str]:
        """A list of texts; empty when absent, without the items that are none."""
        value = self.record.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self._bad(name, value, "a list of texts")
            return []
        good = [self.clean(name, item) for item in value if isinstance(item, str) and item.strip()]
        if len(good) < len(value):
            self._bad(name, value, "a list of texts")
        return good

    def objects(self, name: str) -> list[Mapping[str, Any]]:
        """A list of objects; empty when absent, without the items that are none."""
        value = self.record.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self._bad(name, value, "a list of objects")
            return []
        good: list[Mapping[str, Any]] = [item for item in value if isinstance(item, dict)]
        if len(good) < len(value):
            self._bad(name, value, "a list of objects")
        return good

    def object(self, name: str) -> Mapping[str, Any]:
        """An object; empty when absent or none."""
        value = self.record.get(name)
        if value is None:
            return {}
        if isinstance(value, dict):
            return value
        self._bad(name, value, "an object")
        return {}

    def find(self, notice: Notice, name: str, value: Any, expected: str) -> None:
        self.findings.append(
            Finding(notice, f"{self.place}{name} is {short_repr(value)}, expected {expected}")
        )

    def closed(self, known: Collection[str]) -> None:
        """Notes the names of fields that the format does not have."""
        unknown = sorted(f"{self.place}{name}" for name in self.record if name not in known)
        if unknown:
            detail = ", ".join(unknown)[:LONGEST_LIST]
            self.findings.append(Finding(Notice.UNKNOWN_FIELD, detail))

    def _bad(self, name: str, value: Any, expected: str) -> None:
        self.find(Notice.BAD_FIELD, name, value, expected)


def short_repr(value: Any) -> str:
    """A value in at most `LONGEST_SHOWN` characters, whatever it is."""
    text = SHORT.repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."


def read_moment(value: Any) -> datetime.datetime | None:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            if not math.isfinite(value):
                return None
            return EPOCH + datetime.timedelta(seconds=value)
        if not isinstance(value, str) or not DATE.match(value.strip()):
            return None  # Python would read milliseconds as a year and some days
        read = datetime.datetime.fromisoformat(value.strip())
        return (read if read.tzinfo else read.replace(tzinfo=datetime.UTC)).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        return None


def opened(path: Path, errors: str = "backslashreplace") -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors=errors, newline="\n")
    return path.open(encoding="utf-8-sig", errors=errors, newline="\n")


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
    """The text that a browser would show."""
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


SHORT_LINK = re.compile(r"https?://[\w.-]+/\w+", re.ASCII)


def plain_text(text: str, links: Mapping[str, str]) -> str:
    # Just these three: a general decoder would also undo what the author typed, and trips over
    # endless numbers. First, because an address is not escaped.
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return SHORT_LINK.sub(lambda found: links.get(found[0], found[0]), text).strip()
