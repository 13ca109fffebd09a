"""The answers that a build read, as a table of its release, and how they are found again."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets import Dataset
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError, model_validator

from echo_hf._infra.sqlite import rows_of, scratch
from echo_hf.collect.urls import platform_of
from echo_hf.engines.base import Completion, Request, Usage
from echo_hf.errors import ReleaseError
from echo_hf.hub.facts import RequestKey
from echo_hf.hub.redistribution import RESTRICTED
from echo_hf.hub.release import read_release, verify_release
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Failed, LeftOut
from echo_hf.tables import RESPONSES, arrow_rows

BATCH_ROWS = 128
# Several times what the longest answer that a stage allows takes.
MOST_TEXT_BYTES = 1 << 20
MOST_GROUP_BYTES = 1 << 30
READ = ("request_key", "text", "finish_reason", "usage")
STOP: Literal["stop"] = "stop"
ABSTAINED: Literal["needs_model"] = "needs_model"
MEND = "write or download the release again, or build without its responses"
Finish = Literal["stop", "length", "refusal", "error", "needs_model"]
FAILURES: Mapping[str, Finish] = {"length": "length", "refusal": "refusal"}
Count = NonNegativeInt | None


class _Usage(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    prompt_tokens: Count
    completion_tokens: Count
    cached_tokens: Count


class _Response(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    request_key: RequestKey
    text: Annotated[str, Field(max_length=MOST_TEXT_BYTES)] | None
    finish_reason: Finish
    usage: _Usage | None

    @model_validator(mode="after")
    def _is_answer_or_failure(self) -> Self:
        if (self.text is None) is (self.finish_reason == STOP):
            raise ValueError("expected a text where finish_reason is 'stop', and nowhere else")
        return self


def finish_of(completion: Completion) -> Finish:
    """The word under which it is recorded how a call ended."""
    if completion.is_answer:
        return STOP
    if completion.error == Failed.NEEDS_MODEL:
        return ABSTAINED
    return FAILURES.get(completion.finish_reason, "error")


def is_recordable(completion: Completion) -> bool:
    """Whether what came back can be written down and will be read again."""
    text = (completion.text or "") if completion.is_answer else ""
    # Half of a surrogate pair is no text that a file could hold.
    data = text.encode("utf-8", "replace")
    return len(data) <= MOST_TEXT_BYTES and data.decode() == text


def read_responses(path: Path) -> Iterator[tuple[bytes, Completion]]:
    try:
        _check_shape(path, pq.read_metadata(path))
        # As a dictionary, a text that stands in every row is in memory once.
        with pq.ParquetFile(path, read_dictionary=["text"]) as file:
            first = 0
            for batch in file.iter_batches(BATCH_ROWS, columns=list(READ)):
                _check_texts(path, first, batch)
                for number, row in enumerate(batch.to_pylist(), first):
                    yield _response(path, number, row)
                first += batch.num_rows
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        said = " ".join(str(error).split())[:300]
        raise ReleaseError(f"{str(path)!r} cannot be read ({said}): {MEND}") from None


def _check_shape(path: Path, metadata: pq.FileMetaData) -> None:
    found = metadata.schema.to_arrow_schema().remove_metadata()
    if not found.equals(RESPONSES.schema):
        raise ReleaseError(
            f"{str(path)!r} has columns {_listed(found)}, expected {_listed(RESPONSES.schema)}: "
            f"{MEND}"
        )
    groups = range(metadata.num_row_groups)
    largest = max((metadata.row_group(one).total_byte_size for one in groups), default=0)
    if largest > MOST_GROUP_BYTES:
        raise ReleaseError(
            f"{str(path)!r} has a row group of {largest} bytes, expected at most "
            f"{MOST_GROUP_BYTES}: {MEND}"
        )


def _check_texts(path: Path, first: int, batch: pa.RecordBatch) -> None:
    texts = batch.column("text").dictionary
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest > MOST_TEXT_BYTES:
        raise ReleaseError(
            f"{str(path)!r}: after row {first} stands a text of {longest} bytes, expected at most "
            f"{MOST_TEXT_BYTES}: {MEND}"
        )


def _response(path: Path, number: int, row: dict[str, Any]) -> tuple[bytes, Completion]:
    try:
        read = _Response.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"])) or "the row"
        raise ReleaseError(
            f"{str(path)!r}: row {number}: {place} is {str(first['input'])[:80]!r}, "
            f"{first['msg'].lower()}: {MEND}"
        ) from None
    return bytes.fromhex(read.request_key), _completion(read)


def _completion(read: _Response) -> Completion:
    usage = read.usage
    tokens = (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) if usage else ()
    abstained = read.finish_reason == ABSTAINED
    return Completion(
        read.text,
        error=ABSTAINED if abstained else None,
        finish_reason="error" if abstained else read.finish_reason,
        usage=Usage(*(count or 0 for count in tokens)),
    )


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema)[:300]


TABLE_BATCH_ROWS = 5000
TABLES = """create table asked (key blob primary key, task text not null) without rowid;
create table sources (
    key blob not null, url text not null, primary key (key, url)
) without rowid"""
MayQuote = Callable[[Sequence[str]], bool]


@dataclass(frozen=True)
class RequestFacts:
    key: bytes
    task: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Responses:
    rows: int
    left_out: Mapping[LeftOut, int]


def write_responses(
    folder: RunFolder,
    requests: Iterable[tuple[bytes, Request]],
    store: Store,
    posts: Dataset,
    *,
    restricted: frozenset[str] = RESTRICTED,
) -> Responses:
    """Writes the stored answers to requests, each once, in the order of their keys."""
    chosen = _Chosen(store, _may_quote(posts, restricted))
    # Of what a killed run left in the cache, the next one sweeps this.
    partial = folder.cache / "tmp-responses.parquet"
    partial.parent.mkdir(parents=True, exist_ok=True)
    with (
        closing(scratch(TABLES)) as asked,
        pq.ParquetWriter(partial, RESPONSES.features.arrow_schema) as file,
    ):
        _collect(asked, requests)
        for some in _batches(_in_order(asked)):
            file.write_table(pa.Table.from_pylist(chosen.rows(some), schema=file.schema))
    partial.replace(folder.responses)
    return Responses(chosen.taken, dict(sorted(chosen.left_out.items())))


@dataclass
class _Chosen:
    store: Store
    may_quote: MayQuote
    taken: int = 0
    left_out: Counter[LeftOut] = field(default_factory=Counter)

    def rows(self, asked: Sequence[RequestFacts]) -> list[dict[str, Any]]:
        known = self.store.get([one.key for one in asked])
        rows = [
            _row(one, known[one.key])
            for one in asked
            if one.key in known and self._may_go(one, known[one.key])
        ]
        self.taken += len(rows)
        return rows

    def _may_go(self, asked: RequestFacts, completion: Completion) -> bool:
        if self.may_quote(asked.sources):
            self.left_out[LeftOut.MAY_QUOTE] += 1
        elif not is_recordable(completion):
            self.left_out[LeftOut.UNFIT] += 1
        else:
            return True
        return False


def _collect(asked: sqlite3.Connection, requests: Iterable[tuple[bytes, Request]]) -> None:
    asked.execute("begin")
    for key, request in requests:
        asked.execute("insert or ignore into asked values (?, ?)", (key, request.task))
        sources = ((key, url) for url in request.sources)
        asked.executemany("insert or ignore into sources values (?, ?)", sources)
    asked.execute("commit")


def _in_order(asked: sqlite3.Connection) -> Iterator[RequestFacts]:
    for key, task in asked.execute("select key, task from asked order by key"):
        urls = asked.execute("select url from sources where key = ? order by url", (key,))
        yield RequestFacts(key, task, tuple(url for (url,) in urls))


def _batches(asked: Iterator[RequestFacts]) -> Iterator[list[RequestFacts]]:
    while some := list(islice(asked, TABLE_BATCH_ROWS)):
        yield some


def _row(asked: RequestFacts, completion: Completion) -> dict[str, Any]:
    usage = completion.usage
    return {
        "request_key": asked.key.hex(),
        "task": asked.task,
        "text": completion.text if completion.is_answer else None,
        "finish_reason": finish_of(completion),
        "usage": {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "cached_tokens": usage.cached,
        },
        "sources": list(asked.sources),
    }


def _may_quote(posts: Dataset, restricted: frozenset[str]) -> MayQuote:
    """Whether an answer may repeat a post of such a platform, by address or by what it says."""
    table = arrow_rows(posts, ["url", "platform"])
    said = pc.is_in(table["platform"], pa.array(sorted(restricted), pa.string()))
    named = frozenset(table["url"].filter(said).to_pylist())

    def may_quote(sources: Sequence[str]) -> bool:
        unknown = not sources and bool(restricted)
        return unknown or any(url in named or platform_of(url) in restricted for url in sources)

    return may_quote


CONFIG = "responses"
TABLE = """create table recorded (
    key blob primary key, text text, error text, finish_reason text not null,
    prompt integer not null, completion integer not null, cached integer not null
) without rowid"""
INSERT = "insert into recorded values (?, ?, ?, ?, ?, ?, ?)"
ROWS = "select * from recorded where key in ({0})"


class Recorded:
    def __init__(self) -> None:
        self._connection = scratch(TABLE)

    def add(self, answers: Iterable[tuple[bytes, Completion]]) -> None:
        self._connection.execute("begin")
        for key, completion in answers:
            usage = completion.usage
            said = (completion.text, completion.error, completion.finish_reason)
            row = (key, *said, usage.prompt, usage.completion, usage.cached)
            try:
                self._connection.execute(INSERT, row)
            except sqlite3.IntegrityError:
                raise ReleaseError(
                    f"request_key {key.hex()!r} stands in two rows of the responses, expected each "
                    f"once: {MEND}"
                ) from None
        self._connection.execute("commit")

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        return {
            key: Completion(text, error, finish_reason, Usage(*tokens))
            for key, text, error, finish_reason, *tokens in rows_of(self._connection, ROWS, keys)
        }

    def close(self) -> None:
        self._connection.close()

    def __len__(self) -> int:
        return int(self._connection.execute("select count(*) from recorded").fetchone()[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_recorded(path: Path) -> Recorded:
    release = read_release(path)
    configs = release.manifest.configs
    if CONFIG not in configs:
        raise ReleaseError(
            f"release {str(path)!r} carries no {CONFIG}, only {', '.join(map(repr, configs))}: "
            "take one that was built with --with-responses, or ask its builder for one"
        )
    verify_release(release.path, CONFIG)
    recorded = Recorded()
    try:
        for file in configs[CONFIG].files:
            recorded.add(read_responses(release.path / file.path))
    except BaseException:
        recorded.close()
        raise
    return recorded
