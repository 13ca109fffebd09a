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

from echo_hf._infra.parquet import open_parquet
from echo_hf.collect.fields import (
    COUNTS,
    EPOCH,
    Fields,
    Json,
    open_text,
    read_json,
    read_moment,
    short_repr,
)
from echo_hf.collect.sources.base import (
    Finding,
    Missing,
    Parsed,
    Post,
    PostImage,
    PostNotice,
    PostReject,
    number_lines,
    register,
    split_json,
)
from echo_hf.collect.urls import canonical_url, web_url
from echo_hf.config.collection import SECONDS_PER_UNIT, SourceColumns
from echo_hf.errors import ConfigError, SourceError, unknown
from echo_hf.tables import POSTS

POST_FIELDS = frozenset(POSTS.columns) - {"relevance"} | {"edited"}
IMAGE_FIELDS = frozenset({"path", "url", "alt_text"})
DELIMITERS = {".csv": (",", ";", "\t"), ".tsv": ("\t",), ".tab": ("\t",)}
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
PARQUET = ".parquet"
ROWS_PER_BATCH = 2_000
MAX_DETAIL_CHARACTERS = 200
TEXT_FIELDS = ("text", "author", "lang", "post_id", "platform", "missing")
ADDRESS_FIELDS = ("url", "parent_url", "quoted_url")
IDENTIFIER = re.compile(r"[\w:-]+")
WHOLE_NUMBER = re.compile(r"(\d{1,19})(?:\.0*)?", re.ASCII)
HALF_CHARACTER = re.compile("[\ud800-\udfff]")
BROKEN_ROW_KEY = "broken_row"


@register("jsonl")
class JsonLinesSource:
    keyword_sign = r'"keywords"\s*:\s*\[\s*"'
    split = staticmethod(number_lines)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        """Yield the post of a line, and the problems with it."""
        if not isinstance(record, dict):
            yield Finding(PostReject.NOT_A_POST, f"{type(record).__name__}, expected an object")
            return
        url = canonical_url(given_url := record.get("url"), fragment=True)
        if url is None:
            yield Finding(
                PostReject.NO_URL, f"url is {short_repr(given_url)}, expected a web address"
            )
            return
        fields = Fields(record)
        fields.note_unknown(POST_FIELDS)
        own_keywords, missing = fields.texts("keywords"), fields.text("missing")
        if missing is not None and missing not in list(Missing):
            fields.note_bad("missing", missing, f"one of {', '.join(Missing)}")
            missing = None
        counts = fields.part("engagement")
        counts.note_unknown(COUNTS)
        yield Post(
            url=url,
            post_id=fields.text("post_id"),
            platform=fields.text("platform"),
            author=fields.text("author"),
            text=fields.text("text"),
            timestamp=fields.moment("timestamp"),
            edited=fields.moment("edited"),
            lang=fields.text("lang"),
            keywords=own_keywords if isinstance(record.get("keywords"), list) else list(keywords),
            pictures=[_read_image(fields, image) for image in fields.parts("pictures")],
            parent_url=fields.address("parent_url"),
            quoted_url=fields.address("quoted_url"),
            engagement={name: counts.count(name) for name in COUNTS} if counts.record else None,
            missing=missing,
        )
        yield from fields.findings


def _read_image(fields: Fields, image: Fields) -> PostImage:
    image.note_unknown(IMAGE_FIELDS)
    if not image.record.get("path") and not image.record.get("url"):
        fields.note_bad("pictures", image.record, "a path or a url")
    return PostImage(image.text("path") or None, image.link("url"), image.text("alt_text"))


@register("quickstart")
class QuickstartSource(JsonLinesSource):
    """The posts that come with the package; they need no path."""

    @property
    def bundled(self) -> Path:
        """The file of the bundled posts."""
        return Path(str(files("echo_hf.quickstart").joinpath("posts.jsonl")))


Rows = Iterator[tuple[str, Any]]  # the value is an object, or else not a row


@register("table")
class TableFileSource:
    keyword_sign = r'"keywords": '
    split = staticmethod(number_lines)

    def records(
        self, path: Path, columns: SourceColumns, *, rows: str | None = None
    ) -> Iterator[tuple[str, str]]:
        names, options = columns.names, columns.options
        option_fields = {"read": options} if options else {}
        for place, row in read_table(path, list(names.values()), rows):
            record = row
            if isinstance(row, dict) and BROKEN_ROW_KEY not in row:
                cells = {field: row.get(name) for field, name in names.items()}
                record = {"row": {name: cell for name, cell in cells.items() if _has_content(cell)}}
                record |= option_fields
            yield place, json.dumps(record, default=_as_json)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        row = record.get("row") if isinstance(record, dict) else None
        if isinstance(record, dict) and BROKEN_ROW_KEY in record:
            yield Finding(PostReject.BROKEN_ROW, str(record[BROKEN_ROW_KEY]))
        elif not isinstance(row, dict):
            yield Finding(PostReject.NOT_A_POST, f"{short_repr(record)}, expected a row of a table")
        else:
            findings: list[Finding] = []
            line = _make_line(row, record.get("read", {}), findings)
            yield from JsonLinesSource().posts(line, keywords)
            yield from findings


