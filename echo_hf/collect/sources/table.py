"""Posts of any table, through a map that says which of its columns is what.

Each row becomes a line of our own format, and is then read as one. A time that does not say its
zone is none until the map tells one: an hour more or less moves a post to another day.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from echo_hf.collect.column_map import SECONDS, Columns
from echo_hf.collect.fields import DATE, shown
from echo_hf.collect.sources.base import Finding, Parsed, numbered_lines, register
from echo_hf.collect.sources.jsonl import COUNTS, JsonLines
from echo_hf.collect.table_rows import table_rows
from echo_hf.collect.urls import web_url
from echo_hf.reasons import Notice, Reject

TEXTS = ("text", "author", "lang", "post_id", "platform", "missing")
ADDRESSES = ("url", "parent_url", "quoted_url")
IDENTIFIER = re.compile(r"[\w:-]+")
WHOLE = re.compile(r"(\d{1,19})(?:\.0*)?", re.ASCII)
Json = Mapping[str, Any]


@register("table")
class TableOfPosts:
    """Posts of a table with columns of its own."""

    keyword_sign = r'"keywords": '
    split = staticmethod(numbered_lines)

    def records(self, path: Path, columns: Columns) -> Iterator[tuple[str, str]]:
        """Each row with the fields that the map knows, and how they are to be read."""
        names, options = columns.names, columns.options
        for place, row in table_rows(path, list(names.values())):
            if isinstance(row, str):
                yield place, row
                continue
            given = {field: row.get(name) for field, name in names.items()}
            known = {field: value for field, value in given.items() if _is_given(value)}
            record = {"row": known, **({"read": options} if options else {})}
            yield place, json.dumps(record, default=_as_json)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        """The post of a row, and what was wrong with it."""
        row = record.get("row") if isinstance(record, dict) else None
        if isinstance(record, dict) and "broken_row" in record:
            yield Finding(Reject.BROKEN_ROW, str(record["broken_row"]))
            return
        if not isinstance(row, dict):
            yield Finding(Reject.NOT_A_POST, f"{shown(record)}, expected a row of a table")
            return
        read = record.get("read")
        options = {
            name: one
            for name, one in (read if isinstance(read, dict) else {}).items()
            if isinstance(one, dict)
        }
        findings: list[Finding] = []
        line = _line(row, options, findings)
        yield from JsonLines().posts(line, keywords)
        yield from findings


def _line(row: Json, options: Mapping[str, Json], findings: list[Finding]) -> dict[str, Any]:
    """A row as a line of our own format."""
    line: dict[str, Any] = {name: _text(row[name]) for name in TEXTS if name in row}
    for name in ADDRESSES:
        if name in row:
            line[name] = _address(row[name], options.get(name, {}).get("prefix"))
    for name in ("timestamp", "edited"):
        if name in row:
            line[name] = _moment(name, row[name], options.get(name, {}), findings)
    for name in ("keywords", "pictures"):
        if name in row:
            line[name] = _list(row[name], options.get(name, {}).get("separator"))
    if isinstance(line.get("pictures"), list):
        line["pictures"] = [_picture(one) for one in line["pictures"]]
    counts = {name: _count(row[name]) for name in COUNTS if name in row}
    return {**line, "engagement": counts} if counts else line


def _text(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


def _address(value: Any, prefix: Any) -> Any:
    if not isinstance(prefix, str):
        return value
    # A spreadsheet rounds a long number to 1.9E+18, which is another post's or nobody's.
    whole = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    usable = isinstance(whole, str) and IDENTIFIER.fullmatch(whole.strip())
    return f"{prefix}{whole.strip()}" if usable else value


def _moment(name: str, value: Any, options: Json, findings: list[Finding]) -> str | None:
    form, zone = options.get("format"), options.get("zone")
    moment = _read_moment(value, form)
    if moment is not None and moment.tzinfo is None and isinstance(zone, str):
        moment = _in_zone(moment, zone)
    if moment is not None and moment.tzinfo is not None:
        return moment.isoformat()
    expected = f"a zone, or one told by columns.{name}.zone"
    if moment is None:
        expected = f"a time as {form!r}" if form else "an ISO 8601 date or seconds since 1970"
    detail = f"{name} is {shown(value)}, expected {expected}"
    findings.append(Finding(Notice.BAD_TIMESTAMP, detail))
    return None


def _read_moment(value: Any, form: Any) -> datetime.datetime | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        if form in SECONDS or (form is None and is_number):
            seconds = float(value) * SECONDS.get(form, 1.0)
            return datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(
                seconds=seconds
            )
        text = str(value).strip()
        if isinstance(form, str):
            return datetime.datetime.strptime(text, form)
        return datetime.datetime.fromisoformat(text) if DATE.match(text) else None
    except (ValueError, TypeError, OverflowError, re.error):
        return None


def _in_zone(moment: datetime.datetime, zone: str) -> datetime.datetime | None:
    try:
        return moment.replace(tzinfo=ZoneInfo(zone)).astimezone(datetime.UTC)
    except (ValueError, OSError, LookupError, OverflowError):
        return None


def _list(value: Any, separator: Any) -> Any:
    if not isinstance(value, str):
        return value
    parts = value.split(separator) if isinstance(separator, str) and separator else [value]
    return [part.strip() for part in parts if part.strip()]


def _picture(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    is_address = web_url(value) is not None or re.match(r"[A-Za-z][\w+.-]*:", value)
    return {"url": value} if is_address else {"path": value}


def _count(value: Any) -> Any:
    """A count as tables write it: 12, "12", or 12.0 where other rows have none."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    found = WHOLE.fullmatch(value.strip()) if isinstance(value, str) else None
    return int(found[1]) if found else value


def _is_given(value: Any) -> bool:
    is_number = value == value  # the float that is no number differs from itself
    return value is not None and is_number and not (isinstance(value, str) and not value.strip())


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return list(value) if isinstance(value, Iterable) else str(value)
