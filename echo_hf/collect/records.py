"""Take files of posts, and what a crawl has collected, apart into records without judging them."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, List, Value

from echo_hf._infra.atomic import stored_rows
from echo_hf.collect.crawl_ledger import stored_answers
from echo_hf.collect.fields import opened
from echo_hf.collect.sources.base import SOURCES, Source, TableSource, make_source
from echo_hf.config.sections import Posts
from echo_hf.errors import ConfigError, SourceError
from echo_hf.pipeline.stage import content_fingerprint
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


def read_records(
    posts: Sequence[Posts], collected: Path | None = None, file: Path | None = None
) -> Dataset:
    """The records of all files, and of what was collected; kept in a file where one is given."""
    sources = [(entry, *located(entry)) for entry in posts if entry.search is None]
    searched = [entry for entry in posts if entry.search is not None]
    names = _names([path for _, _, path in sources])
    unsaid: list[tuple[int, int]] = []  # rows of files that do not say what found their posts

    def batches() -> Iterator[pa.RecordBatch]:
        rows = 0
        for entry, source, path in sources:
            start, sign = rows, getattr(source, "keyword_sign", None)
            # Tells posts that no search found from files that do not say what found their posts.
            is_said = bool(entry.keywords)
            for batch in _batches(entry, source, path, names[path]):
                is_said = is_said or bool(
                    sign and pc.any(pc.match_substring_regex(batch["record"], sign)).as_py()
                )
                rows += batch.num_rows
                yield batch
            if not is_said:
                unsaid.append((start, rows))
        if collected is None:
            return
        for entry in searched:
            # What a platform has answered; posts that only follow from others carry no keyword.
            for answer in stored_answers(collected, entry.source):
                # No image lies beside an answer: nothing can lie below a file.
                if records := list(answer.records()):
                    is_own = answer.source == entry.source
                    reader = _reader(entry) if is_own else answer.source
                    yield _batch(records, reader, str(collected), list(answer.keywords))

    tables = (pa.Table.from_batches([batch]) for batch in batches())
    table = stored_rows(tables, RECORDS.schema, file).table
    at = RECORDS.schema.get_field_index("keywords")
    field = RECORDS.schema.field(at)
    for start, end in unsaid:
        some = table[start:end].set_column(at, field, pa.nulls(end - start, field.type))
        table = pa.concat_tables([table[:start], some, table[end:]])
    content = Dataset(table.select(CONTENT), fingerprint="")
    return Dataset(table, fingerprint=content_fingerprint(content))


def located(entry: Posts) -> tuple[Source, Path]:
    source = make_source(_reader(entry))
    bundled: Path | None = getattr(source, "bundled", None)
    path, is_table = bundled or entry.path, isinstance(source, TableSource)
    is_given = entry.path is not None, entry.columns is not None
    if path is None or is_given != (bundled is None, is_table):
        expected = [] if bundled else ["a path"]
        expected += ["columns, such as {url: link, text: body}"] if is_table else []
        raise ConfigError(
            f"posts: source {entry.source!r} takes {' and '.join(expected) or 'no path'}"
            f"{'' if is_table else ' and no columns'}"
        )
    return source, path


def _reader(entry: Posts) -> str:
    """The name of the source that reads posts, which may depend on what is taken in."""
    if entry.unlisted and entry.reader not in SOURCES.names():
        raise ConfigError(
            f"posts: unlisted is true for source {entry.source!r}, which tells no unlisted posts "
            "apart: expected it for source 'mastodon'"
        )
    return entry.reader


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


def _batches(entry: Posts, source: Source, path: Path, name: str) -> Iterator[pa.RecordBatch]:
    same = (entry.reader, str(path.resolve().parent), list(entry.keywords))
    expected = f"expected posts for source {entry.source!r}"
    records: list[tuple[str, str]] = []
    size = 0
    if path.exists() and not path.is_file():  # to read a pipe is to wait for ever
        raise SourceError(f"{str(path)!r} is not a regular file: {expected}")
    try:
        with ExitStack() as stack:
            if isinstance(source, TableSource) and entry.columns is not None:
                below = {"rows": entry.table.rows} if entry.table else {}
                split = source.records(path, entry.columns, **below)
            else:
                split = source.split(stack.enter_context(opened(path)))
            for place, record in split:
                records.append((f"{name}{place}", record))
                size += len(record)
                if len(records) == BATCH or size > BATCH_CHARACTERS:
                    yield _batch(records, *same)
                    records, size = [], 0
    except FileNotFoundError:
        raise SourceError(f"no file {str(path)!r}: {expected}") from None
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise SourceError(f"cannot read {str(path)!r}: {error}") from error
    if records:
        yield _batch(records, *same)


def _batch(
    records: list[tuple[str, str]], source: str, folder: str, keywords: list[str]
) -> pa.RecordBatch:
    places, texts = zip(*records, strict=True)
    words = pa.array([keywords] * len(records), RECORDS.schema.field("keywords").type)
    same = [pa.repeat(pa.scalar(one), len(records)) for one in (source, folder)]
    columns = [pa.array(places), *same, words, pa.array(texts)]
    return pa.RecordBatch.from_arrays(columns, schema=RECORDS.schema)