def read_table(path: Path, columns: Sequence[str], at_key: str | None = None) -> Rows:
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if at_key is not None and suffix not in JSON_SUFFIXES:
        raise SourceError(
            f"{str(path)!r} is no JSON by its name: `table: {{rows: {at_key}}}` is for JSON alone"
        )
    if suffix == PARQUET:
        yield from _read_parquet(path, columns)
    elif suffix in JSON_SUFFIXES:
        with open_text(path) as lines:
            yield from _read_json(path, lines, columns, at_key)
    elif suffix in DELIMITERS:
        with open_text(path, errors="surrogateescape") as lines:
            yield from _read_delimited(path, lines, columns, DELIMITERS[suffix])
    else:
        expected = ", ".join((*DELIMITERS, *JSON_SUFFIXES, PARQUET))
        raise SourceError(f"{str(path)!r} is not a table by its name: expected one of {expected}")


def _read_parquet(path: Path, columns: Sequence[str]) -> Rows:
    rows_read = 0
    with open_parquet(path) as table:
        _check_columns(path, columns, table.schema.names)
        # Read rows one by one where a batch fails, so that only the broken row is rejected.
        for batch in table.iterate_batches(
            list(dict.fromkeys(columns)), rows=ROWS_PER_BATCH, check=False
        ):
            try:
                rows = batch.to_pylist()
            except (ValueError, OverflowError):  # a time out of range, a text not in UTF-8
                rows = [_read_row(batch.slice(at, 1)) for at in range(batch.num_rows)]
            yield from ((f":{number}", row) for number, row in enumerate(rows, rows_read + 1))
            rows_read += len(rows)


def _read_row(batch: pa.RecordBatch) -> Json:
    try:
        return batch.to_pylist()[0]  # type: ignore[no-any-return]
    except (ValueError, OverflowError) as error:
        return {BROKEN_ROW_KEY: str(error)[:MAX_DETAIL_CHARACTERS]}


def _read_json(
    path: Path, lines: Iterable[str], columns: Sequence[str], at_key: str | None
) -> Rows:
    seen_columns: dict[str, None] = {}
    document: Any = None
    for place, text in split_json(lines):
        document = read_json(text)
        if at_key is not None:
            document = _find_rows(path, place, document, at_key)
        rows = [(place, document)]
        if isinstance(document, list):
            rows = [(f"{place}#{number}", member) for number, member in enumerate(document)]
        for part, row in rows:
            if isinstance(row, dict):
                seen_columns.update(dict.fromkeys(row))
                row = {name: row[name] for name in columns if name in row}
            yield part, text if row is None else row
    missing = [name for name in columns if name not in seen_columns]
    key = _find_rows_key(document, missing) if seen_columns and at_key is None else None
    if key is not None:
        raise ConfigError(
            f"posts: {path.name!r} has no column {missing[0]!r} at its top, where its keys are "
            f"{list(seen_columns)!r}: its rows stand below a key, so add `table: {{rows: {key}}}`"
        )
    if seen_columns:  # a line may lack columns
        _check_columns(path, columns, list(seen_columns))


def _find_rows(path: Path, place: str, document: Any, key: str) -> list[Any]:
    rows = document
    for name in key.split("."):
        rows = rows.get(name) if isinstance(rows, dict) else None
    if isinstance(rows, list):
        return rows
    keys = f"an object with {sorted(document)!r}" if isinstance(document, dict) else "no object"
    raise ConfigError(
        f"posts: {path.name!r}{place} has no list of rows below {key!r}, it is "
        f"{keys[:MAX_DETAIL_CHARACTERS]}: expected the key of the rows, such as hits or data.items"
    )


def _find_rows_key(document: Any, columns: Sequence[str]) -> str | None:
    """Return the key below which a document has rows with a column; null for none."""
    for name, part in document.items() if isinstance(document, dict) else ():
        rows = [row for row in part if isinstance(row, dict)] if isinstance(part, list) else []
        if any(not row.keys().isdisjoint(columns) for row in rows):
            return str(name)
    return None


def _read_delimited(
    path: Path, lines: Iterable[str], columns: Sequence[str], delimiters: Sequence[str]
) -> Rows:
    stream = iter(lines)
    first = next(stream, "")
    if "\x00" in first:
        raise SourceError(f"{str(path)!r} is not a UTF-8 text: save the table as UTF-8")
    rows = read_csv_rows(chain([first], stream), choose_delimiter(first, columns, delimiters))
    _, header = next(rows, (1, []))
    if isinstance(header, str):
        expected = "expected names of columns, and lines that end with a line feed"
        raise SourceError(f"cannot read the header of {str(path)!r} ({header[:80]}): {expected}")
    names = [name.strip() for name in header]
    _check_columns(path, columns, names)
    column_positions = {name: names.index(name) for name in columns}
    for number, cells in rows:
        row: dict[str, str] = {}
        if isinstance(cells, str):
            problem: str | None = cells
        elif len(cells) != len(names):
            problem = f"{len(cells)} cells, the header has {len(names)}: {cells}"
        else:
            row = {name: cells[place] for name, place in column_positions.items()}
            bad_cell = next(filter(HALF_CHARACTER.search, row.values()), None)
            problem = bad_cell and f"no UTF-8: {bad_cell!r}"
        detail = f"line {number} is not a row: {problem}"[:MAX_DETAIL_CHARACTERS]
        yield f":{number}", {BROKEN_ROW_KEY: detail} if problem else row


