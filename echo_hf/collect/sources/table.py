"""Posts of any table (CSV, TSV, JSON lines, Parquet), through a map of its columns."""

from __future__ import annotations

import csv
import datetime
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf.collect.fields import (
    COUNTS,
    DATE,
    EPOCH,
    Json,
    opened,
    read_json,
    short_repr,
    written_json,
)
from echo_hf.collect.sources.base import Finding, Parsed, json_documents, numbered_lines, register
from echo_hf.collect.sources.jsonl import JsonLines
from echo_hf.collect.urls import web_url
from echo_hf.config.collection import SECONDS, Columns
from echo_hf.errors import ConfigError, SourceError, unknown
from echo_hf.reasons import Notice, Reject

DELIMITERS = {".csv": (",", ";", "\t"), ".tsv": ("\t",), ".tab": ("\t",)}
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
PARQUET = ".parquet"
BATCH = 2_000
LONGEST_SAID = 200
TEXTS = ("text", "author", "lang", "post_id", "platform", "missing")
ADDRESSES = ("url", "parent_url", "quoted_url")
IDENTIFIER = re.compile(r"[\w:-]+")
WHOLE = re.compile(r"(\d{1,19})(?:\.0*)?", re.ASCII)
Cells = list[str]
Rows = Iterator[tuple[str, Json | str]]  # a text is what is no row, as it stands


@register("table")
class TableOfPosts:
    keyword_sign = r'"keywords": '
    split = staticmethod(numbered_lines)

    def records(self, path: Path, columns: Columns) -> Iterator[tuple[str, str]]:
        names, options = columns.names, columns.options
        for place, row in table_rows(path, list(names.values())):
            if isinstance(row, str):
                yield place, row
                continue
            given = {field: row.get(name) for field, name in names.items()}
            try:
                known = {
                    field: value
                    for field, value in given.items()
                    # The float that is no number differs from itself.
                    if value is not None and value == value and str(value).strip()
                }
                record = {"row": known, **({"read": options} if options else {})}
                yield place, json.dumps(record, default=_as_json)
            except RecursionError:
                yield place, json.dumps({"broken_row": "it nests too deeply"})

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        row = record.get("row") if isinstance(record, dict) else None
        if isinstance(record, dict) and "broken_row" in record:
            yield Finding(Reject.BROKEN_ROW, str(record["broken_row"]))
        elif not isinstance(row, dict):
            yield Finding(Reject.NOT_A_POST, f"{short_repr(record)}, expected a row of a table")
        else:
            findings: list[Finding] = []
            line = _line(row, record.get("read"), findings)
            yield from JsonLines().posts(line, keywords)
            yield from findings


def table_rows(path: Path, columns: Sequence[str]) -> Rows:
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix == PARQUET:
        yield from _parquet(path, columns)
    elif suffix in JSON_SUFFIXES:
        with opened(path) as lines:
            yield from _json(path, lines, columns)
    elif suffix in DELIMITERS:
        with opened(path, errors="surrogateescape") as lines:
            yield from _delimited(path, lines, columns, DELIMITERS[suffix])
    else:
        expected = ", ".join((*DELIMITERS, *JSON_SUFFIXES, PARQUET))
        raise SourceError(f"{str(path)!r} is not a table by its name: expected one of {expected}")


def _parquet(path: Path, columns: Sequence[str]) -> Rows:
    def cell_of(cell: pa.Scalar) -> Any:
        try:
            return cell.as_py()
        except (ValueError, OverflowError) as error:
            return {str(cell.type): str(error)}  # an object, which no field takes

    with path.open("rb") as file, pq.ParquetFile(file) as table:
        _check(path, columns, table.schema_arrow.names)
        number = 0
        for batch in table.iter_batches(BATCH, columns=list(dict.fromkeys(columns))):
            try:
                rows = batch.to_pylist()
            except (ValueError, OverflowError):  # a time beyond Python's, a text that is no UTF-8
                cells = zip(*([cell_of(one) for one in column] for column in batch), strict=True)
                rows = [dict(zip(batch.schema.names, row, strict=True)) for row in cells]
            for row in rows:
                number += 1
                yield f":{number}", row


def _json(path: Path, lines: Iterable[str], columns: Sequence[str]) -> Rows:
    seen: dict[str, None] = {}
    for place, text in json_documents(lines):
        document = read_json(text)
        rows = [(place, document)]
        if isinstance(document, list):
            rows = [(f"{place}#{number}", one) for number, one in enumerate(document)]
        for part, row in rows:
            if isinstance(row, dict):
                seen.update(dict.fromkeys(row))
                yield part, {name: row[name] for name in columns if name in row}
            else:
                yield part, text if row is document else written_json(row)
    if seen:  # a line need not have every column
        _check(path, columns, list(seen))


def _delimited(
    path: Path, lines: Iterable[str], columns: Sequence[str], delimiters: Sequence[str]
) -> Rows:
    rest, head = iter(lines), list[str]()
    for line in rest:
        head.append(line)
        if line.strip():
            break
    first = head[-1] if head else ""
    if "\x00" in first:
        raise SourceError(f"{str(path)!r} is not a UTF-8 text: save the table as UTF-8")
    rows = csv_rows(chain(head, rest), delimiter_of(first, columns, delimiters))
    named = next((one for _, one in rows if any(cell.strip() for cell in one)), [])
    if isinstance(named, str):
        expected = "expected names of columns, and lines that end with a line feed"
        raise SourceError(f"cannot read the header of {str(path)!r} ({named[:80]}): {expected}")
    names = [name.strip() for name in named]
    _check(path, columns, names)
    at = {name: names.index(name) for name in columns}
    for number, cells in rows:
        wrong = cells if isinstance(cells, str) else None
        row = {}
        if wrong is None and cells and len(cells) != len(names):
            wrong = f"{len(cells)} cells, the header has {len(names)}: {cells}"
        elif wrong is None:
            row = {name: cells[place] for name, place in at.items()} if cells else {}
            # A byte that is no UTF-8 stands as half a character.
            broken = next((one for one in row.values() if re.search("[\ud800-\udfff]", one)), None)
            wrong = None if broken is None else f"no UTF-8: {broken!r}"
        if wrong is not None:
            said = f"line {number} is not a row: {wrong}"[:LONGEST_SAID]
            yield f":{number}", json.dumps({"broken_row": said})
        elif any(cell.strip() for cell in cells):
            yield f":{number}", row


