"""Posts in our own format, and of any table (CSV, TSV, JSON lines, Parquet) by its columns.

Our own format is one JSON object a line, with the columns of the posts table:

| field | value |
|---|---|
| `url` | address of the post (required) |
| `text`, `author`, `lang`, `post_id`, `platform` | texts; the last two follow from the address |
| `timestamp` | ISO 8601, or seconds since 1970; without a zone it is UTC |
| `edited` | when its text was last changed, for a post that is in the files more than once |
| `keywords` | list of the search terms that found it, empty for replies; without it the config's |
| `pictures` | list of `{"path": ...}`, relative to the file, or `{"url": ...}`; with `alt_text` |
| `parent_url`, `quoted_url` | the post it replies to; the post it quotes |
| `engagement` | `{"likes", "views", "reposts", "replies", "bookmarks"}`, whole numbers |
| `missing` | why the content is not there: deleted, protected, blocked, not_found, not_fetched |
"""

from __future__ import annotations

import csv
import datetime
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from echo_hf._infra.parquet import opened_parquet
from echo_hf.collect.fields import (
    COUNTS,
    EPOCH,
    Fields,
    Json,
    opened,
    read_json,
    read_moment,
    short_repr,
)
from echo_hf.collect.sources.base import (
    Finding,
    Parsed,
    Post,
    PostImage,
    json_documents,
    numbered_lines,
    register,
)
from echo_hf.collect.urls import canonical_url, web_url
from echo_hf.config.collection import SECONDS, Columns
from echo_hf.errors import ConfigError, SourceError, unknown
from echo_hf.reasons import Missing, Notice, Reject
from echo_hf.tables import POSTS

KNOWN = frozenset(POSTS.columns) - {"relevance"} | {"edited"}
IMAGE_FIELDS = frozenset({"path", "url", "alt_text"})


@register("jsonl")
class JsonLines:
    keyword_sign = r'"keywords"\s*:\s*\[\s*"'
    split = staticmethod(numbered_lines)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        """The post of a line, and what was wrong with it."""
        if not isinstance(record, dict):
            yield Finding(Reject.NOT_A_POST, f"{type(record).__name__}, expected an object")
            return
        url = canonical_url(given := record.get("url"), fragment=True)
        if url is None:
            yield Finding(Reject.NO_URL, f"url is {short_repr(given)}, expected a web address")
            return
        fields = Fields(record)
        fields.closed(KNOWN)
        own, missing = fields.texts("keywords"), fields.text("missing")
        if missing is not None and missing not in list(Missing):
            fields.bad("missing", missing, f"one of {', '.join(Missing)}")
            missing = None
        counts = fields.part("engagement")
        counts.closed(COUNTS)
        yield Post(
            url=url,
            post_id=fields.text("post_id"),
            platform=fields.text("platform"),
            author=fields.text("author"),
            text=fields.text("text"),
            timestamp=fields.moment("timestamp"),
            edited=fields.moment("edited"),
            lang=fields.text("lang"),
            keywords=own if isinstance(record.get("keywords"), list) else list(keywords),
            pictures=[_image_of(fields, one) for one in fields.parts("pictures")],
            parent_url=fields.address("parent_url"),
            quoted_url=fields.address("quoted_url"),
            engagement={name: counts.count(name) for name in COUNTS} if counts.record else None,
            missing=missing,
        )
        yield from fields.findings


def _image_of(fields: Fields, image: Fields) -> PostImage:
    image.closed(IMAGE_FIELDS)
    if not image.record.get("path") and not image.record.get("url"):
        fields.bad("pictures", image.record, "a path or a url")
    return PostImage(image.text("path") or None, image.link("url"), image.text("alt_text"))


@register("quickstart")
class Quickstart(JsonLines):
    """The posts that come with the package; they need no path."""

    @property
    def bundled(self) -> Path:
        """The file of the bundled posts."""
        return Path(str(files("echo_hf.quickstart").joinpath("posts.jsonl")))


DELIMITERS = {".csv": (",", ";", "\t"), ".tsv": ("\t",), ".tab": ("\t",)}
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
PARQUET = ".parquet"
BATCH = 2_000
LONGEST_SAID = 200
TEXTS = ("text", "author", "lang", "post_id", "platform", "missing")
ADDRESSES = ("url", "parent_url", "quoted_url")
IDENTIFIER = re.compile(r"[\w:-]+")
WHOLE = re.compile(r"(\d{1,19})(?:\.0*)?", re.ASCII)
HALF_CHARACTER = re.compile("[\ud800-\udfff]")
BROKEN = "broken_row"
Rows = Iterator[tuple[str, Any]]  # a row is an object; all else is none


