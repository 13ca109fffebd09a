"""Read the fields of records: texts, links, times, numbers; values that do not fit are findings."""

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

from echo_hf.collect.sources.base import (
    Finding,
    Parsed,
    Post,
    PostNotice,
    PostReject,
    number_lines,
    split_json,
)
from echo_hf.collect.urls import canonical_url, web_url
from echo_hf.tables import POSTS

Json = Mapping[str, Any]
MAX_REPR = 80
MAX_DETAIL_CHARACTERS = 200
MAX_JSON_DEPTH = 500  # Python cannot parse JSON that nests much deeper
# `repr` recurses, and would fail on a record that nests very deep.
REPR = Repr()
REPR.maxlevel, REPR.maxstring, REPR.maxother = 2, MAX_REPR, MAX_REPR
MAX_COUNT = 2**63 - 1
COUNTS = tuple(POSTS.schema.field("engagement").type.names)
DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{8}(?!\d)")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[^"\[\]{}]+|.', re.DOTALL)
# Not parsed by `html.parser`: it needs quadratic time for a page of open tags, and stops at
# some declarations. Platforms write plain markup, in which `<` and `>` only mark tags.
TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)(?:[\s/][^<>]*)?>", re.ASCII | re.IGNORECASE)
# Python refuses to parse thousands of digits; no character's number has more than seven.
ENDLESS_REFERENCE = re.compile(r"&#[0-9]{8,};?", re.ASCII)
BEFORE_LINE_END = re.compile(r"(?<! ) +\n")  # starts at a run's first blank only, for linear time
BLANK_LINES = re.compile(r"\n{3,}")
LINE_BREAK_ELEMENTS = frozenset({"br", "li", "tr", "div", "blockquote"})
PARAGRAPH_ELEMENTS = frozenset({"p", "ul", "ol", "pre", "table", "h1", "h2", "h3"})
HIDDEN_ELEMENTS = frozenset({"script", "style", "template", "noscript"})
WHITE_SPACE = re.compile(r"[ \t\r\n]+")
SHORT_LINK = re.compile(r"https?://[\w.-]+/\w+", re.ASCII)


@dataclass
class Fields:
    record: Json
    findings: list[Finding] = field(default_factory=list)
    place: str = ""

    def text(self, name: str) -> str | None:
        value = self._get_typed(name, str, "a text")
        return None if value is None else self._clean(name, value)

    def address(self, name: str) -> str | None:
        return self._parse(name, lambda text: canonical_url(text, fragment=True), "an address")

    def link(self, name: str) -> str | None:
        # Some platforms escape addresses as in HTML.
        return self._parse(name, lambda text: web_url(text.replace("&amp;", "&")), "a web address")

    def moment(self, name: str) -> datetime.datetime | None:
        value = self.record.get(name)
        moment = read_moment(value)
        if value is not None and moment is None:
            expected = "an ISO 8601 date or seconds since 1970"
            self.note_bad(name, value, expected, PostNotice.BAD_TIMESTAMP)
        return moment

    def count(self, name: str) -> int | None:
        value: int | None = self._get_typed(name, int, "a whole number")
        if value is None or (0 <= value <= MAX_COUNT and not isinstance(value, bool)):
            return value
        self.note_bad(name, value, "a whole number")
        return None

    def engagement(self, names: Mapping[str, str]) -> dict[str, int | None] | None:
        counts = {name: self.count(names[name]) if name in names else None for name in COUNTS}
        return counts if any(count is not None for count in counts.values()) else None

    def texts(self, name: str) -> list[str]:
        value: list[Any] = self._get_typed(name, list, "a list of texts") or []
        good = [self._clean(name, item) for item in value if isinstance(item, str) and item.strip()]
        if len(good) < len(value):
            self.note_bad(name, value, "a list of texts")
        return good

    def parts(self, name: str) -> list[Fields]:
        value: list[Any] = self._get_typed(name, list, "a list of objects") or []
        objects = [part for part in value if isinstance(part, dict)]
        if len(objects) < len(value):
            self.note_bad(name, value, "a list of objects")
        return [Fields(part, self.findings, f"{self.place}{name}.") for part in objects]

    def part(self, name: str) -> Fields:
        value = self._get_typed(name, dict, "an object") or {}
        return Fields(value, self.findings, f"{self.place}{name}.")

    def note_bad(
        self, name: str, value: Any, expected: str, notice: PostNotice = PostNotice.BAD_FIELD
    ) -> None:
        self.note(notice, f"{self.place}{name} is {short_repr(value)}, expected {expected}")

    def note(self, notice: PostNotice, detail: str) -> None:
        self.findings.append(Finding(notice, detail))

    def note_unknown(self, known_names: Collection[str]) -> None:
        if not frozenset(known_names).issuperset(self.record):
            unknown = sorted(
                f"{self.place}{name}" for name in self.record if name not in known_names
            )
            self.note(PostNotice.UNKNOWN_FIELD, ", ".join(unknown)[:MAX_DETAIL_CHARACTERS])

    def _get_typed(self, name: str, expected_type: type, expected: str) -> Any:
        value = self.record.get(name)
        if value is None or isinstance(value, expected_type):
            return value
        self.note_bad(name, value, expected)
        return None

    def _parse(self, name: str, parse: Callable[[str], str | None], expected: str) -> str | None:
        value = self.text(name)
        parsed = None if value is None else parse(value)
        if value is not None and parsed is None:
            self.note_bad(name, value, expected)
        return parsed

    def _clean(self, name: str, value: str) -> str:
        """Remove what no table can hold: lone surrogates and NUL."""
        if value.isascii() and "\0" not in value:
            return value
        cleaned = value.encode("utf-8", "replace").decode().replace("\x00", "")
        if cleaned != value:
            self.note_bad(name, value, "a text without NUL or half characters")
        return cleaned