def csv_rows(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, Cells | str]]:
    taken: list[str] = []

    def noted() -> Iterator[str]:
        for line in lines:
            taken.append(line)
            yield line

    reader = csv.reader(noted(), delimiter=delimiter, strict=True)
    while True:
        start = reader.line_num + 1
        taken.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield start, f"{error}: {taken[0].rstrip()!r}"
            for number, line in enumerate(taken[1:], start + 1):
                yield number, _alone(line, delimiter)
        else:
            yield start, cells


def delimiter_of(header: str, columns: Iterable[str], delimiters: Sequence[str]) -> str:
    """Which delimiter makes columns of a header; some programs write semicolons and call it CSV."""
    wanted, cells = set(columns), {one: _alone(header, one) for one in delimiters}
    readable = [one for one in delimiters if not isinstance(cells[one], str)]
    fitting = [one for one in readable if wanted <= {cell.strip() for cell in cells[one]}]
    return [*fitting, *(one for one in readable if one in header), delimiters[0]][0]


def _alone(line: str, delimiter: str) -> Cells | str:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        return f"{error}: {line.rstrip()!r}"


def _check(path: Path, columns: Sequence[str], known: Sequence[str]) -> None:
    counts = Counter(known)
    for name in columns:
        if name not in counts:
            raise ConfigError(unknown("column", name, counts, f"posts: {path.name!r}"))
        if counts[name] > 1:
            raise ConfigError(
                f"posts: {path.name!r} has {counts[name]} columns {name!r}: rename all but one"
            )


def _line(row: Json, read: Any, findings: list[Finding]) -> dict[str, Any]:
    """A row as a line of our own format."""
    given = read if isinstance(read, dict) else {}
    options: dict[str, Json] = {name: one for name, one in given.items() if isinstance(one, dict)}
    line: dict[str, Any] = {}
    counts: dict[str, Any] = {}
    for name, value in row.items():
        how = options.get(name, {})
        if name in TEXTS:
            line[name] = str(value) if _is_number(value) else value
        elif name in ADDRESSES:
            line[name] = _address(value, how.get("prefix"))
        elif name in ("timestamp", "edited"):
            line[name] = _moment(name, value, how, findings)
        elif name in ("keywords", "pictures"):
            if isinstance(value, str):
                separator = how.get("separator")
                parts = value.split(separator) if isinstance(separator, str) else [value]
                value = [part.strip() for part in parts if part.strip()]
            if name == "pictures" and isinstance(value, list):
                value = [_image(one) if isinstance(one, str) else one for one in value]
            line[name] = value
        elif name in COUNTS:
            # As tables write it: 12, "12", or 12.0 where other rows have none.
            found = WHOLE.fullmatch(value.strip()) if isinstance(value, str) else None
            whole = int(value) if isinstance(value, float) and value.is_integer() else value
            counts[name] = int(found[1]) if found else whole
    return {**line, "engagement": counts} if counts else line


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _address(value: Any, prefix: Any) -> Any:
    if not isinstance(prefix, str):
        return value
    # A spreadsheet rounds a long number to 1.9E+18, which is another post's or nobody's.
    whole = str(value) if _is_number(value) and isinstance(value, int) else value
    usable = isinstance(whole, str) and IDENTIFIER.fullmatch(whole.strip())
    return f"{prefix}{whole.strip()}" if usable else value


def _image(value: str) -> dict[str, str]:
    is_address = web_url(value) is not None or re.match(r"[A-Za-z][\w+.-]*:", value)
    return {"url": value} if is_address else {"path": value}


def _moment(name: str, value: Any, options: Json, findings: list[Finding]) -> str | None:
    form, zone = options.get("format"), options.get("zone")
    moment: datetime.datetime | None = None
    expected = f"a time as {form!r}" if form else "an ISO 8601 date or seconds since 1970"
    try:
        text = str(value).strip()
        if form in SECONDS or (form is None and _is_number(value)):
            seconds = float(value) * SECONDS.get(str(form), 1.0)
            moment = EPOCH + datetime.timedelta(seconds=seconds)
        elif isinstance(form, str):
            moment = datetime.datetime.strptime(text, form)
        elif DATE.match(text):
            moment = datetime.datetime.fromisoformat(text)
        if moment is not None and moment.tzinfo is None:
            expected = f"a zone, or one told by columns.{name}.zone"
            moment = moment.replace(tzinfo=ZoneInfo(zone)) if isinstance(zone, str) else None
            moment = moment and moment.astimezone(datetime.UTC)
    except (ValueError, TypeError, OverflowError, OSError, LookupError, re.error):
        moment = None
    if moment is None:
        detail = f"{name} is {short_repr(value)}, expected {expected}"
        findings.append(Finding(Notice.BAD_TIMESTAMP, detail))
    return moment.isoformat() if moment else None


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return list(value) if isinstance(value, Iterable) else str(value)
