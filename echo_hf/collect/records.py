"""Take the files of posts apart into records, one row each, without judging them."""

from __future__ import annotations

import gzip
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
from datasets import Dataset, List, Value

from echo_hf.collect.sources.base import Source, make_source
from echo_hf.config import Posts
from echo_hf.errors import ConfigError, SourceError
from echo_hf.tables import Column, Table

BATCH = 10_000

RECORDS = Table(
    "records",
    "one record of a file of posts, as it stands there",
    ("place",),
    {
        "place": Column(Value("string"), "file and line, or part of a page"),
        "source": Column(Value("string"), "name of the reader"),
        "folder": Column(Value("string"), "folder of the file, where pictures may lie"),
        "keywords": Column(List(Value("string")), "search terms that the config gives the file"),
        "record": Column(Value("string"), "the record's text"),
    },
)


def read_records(posts: Sequence[Posts]) -> Dataset:
    """Reads the files that a config names.

    Args:
        posts: The config's entries.

    Returns:
        The records of all files in order, with a fingerprint made from their content.

    Raises:
        ConfigError: A source is unknown or lacks its path, or a file is named twice.
        SourceError: A file cannot be read at all.
    """
    located = [(entry, *_located(entry)) for entry in posts]
    names = _names([path for _, _, path in located])
    batches = [
        batch
        for entry, source, path in located
        for batch in _batches(entry, source, path, names[path])
    ]
    table = pa.Table.from_batches(batches, schema=RECORDS.schema)
    digest = hashlib.sha256()
    for batch in batches:
        for name in ("place", "record"):
            digest.update(b"".join(memoryview(part) for part in batch[name].buffers() if part))
    return Dataset(table, fingerprint=digest.hexdigest()[:32])


def _located(entry: Posts) -> tuple[Source, Path]:
    source = make_source(entry.source)
    path = getattr(source, "bundled", entry.path)
    if path is None:
        raise ConfigError(f"posts: source {entry.source!r} has no path: expected the file to read")
    return source, path


def _names(paths: Sequence[Path]) -> dict[Path, str]:
    counts = Counter(path.resolve() for path in paths)
    twice = next((path for path, count in counts.items() if count > 1), None)
    if twice is not None:
        raise ConfigError(f"posts: {str(twice)!r} is named twice: name each file once")
    short = Counter(path.name for path in paths)
    return {path: path.name if short[path.name] == 1 else str(path) for path in paths}


def _batches(entry: Posts, source: Source, path: Path, name: str) -> Iterator[pa.RecordBatch]:
    rows: list[dict[str, Any]] = []
    same = {
        "source": entry.source,
        "folder": str(path.resolve().parent),
        "keywords": list(entry.keywords),
    }
    try:
        with _opened(path) as lines:
            for place, record in source.split(lines):
                rows.append({"place": f"{name}{place}", "record": record, **same})
                if len(rows) == BATCH:
                    yield pa.RecordBatch.from_pylist(rows, schema=RECORDS.schema)
                    rows = []
    except FileNotFoundError:
        raise SourceError(
            f"no file {str(path)!r}: expected posts for source {entry.source!r}"
        ) from None
    except (OSError, EOFError) as error:
        raise SourceError(f"cannot read {str(path)!r}: {error}") from error
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=RECORDS.schema)


def _opened(path: Path) -> TextIO:
    # A byte that is no UTF-8 spoils its own line, not the file: the line is then no valid post.
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="replace")
    return path.open(encoding="utf-8-sig", errors="replace", newline="\n")