def short_repr(value: Any) -> str:
    """Show any value in at most `MAX_REPR` characters."""
    text = REPR.repr(value)
    return text if len(text) <= MAX_REPR else text[: MAX_REPR - 3] + "..."


def read_moment(value: Any) -> datetime.datetime | None:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return EPOCH + datetime.timedelta(seconds=value) if math.isfinite(value) else None
        if not isinstance(value, str) or not DATE.match(value.strip()):
            return None  # Python would read milliseconds as a year and some days
        moment = datetime.datetime.fromisoformat(value.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return moment.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        return None


def read_json(text: str) -> Any:
    """Parse JSON, cut where it nests too deeply; return null for a text that is not JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        pass
    except ValueError:
        return None
    depth = 0
    kept_tokens: list[str] = []
    for token in TOKEN.findall(text):
        depth += token in ("[", "{")
        if depth <= MAX_JSON_DEPTH:
            kept_tokens.append(token)
        elif depth == MAX_JSON_DEPTH + 1 and token in ("[", "{"):
            kept_tokens.append('"nested too deeply"')
        depth -= token in ("]", "}")
    try:
        return json.loads("".join(kept_tokens))
    except ValueError:
        return None


def as_name(identifier: Any) -> str | None:
    usable = isinstance(identifier, str | int) and not isinstance(identifier, bool)
    return str(identifier) if usable else None


def open_text(path: Path, errors: str = "backslashreplace") -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors=errors, newline="\n")
    return path.open(encoding="utf-8-sig", errors=errors, newline="\n")


class Lines(ABC):
    expected: str

    @abstractmethod
    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        """Yield posts and findings; a nested post, which no search found, comes as an object."""

    def reject(self, reason: PostReject, record: Json, *names: str) -> Finding:
        descriptions = [f"{name} is {short_repr(record.get(name))}" for name in names]
        descriptions = descriptions or [f"keys are {short_repr(sorted(record))}"]
        return Finding(reason, f"{', '.join(descriptions)}, expected {self.expected}")

    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        return number_lines(lines)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        if not isinstance(record, dict):
            yield Finding(PostReject.NOT_A_POST, f"{short_repr(record)}, expected {self.expected}")
            return
        if record.keys() == {"_findings"}:
            for detail in Fields(record).texts("_findings"):
                yield Finding(PostNotice.BAD_FIELD, detail)
            return
        beside = record.get("_included") or record.get("_came_along")
        pending: deque[tuple[Json, Sequence[str]]] = deque([(record, () if beside else keywords)])
        while pending:  # a quote of a quote of a quote
            current, current_keywords = pending.popleft()
            fields, is_post = Fields(current), False
            for parsed in self.read(fields, list(current_keywords)):
                if isinstance(parsed, Mapping):
                    pending.append((parsed, ()))
                else:
                    is_post = is_post or isinstance(parsed, Post)
                    yield parsed
            yield from fields.findings if is_post else ()


class Pages(Lines):
    @abstractmethod
    def split_page(self, document: Any) -> Iterable[tuple[str, Any]] | None:
        """Return the records of a page with their places; null for a document that is none."""

    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield one post per record; what is not a page stays whole, to be rejected by name."""
        for place, text in split_json(lines):
            parts = self.split_page(read_json(text))
            if parts is None:
                yield place, text
            else:
                yield from ((f"{place}{part}", json.dumps(record)) for part, record in parts)


def text_of_html(markup: str) -> str:
    parts: list[str] = []
    hidden_element, preformatted, end = "", False, 0
    for tag in [*TAG.finditer(markup), None]:
        text = markup[end : tag.start() if tag else len(markup)]
        if not hidden_element:
            # White space as a browser shows it: one blank, none at the beginning of a line.
            begins = bool(parts) and parts[-1].endswith("\n")
            visible = text if preformatted else WHITE_SPACE.sub(" ", text)
            parts.append(visible.lstrip(" ") if begins and not preformatted else visible)
        if tag is None:
            break
        closes, name, end = tag[1] == "/", tag[2].lower(), tag.end()
        if hidden_element:
            hidden_element = "" if closes and name == hidden_element else hidden_element
        elif name in HIDDEN_ELEMENTS and not closes:
            hidden_element = name
        elif name in PARAGRAPH_ELEMENTS | LINE_BREAK_ELEMENTS:
            parts.append("\n\n" if name in PARAGRAPH_ELEMENTS else "\n")
            preformatted = not closes if name == "pre" else preformatted
    decoded = html.unescape(ENDLESS_REFERENCE.sub("\ufffd", "".join(parts)))
    return BLANK_LINES.sub("\n\n", BEFORE_LINE_END.sub("\n", decoded)).strip()


def plain_text(text: str, links: Mapping[str, str]) -> str:
    # Only these three: a general decoder would also change what the author typed, and fails on
    # endless numbers. Before links are put in, because their addresses are not escaped.
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return SHORT_LINK.sub(lambda link: links.get(link[0], link[0]), text).strip()
