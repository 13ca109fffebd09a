"""Read the rows of somebody's table: CSV, TSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from echo_hf.collect.post_file import opened
from echo_hf.collect.sources.base import json_documents
from echo_hf.errors import ConfigError, SourceError, unknown

DELIMITERS = {".csv": (",", ";", "\t"), ".tsv": ("\t",), ".tab": ("\t",)}
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
PARQUET = ".parquet"
BATCH = 2_000
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
        SourceError: Its name says no kind of table.
        OSError: It cannot be read; a damaged Parquet file is an `ArrowException`.
    """
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix == PARQUET:
        yield from _parquet(path, columns)
        return
    if suffix not in DELIMITERS and suffix not in JSON_SUFFIXES:
        expected = ", ".join((*DELIMITERS, *JSON_SUFFIXES, PARQUET))
        raise SourceError(f"{str(path)!r} is no table by its name: expected one of {expected}")
    with opened(path) as lines:
        if suffix in JSON_SUFFIXES:
            yield from _json(path, lines, columns)
        else:
            yield from _delimited(path, lines, columns, DELIMITERS[suffix])


def _parquet(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
    with path.open("rb") as file, pq.ParquetFile(file) as table:
        _check(path, columns, table.schema_arrow.names)
        number = 0
        for batch in table.iter_batches(BATCH, columns=list(dict.fromkeys(columns))):
            for row in batch.to_pylist():
                number += 1
                yield f":{number}", row


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
    rest = iter(lines)
    first = next((line for line in rest if line.strip()), "")
    # Some programs write semicolons and call it CSV.
    delimiter = next((one for one in delimiters if one in first), delimiters[0])
    reader = csv.reader(chain([first], rest), delimiter=delimiter)
    header = [name.strip() for name in next(reader, [])]
    _check(path, columns, header)
    at = {name: header.index(name) for name in columns}
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield f":{reader.line_num}", f"no row of a table: {error}"
            continue
        if cells and len(cells) != len(header):
            said = f"{len(cells)} cells, the header has {len(header)}: {delimiter.join(cells)}"
            yield f":{reader.line_num}", said
        elif any(cell.strip() for cell in cells):
            yield f":{reader.line_num}", {name: cells[place] for name, place in at.items()}


def _check(path: Path, columns: Sequence[str], known: Sequence[str]) -> None:
    counts = Counter(known)
    for name in columns:
        if name not in counts:
            raise ConfigError(unknown("column", name, counts, f"posts: {path.name!r}"))
        if counts[name] > 1:
            raise ConfigError(
                f"posts: {path.name!r} has {counts[name]} columns {name!r}: rename all but one"
            )