def read_csv_rows(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str] | str]]:
    """Yield rows with their line numbers; an open quotation mark spoils only its own line."""
    consumed: list[str] = []

    def record_lines() -> Iterator[str]:
        for line in lines:
            consumed.append(line)
            yield line

    reader = csv.reader(record_lines(), delimiter=delimiter, strict=True)
    while True:
        start = reader.line_num + 1
        consumed.clear()
        try:
            rows: list[tuple[int, list[str] | str]] = [(start, next(reader))]
        except StopIteration:
            return
        except csv.Error as error:
            rows = [(start, f"{error}: {consumed[0].rstrip()!r}")]
            for number, line in enumerate(consumed[1:], start + 1):
                rows.append((number, _split_line(line, delimiter)))
        yield from ((number, row) for number, row in rows if any(cell.strip() for cell in row))


def choose_delimiter(header: str, columns: Iterable[str], delimiters: Sequence[str]) -> str:
    """Return the delimiter that splits a header into columns: some CSV files have semicolons."""
    names = set(columns)

    def count_columns(delimiter: str) -> int:
        cells = _split_line(header, delimiter)
        return 0 if isinstance(cells, str) else len(names & {cell.strip() for cell in cells})

    return max(delimiters, key=lambda delimiter: (count_columns(delimiter), delimiter in header))


def _split_line(line: str, delimiter: str) -> list[str] | str:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        return f"{error}: {line.rstrip()!r}"


def _check_columns(path: Path, columns: Sequence[str], known_columns: Sequence[str]) -> None:
    counts = Counter(known_columns)
    for name in columns:
        if name not in counts:
            raise ConfigError(unknown("column", name, counts, f"posts: {path.name!r}"))
        if counts[name] > 1:
            raise ConfigError(
                f"posts: {path.name!r} has {counts[name]} columns {name!r}: rename all but one"
            )


def _has_content(value: Any) -> bool:
    # NaN differs from itself.
    return value is not None and value == value and bool(str(value).strip())


def _make_line(row: Json, options: Any, findings: list[Finding]) -> dict[str, Any]:
    """Convert a row to a line of our own format."""
    line: dict[str, Any] = {}
    counts: dict[str, Any] = {}
    for name, value in row.items():
        choice = options.get(name, {})
        if name in TEXT_FIELDS:
            line[name] = str(value) if isinstance(value, int | float) else value
        elif name in ADDRESS_FIELDS:
            line[name] = _add_prefix(value, choice.get("prefix"))
        elif name in ("timestamp", "edited"):
            line[name] = _parse_moment(name, value, choice, findings)
        elif name in ("keywords", "pictures"):
            if isinstance(value, str):
                parts = value.split(choice["separator"]) if "separator" in choice else [value]
                value = [part.strip() for part in parts if part.strip()]
            if name == "pictures" and isinstance(value, list):
                value = [_make_image(image) if isinstance(image, str) else image for image in value]
            line[name] = value
        elif name in COUNTS:
            # Tables write counts as 12, "12", or 12.0 in columns with missing values.
            number = WHOLE_NUMBER.fullmatch(str(value).strip())
            counts[name] = int(number[1]) if number else value
    return {**line, "engagement": counts} if counts else line


def _add_prefix(value: Any, prefix: str | None) -> Any:
    # A spreadsheet may have rounded a long number to 1.9E+18, which names another post or none.
    whole = str(value).strip() if isinstance(value, int | str) else ""
    return f"{prefix}{whole}" if prefix and IDENTIFIER.fullmatch(whole) else value


def _make_image(value: str) -> dict[str, str]:
    is_address = web_url(value) is not None or re.match(r"[A-Za-z][\w+.-]*:", value)
    return {"url": value} if is_address else {"path": value}


def _parse_moment(name: str, value: Any, options: Json, findings: list[Finding]) -> str | None:
    form, zone = options.get("format"), options.get("zone")
    moment: datetime.datetime | None = None
    expected = f"a time as {form!r}" if form else "an ISO 8601 date or seconds since 1970"
    try:
        if form in SECONDS_PER_UNIT:
            moment = EPOCH + datetime.timedelta(seconds=float(value) * SECONDS_PER_UNIT[form])
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
    findings.append(Finding(PostNotice.BAD_TIMESTAMP, detail))
    return None


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return list(value) if isinstance(value, Iterable) else str(value)
