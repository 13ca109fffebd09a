"""Posts of any table (CSV, TSV, JSON lines, Parquet), through a map of its columns."""

from __future__ import annotations

import csv
import datetime
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf.collect.fields import DATE, opened, short_repr
from echo_hf.collect.sources.base import Finding, Parsed, json_documents, numbered_lines, register
from echo_hf.collect.sources.jsonl import COUNTS, JsonLines
from echo_hf.collect.urls import web_url
from echo_hf.config.collection import SECONDS, Columns
from echo_hf.errors import ConfigError, SourceError, unknown
from echo_hf.reasons import Notice, Reject

Cells = list[str]


def csv_rows(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, Cells | str]]:
    taken: list[str] = []
    reader = csv.reader(_noted(lines, taken), delimiter=delimiter, strict=True)
    while True:
        start = reader.line_num + 1
        taken.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield start, _said(error, taken[0])
            for number, line in enumerate(taken[1:], start + 1):
                yield number, _alone(line, delimiter)
        else:
            yield start, cells


def delimiter_of(header: str, columns: Iterable[str], delimiters: Iterable[str]) -> str:
    """Which delimiter makes columns of a header; some programs write semicolons and call it CSV."""
    every = list(delimiters)
    readable = {one: cells for one in every if not isinstance(cells := _alone(header, one), str)}
    names = {one: {cell.strip() for cell in cells} for one, cells in readable.items()}
    fitting = (one for one in names if names[one].issuperset(columns))
    return next(fitting, next((one for one in readable if one in header), every[0]))


def _noted(lines: Iterable[str], taken: list[str]) -> Iterator[str]:
    for line in lines:
        taken.append(line)
        yield line


def _alone(line: str, delimiter: str) -> Cells | str:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        return _said(error, line)


def _said(error: csv.Error, line: str) -> str:
    return f"{error}: {line.rstrip()!r}"


DELIMITERS = {".csv": (",", ";", "\t"), ".tsv": ("\t",), ".tab": ("\t",)}
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
PARQUET = ".parquet"
BATCH = 2_000
LONGEST_SAID = 200
Row = Mapping[str, Any]


def table_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Row | str]]:
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix == PARQUET:
        yield from _parquet(path, columns)
        return
    if suffix not in DELIMITERS and suffix not in JSON_SUFFIXES:
        expected = ", ".join((*DELIMITERS, *JSON_SUFFIXES, PARQUET))
        raise SourceError(f"{str(path)!r} is not a table by its name: expected one of {expected}")
    if suffix in JSON_SUFFIXES:
        with opened(path) as lines:
            yield from _json(path, lines, columns)
    else:
        with opened(path, errors="surrogateescape") as lines:
            yield from _delimited(path, lines, columns, DELIMITERS[suffix])