@register("table")
class TableOfPosts:
    keyword_sign = r'"keywords": '
    split = staticmethod(numbered_lines)

    def records(
        self, path: Path, columns: Columns, *, rows: str | None = None
    ) -> Iterator[tuple[str, str]]:
        names, options = columns.names, columns.options
        read = {"read": options} if options else {}
        for place, row in table_rows(path, list(names.values()), rows):
            record = row
            if isinstance(row, dict) and BROKEN not in row:
                given = {field: row.get(name) for field, name in names.items()}
                record = {"row": {name: one for name, one in given.items() if _is_there(one)}}
                record |= read
            yield place, json.dumps(record, default=_as_json)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        row = record.get("row") if isinstance(record, dict) else None
        if isinstance(record, dict) and BROKEN in record:
            yield Finding(Reject.BROKEN_ROW, str(record[BROKEN]))
        elif not isinstance(row, dict):
            yield Finding(Reject.NOT_A_POST, f"{short_repr(record)}, expected a row of a table")
        else:
            findings: list[Finding] = []
            line = _line(row, record.get("read", {}), findings)
            yield from JsonLines().posts(line, keywords)
            yield from findings


def table_rows(path: Path, columns: Sequence[str], below: str | None = None) -> Rows:
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if below is not None and suffix not in JSON_SUFFIXES:
        raise SourceError(
            f"{str(path)!r} is no JSON by its name: `table: {{rows: {below}}}` is for JSON alone"
        )
    if suffix == PARQUET:
        yield from _parquet(path, columns)
    elif suffix in JSON_SUFFIXES:
        with opened(path) as lines:
            yield from _json(path, lines, columns, below)
    elif suffix in DELIMITERS:
        with opened(path, errors="surrogateescape") as lines:
            yield from _delimited(path, lines, columns, DELIMITERS[suffix])
    else:
        expected = ", ".join((*DELIMITERS, *JSON_SUFFIXES, PARQUET))
        raise SourceError(f"{str(path)!r} is not a table by its name: expected one of {expected}")


def _parquet(path: Path, columns: Sequence[str]) -> Rows:
    before = 0
    with opened_parquet(path) as table:
        _check(path, columns, table.schema.names)
        # A row that cannot be read is rejected, and those around it stay.
        for batch in table.batches(list(dict.fromkeys(columns)), rows=BATCH, check=False):
            try:
                rows = batch.to_pylist()
            except (ValueError, OverflowError):  # a time beyond Python's, a text that is no UTF-8
                rows = [_row(batch.slice(at, 1)) for at in range(batch.num_rows)]
            yield from ((f":{number}", row) for number, row in enumerate(rows, before + 1))
            before += len(rows)


def _row(batch: pa.RecordBatch) -> Json:
    try:
        return batch.to_pylist()[0]  # type: ignore[no-any-return]
    except (ValueError, OverflowError) as error:
        return {BROKEN: str(error)[:LONGEST_SAID]}


def _json(path: Path, lines: Iterable[str], columns: Sequence[str], below: str | None) -> Rows:
    seen: dict[str, None] = {}
    document: Any = None
    for place, text in json_documents(lines):
        document = read_json(text)
        if below is not None:
            document = _rows_below(path, place, document, below)
        rows = [(place, document)]
        if isinstance(document, list):
            rows = [(f"{place}#{number}", one) for number, one in enumerate(document)]
        for part, row in rows:
            if isinstance(row, dict):
                seen.update(dict.fromkeys(row))
                row = {name: row[name] for name in columns if name in row}
            yield part, text if row is None else row
    missing = [name for name in columns if name not in seen]
    key = _key_of_rows(document, missing) if seen and below is None else None
    if key is not None:
        raise ConfigError(
            f"posts: {path.name!r} has no column {missing[0]!r} at its top, where its keys are "
            f"{list(seen)!r}: its rows stand below a key, so add `table: {{rows: {key}}}`"
        )
    if seen:  # a line need not have every column
        _check(path, columns, list(seen))


def _rows_below(path: Path, place: str, document: Any, key: str) -> list[Any]:
    rows = document
    for name in key.split("."):
        rows = rows.get(name) if isinstance(rows, dict) else None
    if isinstance(rows, list):
        return rows
    keys = f"an object with {sorted(document)!r}" if isinstance(document, dict) else "no object"
    raise ConfigError(
        f"posts: {path.name!r}{place} has no list of rows below {key!r}, it is "
        f"{keys[:LONGEST_SAID]}: expected the key of the rows, such as hits or data.items"
    )


def _key_of_rows(document: Any, columns: Sequence[str]) -> str | None:
    """The key below which a document has rows with a column, null for none."""
    parts = document.items() if isinstance(document, dict) else ()
    return next(
        (
            name
            for name, part in parts
            if isinstance(part, list)
            and any(isinstance(row, dict) and not row.keys().isdisjoint(columns) for row in part)
        ),
        None,
    )


