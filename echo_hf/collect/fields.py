"""Read records and their fields: texts, links, times, numbers; what does not fit is a finding."""

from __future__ import annotations

import datetime
import gzip
import html
import json
import math
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import Repr
from typing import Any, TextIO

from echo_hf.collect.sources.base import Finding, Parsed, Post, json_documents, numbered_lines
from echo_hf.collect.urls import canonical_url, web_url
from echo_hf.reasons import Notice, Reject
from echo_hf.tables import POSTS

Json = Mapping[str, Any]
LONGEST_SHOWN = 80
LONGEST_LIST = 200
DEEPEST = 500  # Python reads no JSON that nests much deeper
# repr itself recurses into what a record nests, and a record may nest as deep as Python can go.
SHORT = Repr()
SHORT.maxlevel, SHORT.maxstring, SHORT.maxother = 2, LONGEST_SHOWN, LONGEST_SHOWN
LARGEST = 2**63 - 1
COUNTS = tuple(POSTS.schema.field("engagement").type.names)
DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{8}(?!\d)")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[^"\[\]{}]+|.', re.DOTALL)


@dataclass
class Fields:
    record: Json
    findings: list[Finding] = field(default_factory=list)
    place: str = ""

    def text(self, name: str) -> str | None:
        value = self._of(name, str, "a text")
        return None if value is None else self._clean(name, value)

    def address(self, name: str) -> str | None:
        return self._read(name, lambda text: canonical_url(text, fragment=True), "an address")

    def link(self, name: str) -> str | None:
        # Some platforms escape addresses as if they stood in a page.
        return self._read(name, lambda text: web_url(text.replace("&amp;", "&")), "a web address")

    def moment(self, name: str) -> datetime.datetime | None:
        value = self.record.get(name)
        read = read_moment(value)
        if value is not None and read is None:
            expected = "an ISO 8601 date or seconds since 1970"
            self.bad(name, value, expected, Notice.BAD_TIMESTAMP)
        return read

    def count(self, name: str) -> int | None:
        value: int | None = self._of(name, int, "a whole number")
        if value is None or (0 <= value <= LARGEST and not isinstance(value, bool)):
            return value
        self.bad(name, value, "a whole number")
        return None

    def engagement(self, names: Mapping[str, str]) -> dict[str, int | None] | None:
        counts = {ours: self.count(names[ours]) if ours in names else None for ours in COUNTS}
        return counts if any(count is not None for count in counts.values()) else None

    def texts(self, name: str) -> list[str]:
        value: list[Any] = self._of(name, list, "a list of texts") or []
        good = [self._clean(name, item) for item in value if isinstance(item, str) and item.strip()]
        if len(good) < len(value):
            self.bad(name, value, "a list of texts")
        return good

    def parts(self, name: str) -> list[Fields]:
        value: list[Any] = self._of(name, list, "a list of objects") or []
        good = [one for one in value if isinstance(one, dict)]
        if len(good) < len(value):
            self.bad(name, value, "a list of objects")
        return [Fields(one, self.findings, f"{self.place}{name}.") for one in good]

    def part(self, name: str) -> Fields:
        value = self._of(name, dict, "an object") or {}
        return Fields(value, self.findings, f"{self.place}{name}.")

    def bad(self, name: str, value: Any, expected: str, notice: Notice = Notice.BAD_FIELD) -> None:
        self.note(notice, f"{self.place}{name} is {short_repr(value)}, expected {expected}")

    def note(self, notice: Notice, detail: str) -> None:
        self.findings.append(Finding(notice, detail))

    def closed(self, known: Collection[str]) -> None:
        if not frozenset(known).issuperset(self.record):
            unknown = sorted(f"{self.place}{name}" for name in self.record if name not in known)
            self.note(Notice.UNKNOWN_FIELD, ", ".join(unknown)[:LONGEST_LIST])

    def _of(self, name: str, kind: type, expected: str) -> Any:
        value = self.record.get(name)
        if value is None or isinstance(value, kind):
            return value
        self.bad(name, value, expected)
        return None

    def _read(self, name: str, read: Callable[[str], str | None], expected: str) -> str | None:
        value = self.text(name)
        found = None if value is None else read(value)
        if value is not None and found is None:
            self.bad(name, value, expected)
        return found

    def _clean(self, name: str, value: str) -> str:
        """A text without what no table can hold: half characters and NUL."""
        if value.isascii() and "\0" not in value:
            return value
        cleaned = value.encode("utf-8", "replace").decode().replace("\x00", "")
        if cleaned != value:
            self.bad(name, value, "a text without NUL or half characters")
        return cleaned


def short_repr(value: Any) -> str:
    """A value in at most `LONGEST_SHOWN` characters, whatever it is."""
    text = SHORT.repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."


def read_moment(value: Any) -> datetime.datetime | None:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return EPOCH + datetime.timedelta(seconds=value) if math.isfinite(value) else None
        if not isinstance(value, str) or not DATE.match(value.strip()):
            return None  # Python would read milliseconds as a year and some days
        read = datetime.datetime.fromisoformat(value.strip())
        return (read if read.tzinfo else read.replace(tzinfo=datetime.UTC)).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        return None