def _parquet(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
    wanted = list(dict.fromkeys(columns))
    with path.open("rb") as file, pq.ParquetFile(file) as table:
        _check(path, columns, table.schema_arrow.names)
        number = 0
        for batch in table.iter_batches(BATCH, columns=wanted):
            for row in _rows(batch):
                number += 1
                yield f":{number}", row


def _rows(batch: pa.RecordBatch) -> list[Row]:
    try:
        rows: list[Row] = batch.to_pylist()
    except (ValueError, OverflowError):  # a time beyond Python's, a text that is no UTF-8
        names = batch.schema.names
        columns = [[_value(cell) for cell in column] for column in batch.columns]
        rows = [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]
    return rows


def _value(cell: pa.Scalar) -> Any:
    """A cell as Python has it; an object, which no field takes, where Python has no such value."""
    try:
        return cell.as_py()
    except (ValueError, OverflowError) as error:
        return {str(cell.type): str(error)}


def _json(
    path: Path, lines: Iterable[str], columns: Sequence[str]
) -> Iterator[tuple[str, Row | str]]:
    seen: dict[str, None] = {}
    for place, row in _values(lines):
        if isinstance(row, dict):
            seen.update(dict.fromkeys(row))
            yield place, {name: row[name] for name in columns if name in row}
        else:
            yield place, row
    if seen:  # a line need not have every column
        _check(path, columns, list(seen))


def _values(lines: Iterable[str]) -> Iterator[tuple[str, Any]]:
    for place, text in json_documents(lines):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            yield place, text
            continue
        if isinstance(document, list):
            for number, one in enumerate(document):
                yield f"{place}#{number}", one if isinstance(one, dict) else json.dumps(one)
        else:
            yield place, document if isinstance(document, dict) else text


def _delimited(
    path: Path, lines: Iterable[str], columns: Sequence[str], delimiters: Sequence[str]
) -> Iterator[tuple[str, Row | str]]:
    head = list(_until_filled(rest := iter(lines)))
    first = head[-1] if head else ""
    if "\x00" in first:
        raise SourceError(f"{str(path)!r} is not a UTF-8 text: save the table as UTF-8")
    rows = csv_rows(chain(head, rest), delimiter_of(first, columns, delimiters))
    names = _header(path, columns, (cells for _, cells in rows))
    at = {name: names.index(name) for name in columns}
    for number, cells in rows:
        if isinstance(cells, str):
            yield f":{number}", _no_row(number, cells)
        elif cells and len(cells) != len(names):
            said = f"{len(cells)} cells, the header has {len(names)}: {cells}"
            yield f":{number}", _no_row(number, said)
        elif any(cell.strip() for cell in cells):
            row = {name: cells[place] for name, place in at.items()}
            wrong = next((cell for cell in row.values() if not _is_utf8(cell)), None)
            yield f":{number}", row if wrong is None else _no_row(number, f"no UTF-8: {wrong!r}")


def _until_filled(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if line.strip():
            return


def _header(path: Path, columns: Sequence[str], rows: Iterator[Sequence[str]]) -> list[str]:
    cells = next((one for one in rows if any(cell.strip() for cell in one)), [])
    if isinstance(cells, str):
        expected = "expected names of columns, and lines that end with a line feed"
        raise SourceError(f"cannot read the header of {str(path)!r} ({cells[:80]}): {expected}")
    names = [name.strip() for name in cells]
    _check(path, columns, names)
    return names


def _no_row(line: int, said: str) -> str:
    return json.dumps({"broken_row": f"line {line} is not a row: {said}"[:LONGEST_SAID]})


def _is_utf8(cell: str) -> bool:
    """Whether all bytes were; one that is not stands as half a character."""
    try:
        return cell.isascii() or bool(cell.encode())
    except UnicodeEncodeError:
        return False


def _check(path: Path, columns: Sequence[str], known: Sequence[str]) -> None:
    counts = Counter(known)
    for name in columns:
        if name not in counts:
            raise ConfigError(unknown("column", name, counts, f"posts: {path.name!r}"))
        if counts[name] > 1:
            raise ConfigError(
                f"posts: {path.name!r} has {counts[name]} columns {name!r}: rename all but one"
            )


TEXTS = ("text", "author", "lang", "post_id", "platform", "missing")
ADDRESSES = ("url", "parent_url", "quoted_url")
IDENTIFIER = re.compile(r"[\w:-]+")
WHOLE = re.compile(r"(\d{1,19})(?:\.0*)?", re.ASCII)
Json = Mapping[str, Any]


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
            known = {field: value for field, value in given.items() if _is_given(value)}
            record = {"row": known, **({"read": options} if options else {})}
            yield place, json.dumps(record, default=_as_json)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        row = record.get("row") if isinstance(record, dict) else None
        if isinstance(record, dict) and "broken_row" in record:
            yield Finding(Reject.BROKEN_ROW, str(record["broken_row"]))
            return
        if not isinstance(row, dict):
            yield Finding(Reject.NOT_A_POST, f"{short_repr(record)}, expected a row of a table")
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
        line["pictures"] = [_image(one) for one in line["pictures"]]
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
    detail = f"{name} is {short_repr(value)}, expected {expected}"
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


def _image(value: Any) -> Any:
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
