"""Take files of posts, and what a crawl has collected, apart into records without judging them."""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, List, Value

from echo_hf.collect.crawl_ledger import stored_answers
from echo_hf.collect.fields import opened
from echo_hf.collect.sources.base import Source, TableSource, make_source
from echo_hf.config.sections import Posts
from echo_hf.errors import ConfigError, SourceError
from echo_hf.tables import Column, Table

BATCH = 10_000
BATCH_CHARACTERS = 2**26
# Not the folder: the same files elsewhere are the same records.
CONTENT = ["place", "source", "keywords", "record"]

RECORDS = Table(
    "records",
    "one record of a file of posts, as it stands there",
    ("place",),
    {
        "place": Column(Value("string"), "file and line, or part of a page; or query and page"),
        "source": Column(Value("string"), "name of the reader"),
        "folder": Column(Value("string"), "folder of the file, where images may lie"),
        "keywords": Column(
            List(Value("string")),
            "search terms the config gives the file; null when nothing says what found its posts",
        ),
        "record": Column(Value("string"), "the record's text"),
    },
)


def read_records(posts: Sequence[Posts], collected: Path | None = None) -> Dataset:
    sources = [(entry, *located(entry)) for entry in posts if entry.search is None]
    names = _names([path for _, _, path in sources])
    batches = [
        batch
        for entry, source, path in sources
        for batch in _searched(entry, source, list(_batches(entry, source, path, names[path])))
    ]
    for entry in posts if collected is not None else ():
        if entry.search is not None and collected is not None:
            batches.extend(_collected(entry.source, collected))
    table = pa.Table.from_batches(batches, schema=RECORDS.schema)
    digest = hashlib.sha256()
    for batch in batches:
        digest.update(batch.select(CONTENT).serialize())
    return Dataset(table, fingerprint=digest.hexdigest()[:32])


def located(entry: Posts) -> tuple[Source, Path]:
    source = make_source(entry.source)
    bundled = getattr(source, "bundled", None)
    if bundled is not None and entry.path is not None:
        raise ConfigError(
            f"posts: source {entry.source!r} has its own posts, got path {str(entry.path)!r}: "
            "leave the path out, or use source 'jsonl'"
        )
    if isinstance(source, TableSource) != (entry.columns is not None):
        raise ConfigError(_about_columns(entry))
    path = bundled or entry.path
    if path is None:
        raise ConfigError(f"posts: source {entry.source!r} has no path: expected the file to read")
    return source, path


def _about_columns(entry: Posts) -> str:
    if entry.columns is None:
        expected = "expected columns, such as {url: link, text: body}"
        return f"posts: source {entry.source!r} does not know what the columns are: {expected}"
    expected = "leave them out, or use source 'table'"
    return f"posts: source {entry.source!r} has a form of its own, got columns: {expected}"


def _names(paths: Sequence[Path]) -> dict[Path, str]:
    try:
        whole = [path.resolve() for path in paths]
    except (OSError, RuntimeError) as error:  # a link that leads to itself
        raise SourceError(f"posts: cannot read: {error}") from error
    twice = next((path for path, count in Counter(whole).items() if count > 1), None)
    if twice is not None:
        raise ConfigError(f"posts: {str(twice)!r} is named twice: name each file once")
    # No more of a path than tells the files apart: places must not depend on the machine.
    parts = 1
    while len({path.parts[-parts:] for path in whole}) < len(whole):
        parts += 1
    return {given: "/".join(path.parts[-parts:]) for given, path in zip(paths, whole, strict=True)}


def _searched(
    entry: Posts, source: Source, batches: list[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Tells posts that no search found from files that do not say what found their posts."""
    sign = getattr(source, "keyword_sign", None)
    told = bool(entry.keywords) or any(
        pc.any(pc.match_substring_regex(batch["record"], sign)).as_py() for batch in batches if sign
    )
    at = RECORDS.schema.get_field_index("keywords")
    for batch in batches:
        absent = pa.nulls(batch.num_rows, RECORDS.schema.field(at).type)
        yield batch if told else batch.set_column(at, RECORDS.schema.field(at), absent)


def _batches(entry: Posts, source: Source, path: Path, name: str) -> Iterator[pa.RecordBatch]:
    same = (entry.source, str(path.resolve().parent), list(entry.keywords))
    places: list[str] = []
    records: list[str] = []
    size = 0
    if path.exists() and not path.is_file():  # to read a pipe is to wait for ever
        raise SourceError(
            f"{str(path)!r} is not a regular file: expected posts for source {entry.source!r}"
        )
    try:
        for place, record in _split(entry, source, path):
            places.append(f"{name}{place}")
            records.append(record)
            size += len(record)
            if len(records) == BATCH or size > BATCH_CHARACTERS:
                yield _batch(places, records, *same)
                places, records, size = [], [], 0
    except FileNotFoundError:
        raise SourceError(
            f"no file {str(path)!r}: expected posts for source {entry.source!r}"
        ) from None
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise SourceError(f"cannot read {str(path)!r}: {error}") from error
    if records:
        yield _batch(places, records, *same)


def _split(entry: Posts, source: Source, path: Path) -> Iterator[tuple[str, str]]:
    if isinstance(source, TableSource) and entry.columns is not None:
        yield from source.records(path, entry.columns)
        return
    with opened(path) as lines:
        yield from source.split(lines)


def _collected(platform: str, ledger: Path) -> Iterator[pa.RecordBatch]:
    """What a platform has answered; posts that only follow from others carry no keyword."""
    source = make_source(platform)
    for answer in stored_answers(ledger, platform):
        pairs = list(answer.records(source))
        if pairs:
            places, records = (list(column) for column in zip(*pairs, strict=True))
            # No image lies beside an answer: nothing can lie below a file.
            yield _batch(places, records, platform, str(ledger), list(answer.keywords))


def _batch(
    places: list[str], records: list[str], source: str, folder: str, keywords: list[str]
) -> pa.RecordBatch:
    count = len(records)
    columns = [places, [source] * count, [folder] * count, [keywords] * count, records]
    arrays = [pa.array(*one) for one in zip(columns, RECORDS.schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORDS.schema)