def _delimited(
    path: Path, lines: Iterable[str], columns: Sequence[str], delimiters: Sequence[str]
) -> Rows:
    rest = iter(lines)
    first = next(rest, "")
    if "\x00" in first:
        raise SourceError(f"{str(path)!r} is not a UTF-8 text: save the table as UTF-8")
    rows = csv_rows(chain([first], rest), delimiter_of(first, columns, delimiters))
    _, named = next(rows, (1, []))
    if isinstance(named, str):
        expected = "expected names of columns, and lines that end with a line feed"
        raise SourceError(f"cannot read the header of {str(path)!r} ({named[:80]}): {expected}")
    names = [name.strip() for name in named]
    _check(path, columns, names)
    at = {name: names.index(name) for name in columns}
    for number, cells in rows:
        row: dict[str, str] = {}
        if isinstance(cells, str):
            wrong: str | None = cells
        elif len(cells) != len(names):
            wrong = f"{len(cells)} cells, the header has {len(names)}: {cells}"
        else:
            row = {name: cells[place] for name, place in at.items()}
            broken = next(filter(HALF_CHARACTER.search, row.values()), None)
            wrong = broken and f"no UTF-8: {broken!r}"
        said = f"line {number} is not a row: {wrong}"[:LONGEST_SAID]
        yield f":{number}", {BROKEN: said} if wrong else row


def csv_rows(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str] | str]]:
    """Rows with their first lines; an open quotation mark spoils its own line, and no other."""
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
            rows: list[tuple[int, list[str] | str]] = [(start, next(reader))]
        except StopIteration:
            return
        except csv.Error as error:
            rows = [(start, f"{error}: {taken[0].rstrip()!r}")]
            rows += [(number, _alone(line, delimiter)) for number, line in enumerate(taken, start)][
                1:
            ]
        yield from ((number, row) for number, row in rows if any(cell.strip() for cell in row))


def delimiter_of(header: str, columns: Iterable[str], delimiters: Sequence[str]) -> str:
    """Which delimiter makes columns of a header; some programs write semicolons and call it CSV."""
    wanted = set(columns)

    def found(delimiter: str) -> int:
        cells = _alone(header, delimiter)
        return 0 if isinstance(cells, str) else len(wanted & {cell.strip() for cell in cells})

    return max(delimiters, key=lambda one: (found(one), one in header))


def _alone(line: str, delimiter: str) -> list[str] | str:
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


def _is_there(value: Any) -> bool:
    # The float that is no number differs from itself.
    return value is not None and value == value and bool(str(value).strip())


def _line(row: Json, options: Any, findings: list[Finding]) -> dict[str, Any]:
    """A row as a line of our own format."""
    line: dict[str, Any] = {}
    counts: dict[str, Any] = {}
    for name, value in row.items():
        how = options.get(name, {})
        if name in TEXTS:
            line[name] = str(value) if isinstance(value, int | float) else value
        elif name in ADDRESSES:
            line[name] = _address(value, how.get("prefix"))
        elif name in ("timestamp", "edited"):
            line[name] = _moment(name, value, how, findings)
        elif name in ("keywords", "pictures"):
            if isinstance(value, str):
                parts = value.split(how["separator"]) if "separator" in how else [value]
                value = [part.strip() for part in parts if part.strip()]
            if name == "pictures" and isinstance(value, list):
                value = [_image(one) if isinstance(one, str) else one for one in value]
            line[name] = value
        elif name in COUNTS:
            # As tables write it: 12, "12", or 12.0 where other rows have none.
            found = WHOLE.fullmatch(str(value).strip())
            counts[name] = int(found[1]) if found else value
    return {**line, "engagement": counts} if counts else line


def _address(value: Any, prefix: str | None) -> Any:
    # A spreadsheet rounds a long number to 1.9E+18, which is another post's or nobody's.
    whole = str(value).strip() if isinstance(value, int | str) else ""
    return f"{prefix}{whole}" if prefix and IDENTIFIER.fullmatch(whole) else value


def _image(value: str) -> dict[str, str]:
    is_address = web_url(value) is not None or re.match(r"[A-Za-z][\w+.-]*:", value)
    return {"url": value} if is_address else {"path": value}


def _moment(name: str, value: Any, options: Json, findings: list[Finding]) -> str | None:
    form, zone = options.get("format"), options.get("zone")
    moment: datetime.datetime | None = None
    expected = f"a time as {form!r}" if form else "an ISO 8601 date or seconds since 1970"
    try:
        if form in SECONDS:
            moment = EPOCH + datetime.timedelta(seconds=float(value) * SECONDS[form])
        elif form:
            moment = datetime.datetime.strptime(str(value).strip(), form)
        elif isinstance(value, str) and read_moment(value):
            moment = datetime.datetime.fromisoformat(value.strip())
        else:
            moment = read_moment(value)
        if moment is not None and moment.tzinfo is None:
            expected = f"a zone, or one told by columns.{name}.zone"
            moment = moment.replace(tzinfo=ZoneInfo(zone)) if zone else None
        if moment is not None:
            return moment.astimezone(datetime.UTC).isoformat()
    except (ValueError, TypeError, OverflowError, re.error):
        pass
    detail = f"{name} is {short_repr(value)}, expected {expected}"
    findings.append(Finding(Notice.BAD_TIMESTAMP, detail))
    return None


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return list(value) if isinstance(value, Iterable) else str(value)
