"""Split files of posts, and the pages of a crawl, into records without judging them."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, List, Value

from echo_hf._infra.atomic import store_rows
from echo_hf.collect.crawl_ledger import read_stored_pages
from echo_hf.collect.fields import open_text
from echo_hf.collect.sources.base import SOURCES, Source, TableSource, make_source
from echo_hf.config.sections import PostsSource
from echo_hf.errors import ConfigError, SourceError
from echo_hf.pipeline.stage import compute_fingerprint
from echo_hf.tables import Column, Table

RECORDS_PER_BATCH = 10_000
BATCH_CHARACTERS = 2**26
# The folder is left out: the same files in another place are the same records.
FINGERPRINT_COLUMNS = ["place", "source", "keywords", "record"]

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


def read_records(
    posts: Sequence[PostsSource], collected: Path | None = None, file: Path | None = None
) -> Dataset:
    """Read the records of all files and of the crawl; store them in a file where one is given."""
    sources = [(entry, *open_source(entry)) for entry in posts if entry.search is None]
    search_entries = [entry for entry in posts if entry.search is not None]
    names = _shorten_paths([path for _, _, path in sources])
    ranges: list[tuple[int, int]] = []  # rows of files that do not name search terms

    def read_batches() -> Iterator[pa.RecordBatch]:
        rows = 0
        for entry, source, path in sources:
            start, pattern = rows, getattr(source, "keyword_sign", None)
            # Whether the file, or one of its records, says which search terms found its posts.
            has_keywords = bool(entry.keywords)
            for batch in _read_batches(entry, source, path, names[path]):
                has_keywords = has_keywords or bool(
                    pattern and pc.any(pc.match_substring_regex(batch["record"], pattern)).as_py()
                )
                rows += batch.num_rows
                yield batch
            if not has_keywords:
                ranges.append((start, rows))
        if collected is None:
            return
        for entry in search_entries:
            # Pages of platforms; posts that only reply queries brought have no keyword.
            for page in read_stored_pages(collected, entry.source):
                # The folder is the ledger's file: below it no image can lie.
                if records := list(page.split_records()):
                    is_own = page.source == entry.source
                    reader = _choose_reader(entry) if is_own else page.source
                    yield _make_batch(records, reader, str(collected), list(page.keywords))

    tables = (pa.Table.from_batches([batch]) for batch in read_batches())
    table = store_rows(tables, RECORDS.schema, file).table
    at = RECORDS.schema.get_field_index("keywords")
    field = RECORDS.schema.field(at)
    for start, end in ranges:
        part = table[start:end].set_column(at, field, pa.nulls(end - start, field.type))
        table = pa.concat_tables([table[:start], part, table[end:]])
    content = Dataset(table.select(FINGERPRINT_COLUMNS), fingerprint="")
    return Dataset(table, fingerprint=compute_fingerprint(content))


def open_source(entry: PostsSource) -> tuple[Source, Path]:
    source = make_source(_choose_reader(entry))
    bundled: Path | None = getattr(source, "bundled", None)
    path, is_table = bundled or entry.path, isinstance(source, TableSource)
    fits = (entry.path is None) != (bundled is None) and (entry.columns is not None) == is_table
    if path is None or not fits:
        expected = [] if bundled else ["a path"]
        expected += ["columns, such as {url: link, text: body}"] if is_table else []
        raise ConfigError(
            f"posts: source {entry.source!r} takes {' and '.join(expected) or 'no path'}"
            f"{'' if is_table else ' and no columns'}"
        )
    return source, path


def _choose_reader(entry: PostsSource) -> str:
    """Return the name of the source that reads an entry's posts, which depends on its options."""
    if entry.unlisted and entry.reader not in SOURCES.list_names():
        raise ConfigError(
            f"posts: unlisted is true for source {entry.source!r}, which tells no unlisted posts "
            "apart: expected it for source 'mastodon'"
        )
    return entry.reader


def _shorten_paths(paths: Sequence[Path]) -> dict[Path, str]:
    try:
        resolved = [path.resolve() for path in paths]
    except (OSError, RuntimeError) as error:  # a symbolic link to itself
        raise SourceError(f"posts: cannot read: {error}") from error
    repeated = next((path for path, count in Counter(resolved).items() if count > 1), None)
    if repeated is not None:
        raise ConfigError(f"posts: {str(repeated)!r} is named twice: name each file once")
    # Places must not depend on the machine: keep as few parts of a path as tell files apart.
    parts = 1
    while len({path.parts[-parts:] for path in resolved}) < len(resolved):
        parts += 1
    names = ["/".join(path.parts[-parts:]) for path in resolved]
    return dict(zip(paths, names, strict=True))


def _read_batches(
    entry: PostsSource, source: Source, path: Path, name: str
) -> Iterator[pa.RecordBatch]:
    source_columns = (entry.reader, str(path.resolve().parent), list(entry.keywords))
    expected = f"expected posts for source {entry.source!r}"
    records: list[tuple[str, str]] = []
    characters = 0
    if path.exists() and not path.is_file():  # reading a pipe would never end
        raise SourceError(f"{str(path)!r} is not a regular file: {expected}")
    try:
        with ExitStack() as stack:
            if isinstance(source, TableSource) and entry.columns is not None:
                row_options = {"rows": entry.table.rows} if entry.table else {}
                placed_records = source.records(path, entry.columns, **row_options)
            else:
                placed_records = source.split(stack.enter_context(open_text(path)))
            for place, record in placed_records:
                records.append((f"{name}{place}", record))
                characters += len(record)
                if len(records) == RECORDS_PER_BATCH or characters > BATCH_CHARACTERS:
                    yield _make_batch(records, *source_columns)
                    records, characters = [], 0
    except FileNotFoundError:
        raise SourceError(f"no file {str(path)!r}: {expected}") from None
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise SourceError(f"cannot read {str(path)!r}: {error}") from error
    if records:
        yield _make_batch(records, *source_columns)


def _make_batch(
    records: list[tuple[str, str]], source: str, folder: str, keywords: list[str]
) -> pa.RecordBatch:
    places, texts = zip(*records, strict=True)
    keyword_lists = pa.array([keywords] * len(records), RECORDS.schema.field("keywords").type)
    constants = [pa.repeat(pa.scalar(text), len(records)) for text in (source, folder)]
    columns = [pa.array(places), *constants, keyword_lists, pa.array(texts)]
    return pa.RecordBatch.from_arrays(columns, schema=RECORDS.schema)
