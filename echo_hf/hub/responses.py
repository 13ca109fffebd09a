"""The answers that a build read, as a table of its release, and how they are found again."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets import Dataset
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError, model_validator

from echo_hf._infra.parquet import opened_parquet
from echo_hf._infra.sqlite import rows_of, scratch
from echo_hf.collect.urls import platform_of
from echo_hf.engines.base import Completion, Request, Usage
from echo_hf.errors import ReleaseError
from echo_hf.hub.facts import RequestKey, problem
from echo_hf.hub.manifest import readable
from echo_hf.hub.redistribution import RESTRICTED
from echo_hf.hub.release import files_of, read_release, verify_release
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Failed, LeftOut
from echo_hf.tables import RESPONSES, arrow_rows

CONFIG = "responses"
BATCH_ROWS = 128
# Several times what the longest answer that a stage allows takes.
MOST_TEXT_BYTES = 1 << 20
ABSTAINED: Literal["needs_model"] = "needs_model"
MEND = "write or download the release again, or build without its responses"
Finish = Literal["stop", "length", "refusal", "error", "needs_model"]
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
        if (self.text is None) is (self.finish_reason == "stop"):
            raise ValueError("expected a text where finish_reason is 'stop', and nowhere else")
        return self


def finish_of(completion: Completion) -> Finish:
    """The word under which it is recorded how a call ended."""
    if completion.is_answer:
        return "stop"
    if completion.error == Failed.NEEDS_MODEL:
        return ABSTAINED
    known: dict[str, Finish] = {"length": "length", "refusal": "refusal"}
    return known.get(completion.finish_reason, "error")


def is_recordable(completion: Completion) -> bool:
    """Whether what came back can be written down and will be read again."""
    if completion.error == Failed.DAMAGED_ANSWER:
        return False
    text = (completion.text or "") if completion.is_answer else ""
    # Half of a surrogate pair is no text that a file could hold.
    data = text.encode("utf-8", "replace")
    return len(data) <= MOST_TEXT_BYTES and data.decode() == text


def read_responses(path: Path) -> Iterator[tuple[bytes, Completion]]:
    """The answers of a file by their keys; it may come from anywhere."""
    with readable(path, MEND), opened_parquet(path, path.parents[1]) as file:
        if not file.schema.equals(RESPONSES.schema):
            names = ", ".join(f"{field.name} ({field.type})" for field in RESPONSES.schema)
            raise ReleaseError(f"{str(path)!r} has other columns, expected {names}: {MEND}")
        number = 0
        for batch in file.batches(list(_Response.model_fields), rows=BATCH_ROWS):
            longest = pc.max(pc.binary_length(batch["text"])).as_py() or 0
            if longest > MOST_TEXT_BYTES:
                raise ReleaseError(
                    f"{str(path)!r}: after row {number} stands a text of {longest} bytes, "
                    f"expected at most {MOST_TEXT_BYTES}: {MEND}"
                )
            for row in batch.to_pylist():
                yield _response(path, number, row)
                number += 1


def _response(path: Path, number: int, row: dict[str, Any]) -> tuple[bytes, Completion]:
    try:
        read = _Response.model_validate(row)
    except ValidationError as error:
        said = problem(error, "the row")
        raise ReleaseError(f"{str(path)!r}: row {number}: {said}: {MEND}") from None
    tokens = read.usage.model_dump().values() if read.usage else ()
    abstained = read.finish_reason == ABSTAINED
    return bytes.fromhex(read.request_key), Completion(
        read.text,
        error=ABSTAINED if abstained else None,
        finish_reason="error" if abstained else read.finish_reason,
        usage=Usage(*(count or 0 for count in tokens)),
    )


TABLE_BATCH_ROWS = 5000
ASKED = """create table asked (
    key blob, url text, task text not null, primary key (key, url)
) without rowid"""


@dataclass(frozen=True)
class Responses:
    """How many answers were written, and how many were not, by reason."""

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
    """Writes each stored answer once, in the order of keys; of requests there may be millions."""
    table = arrow_rows(posts, ["url", "platform"])
    said = pc.is_in(table["platform"], pa.array(sorted(restricted), pa.string()))
    named = frozenset(table["url"].filter(said).to_pylist())

    def may_quote(url: str) -> bool:
        """Whether it is a post of such a platform, by address or by what it says."""
        return url in named or platform_of(url) in restricted

    written = 0
    left_out: Counter[LeftOut] = Counter()
    # Of what a killed run left in the cache, the next one sweeps this.
    partial = folder.cache / "tmp-responses.parquet"
    partial.parent.mkdir(parents=True, exist_ok=True)
    with (
        closing(scratch(ASKED)) as asked,
        pq.ParquetWriter(partial, RESPONSES.features.arrow_schema) as file,
    ):
        asked.execute("begin")
        for key, request in requests:
            each = ((key, url, request.task) for url in request.sources or ("",))
            asked.executemany("insert or ignore into asked values (?, ?, ?)", each)
        asked.execute("commit")
        in_order = asked.execute(
            "select key, min(task), json_group_array(url) from asked group by key order by key"
        )
        while some := {key: about for key, *about in islice(in_order, TABLE_BATCH_ROWS)}:
            rows = []
            for key, completion in sorted(store.get(list(some)).items()):
                task, urls = some[key]
                sources = sorted(filter(None, json.loads(urls)))
                if (not sources and restricted) or any(map(may_quote, sources)):
                    left_out[LeftOut.MAY_QUOTE] += 1
                elif not is_recordable(completion):
                    left_out[LeftOut.UNFIT] += 1
                else:
                    rows.append(_row(key, task, sources, completion))
            written += len(rows)
            file.write_table(pa.Table.from_pylist(rows, schema=file.schema))
    partial.replace(folder.responses)
    return Responses(written, dict(sorted(left_out.items())))


def _row(key: bytes, task: str, sources: list[str], completion: Completion) -> dict[str, Any]:
    usage = completion.usage
    return {
        "request_key": key.hex(),
        "task": task,
        "text": completion.text if completion.is_answer else None,
        "finish_reason": finish_of(completion),
        "usage": {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "cached_tokens": usage.cached,
        },
        "sources": sources,
    }


TABLE = """create table recorded (
    key blob primary key, text text, error text, finish_reason text not null,
    prompt integer not null, completion integer not null, cached integer not null
) without rowid"""


class Recorded:
    """The answers of a release, as a store of answers gives them."""

    def __init__(self) -> None:
        self._connection = scratch(TABLE)

    def add(self, answers: Iterable[tuple[bytes, Completion]]) -> None:
        self._connection.execute("begin")
        for key, completion in answers:
            usage = completion.usage
            said = (completion.text, completion.error, completion.finish_reason)
            row = (key, *said, usage.prompt, usage.completion, usage.cached)
            try:
                self._connection.execute("insert into recorded values (?, ?, ?, ?, ?, ?, ?)", row)
            except sqlite3.IntegrityError:
                raise ReleaseError(
                    f"request_key {key.hex()!r} stands in two rows of the responses, expected each "
                    f"once: {MEND}"
                ) from None
        self._connection.execute("commit")

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        query = "select * from recorded where key in ({0})"
        return {
            key: Completion(text, error, finish_reason, Usage(*tokens))
            for key, text, error, finish_reason, *tokens in rows_of(self._connection, query, keys)
        }

    def __len__(self) -> int:
        return int(self._connection.execute("select count(*) from recorded").fetchone()[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def read_recorded(path: Path) -> Recorded:
    """Reads the answers of a release, which are checked first."""
    release = read_release(path)
    configs = release.manifest.configs
    if CONFIG not in configs:
        raise ReleaseError(
            f"release {str(path)!r} carries no {CONFIG}, only {', '.join(map(repr, configs))}: "
            "take one that was built with --with-responses, or ask its builder for one"
        )
    verify_release(release.path, CONFIG)
    with ExitStack() as failed:
        recorded = failed.enter_context(Recorded())
        for file in files_of(release, CONFIG):
            recorded.add(read_responses(file))
        failed.pop_all()
    return recorded
