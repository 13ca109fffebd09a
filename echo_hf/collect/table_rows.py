"""Read the rows of somebody's table: CSV, TSV, JSON lines or Parquet."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf.collect.csv_rows import csv_rows, delimiter_of
from echo_hf.collect.post_file import opened
from echo_hf.collect.sources.base import json_documents
from echo_hf.errors import ConfigError, SourceError, unknown

DELIMITERS = {".csv": (",", ";", "\t"), ".tsv": ("\t",), ".tab": ("\t",)}
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
PARQUET = ".parquet"
BATCH = 2_000
LONGEST_SAID = 200
Row = Mapping[str, Any]


def table_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Row | str]]:
    """The rows of a table.

    Args:
        path: The table; its name tells what it is, with `.gz` after it when it is packed.
        columns: Names of the columns to read.

    Yields:
        (place within the file, these columns of the row); or a text where no row can be read:
        what stands there, or what is wrong with it.

    Raises:
        ConfigError: The table has no such column, or two of that name.
        SourceError: Its name says no kind of table, or it is no text with a header.
        OSError: It cannot be read; a damaged Parquet file is an `ArrowException`.
    """
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix == PARQUET:
        yield from _parquet(path, columns)
        return
    if suffix not in DELIMITERS and suffix not in JSON_SUFFIXES:
        expected = ", ".join((*DELIMITERS, *JSON_SUFFIXES, PARQUET))
        raise SourceError(f"{str(path)!r} is no table by its name: expected one of {expected}")
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
        raise SourceError(f"{str(path)!r} is no UTF-8 text: save the table as UTF-8")
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
    return json.dumps({"broken_row": f"line {line} is no row: {said}"[:LONGEST_SAID]})


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