def read_json(text: str) -> Any:
    """What a JSON text holds, cut where it nests too deeply; null for one that is none."""
    try:
        return json.loads(text)
    except RecursionError:
        pass
    except ValueError:
        return None
    depth, kept = 0, list[str]()
    for token in TOKEN.findall(text):
        depth += token in ("[", "{")
        if depth <= DEEPEST:
            kept.append(token)
        elif depth == DEEPEST + 1 and token in ("[", "{"):
            kept.append('"nested too deeply"')
        depth -= token in ("]", "}")
    try:
        return json.loads("".join(kept))
    except ValueError:
        return None


def name_of(identifier: Any) -> str | None:
    usable = isinstance(identifier, str | int) and not isinstance(identifier, bool)
    return str(identifier) if usable else None


def opened(path: Path, errors: str = "backslashreplace") -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors=errors, newline="\n")
    return path.open(encoding="utf-8-sig", errors=errors, newline="\n")


class Lines(ABC):
    expected: str

    @abstractmethod
    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        """Yields posts and findings, and as an object a nested post, which no search found."""

    def refused(self, reason: Reject, record: Json, *names: str) -> Finding:
        shown = [f"{name} is {short_repr(record.get(name))}" for name in names]
        shown = shown or [f"keys are {short_repr(sorted(record))}"]
        return Finding(reason, f"{', '.join(shown)}, expected {self.expected}")

    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        return numbered_lines(lines)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        if not isinstance(record, dict):
            yield Finding(Reject.NOT_A_POST, f"{short_repr(record)}, expected {self.expected}")
            return
        if record.keys() == {"_findings"}:
            for detail in Fields(record).texts("_findings"):
                yield Finding(Notice.BAD_FIELD, detail)
            return
        beside = record.get("_included") or record.get("_came_along")
        waiting: deque[tuple[Json, Sequence[str]]] = deque([(record, () if beside else keywords)])
        while waiting:  # a quote of a quote of a quote
            one, found = waiting.popleft()
            fields, is_post = Fields(one), False
            for parsed in self.read(fields, list(found)):
                if isinstance(parsed, Mapping):
                    waiting.append((parsed, ()))
                else:
                    is_post = is_post or isinstance(parsed, Post)
                    yield parsed
            yield from fields.findings if is_post else ()


class Pages(Lines):
    @abstractmethod
    def parts(self, document: Any) -> Iterable[tuple[str, Any]] | None:
        """The records of a page, each with its place; null for a document that is none."""

    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        """One post a record; what is no page stays as it is, to be rejected by name."""
        for place, text in json_documents(lines):
            parts = self.parts(read_json(text))
            if parts is None:
                yield place, text
            else:
                yield from ((f"{place}{part}", json.dumps(record)) for part, record in parts)


# No parser: the standard library's needs quadratic time for a page of open tags, and stops at
# some declarations. Platforms write plain markup, in which `<` and `>` stand for tags alone.
TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)(?:[\s/][^<>]*)?>", re.ASCII | re.IGNORECASE)
# Python refuses to read a number of thousands of digits; no character has more than seven.
ENDLESS = re.compile(r"&#[0-9]{8,};?", re.ASCII)
BEFORE_LINE_END = re.compile(r"(?<! ) +\n")  # begins at a run's first blank: no run is read twice
BLANK_LINES = re.compile(r"\n{3,}")
LINE_BREAKS = frozenset({"br", "li", "tr", "div", "blockquote"})
PARAGRAPHS = frozenset({"p", "ul", "ol", "pre", "table", "h1", "h2", "h3"})
UNSEEN = frozenset({"script", "style", "template", "noscript"})
WHITE = re.compile(r"[ \t\r\n]+")


def text_of_html(markup: str) -> str:
    parts: list[str] = []
    unseen, as_it_is, end = "", False, 0
    for tag in [*TAG.finditer(markup), None]:
        text = markup[end : tag.start() if tag else len(markup)]
        if not unseen:
            # White space as a browser shows it: one blank, and none at the beginning of a line.
            begins = bool(parts) and parts[-1].endswith("\n")
            shown = text if as_it_is else WHITE.sub(" ", text)
            parts.append(shown.lstrip(" ") if begins and not as_it_is else shown)
        if tag is None:
            break
        closes, name, end = tag[1] == "/", tag[2].lower(), tag.end()
        if unseen:
            unseen = "" if closes and name == unseen else unseen
        elif name in UNSEEN and not closes:
            unseen = name
        elif name in PARAGRAPHS | LINE_BREAKS:
            parts.append("\n\n" if name in PARAGRAPHS else "\n")
            as_it_is = not closes if name == "pre" else as_it_is
    decoded = html.unescape(ENDLESS.sub("\ufffd", "".join(parts)))
    return BLANK_LINES.sub("\n\n", BEFORE_LINE_END.sub("\n", decoded)).strip()


SHORT_LINK = re.compile(r"https?://[\w.-]+/\w+", re.ASCII)


def plain_text(text: str, links: Mapping[str, str]) -> str:
    # Just these three: a general decoder would also undo what the author typed, and trips over
    # endless numbers. First, because an address is not escaped.
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return SHORT_LINK.sub(lambda found: links.get(found[0], found[0]), text).strip()
