"""The answers that a build read, as a table of its release, for replay."""

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

from echo_hf._infra.parquet import open_parquet
from echo_hf._infra.sqlite import open_scratch, select_by_keys
from echo_hf.collect.urls import platform_of
from echo_hf.engines.base import Completion, Failed, Request, Usage
from echo_hf.errors import ReleaseError
from echo_hf.hub.facts import LeftOut, RequestKey, describe_problem
from echo_hf.hub.manifest import catch_read_errors
from echo_hf.hub.release import config_files, read_release, verify_release
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.tables import RESPONSES, arrow_rows

RESPONSES_CONFIG = "responses"
BATCH_ROWS = 128
# Several times what the longest answer that a stage allows takes.
MAX_TEXT_BYTES = 1 << 20
ABSTAINED_FINISH: Literal["needs_model"] = "needs_model"
ADVICE = "write or download the release again, or build without its responses"
FinishReason = Literal["stop", "length", "refusal", "error", "needs_model"]
TokenCount = NonNegativeInt | None


class _Usage(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    prompt_tokens: TokenCount
    completion_tokens: TokenCount
    cached_tokens: TokenCount


class _Response(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    request_key: RequestKey
    text: Annotated[str, Field(max_length=MAX_TEXT_BYTES)] | None
    finish_reason: FinishReason
    usage: _Usage | None

    @model_validator(mode="after")
    def _is_answer_or_failure(self) -> Self:
        if (self.text is None) is (self.finish_reason == "stop"):
            raise ValueError("expected a text where finish_reason is 'stop', and nowhere else")
        return self


def get_finish_reason(completion: Completion) -> FinishReason:
    """Return the recorded word for how a call ended."""
    if completion.is_answer:
        return "stop"
    if completion.error == Failed.NEEDS_MODEL:
        return ABSTAINED_FINISH
    reasons: dict[str, FinishReason] = {"length": "length", "refusal": "refusal"}
    return reasons.get(completion.finish_reason, "error")


def is_recordable(completion: Completion) -> bool:
    """Return whether a completion can be written down and read back."""
    if completion.error == Failed.DAMAGED_ANSWER:
        return False
    text = (completion.text or "") if completion.is_answer else ""
    # Half of a surrogate pair is no text that a file could hold.
    data = text.encode("utf-8", "replace")
    return len(data) <= MAX_TEXT_BYTES and data.decode() == text


def read_responses(path: Path) -> Iterator[tuple[bytes, Completion]]:
    """Yield the answers of an untrusted file by their keys."""
    with catch_read_errors(path, ADVICE), open_parquet(path, path.parents[1]) as file:
        if not file.schema.equals(RESPONSES.schema):
            names = ", ".join(f"{field.name} ({field.type})" for field in RESPONSES.schema)
            raise ReleaseError(f"{str(path)!r} has other columns, expected {names}: {ADVICE}")
        number = 0
        for batch in file.iterate_batches(list(_Response.model_fields), rows=BATCH_ROWS):
            longest = pc.max(pc.binary_length(batch["text"])).as_py() or 0
            if longest > MAX_TEXT_BYTES:
                raise ReleaseError(
                    f"{str(path)!r}: after row {number} stands a text of {longest} bytes, "
                    f"expected at most {MAX_TEXT_BYTES}: {ADVICE}"
                )
            for row in batch.to_pylist():
                yield _parse_response(path, number, row)
                number += 1


def _parse_response(path: Path, number: int, row: dict[str, Any]) -> tuple[bytes, Completion]:
    try:
        response = _Response.model_validate(row)
    except ValidationError as error:
        problem = describe_problem(error, "the row")
        raise ReleaseError(f"{str(path)!r}: row {number}: {problem}: {ADVICE}") from None
    tokens = response.usage.model_dump().values() if response.usage else ()
    is_abstained = response.finish_reason == ABSTAINED_FINISH
    return bytes.fromhex(response.request_key), Completion(
        response.text,
        error=ABSTAINED_FINISH if is_abstained else None,
        finish_reason="error" if is_abstained else response.finish_reason,
        usage=Usage(*(count or 0 for count in tokens)),
    )


TABLE_BATCH_ROWS = 5000
ASKED_SQL = """create table asked (
    key blob, url text, task text not null, primary key (key, url)
) without rowid"""


@dataclass(frozen=True)
class ResponseCounts:
    """How many answers were written, and how many left out, by reason."""

    rows: int
    left_out: Mapping[LeftOut, int]


def write_responses(
    folder: RunFolder,
    requests: Iterable[tuple[bytes, Request]],
    store: Store,
    posts: Dataset,
    *,
    restricted: frozenset[str],
    sealed: frozenset[str] = frozenset(),
) -> ResponseCounts:
    """Write each stored answer once, sorted by key; there may be millions of requests.

    Not those about posts of `sealed` samples; where there are any, nor those about unknown posts.
    """
    table = arrow_rows(posts, ["url", "platform"])
    mask = pc.is_in(table["platform"], pa.array(sorted(restricted), pa.string()))
    restricted_urls = frozenset(table["url"].filter(mask).to_pylist())

    def is_restricted(url: str) -> bool:
        """Return whether a post is of a restricted platform, by address or by its row."""
        return url in restricted_urls or platform_of(url) in restricted

    rows_written = 0
    left_out: Counter[LeftOut] = Counter()
    # Of what a killed run left in the cache, the next one sweeps this.
    partial = folder.cache / "tmp-responses.parquet"
    partial.parent.mkdir(parents=True, exist_ok=True)
    with (
        closing(open_scratch(ASKED_SQL)) as requests_asked,
        pq.ParquetWriter(partial, RESPONSES.features.arrow_schema) as file,
    ):
        requests_asked.execute("begin")
        for key, request in requests:
            values = ((key, url, request.task) for url in request.sources or ("",))
            requests_asked.executemany("insert or ignore into asked values (?, ?, ?)", values)
        requests_asked.execute("commit")
        ordered = requests_asked.execute(
            "select key, min(task), json_group_array(url) from asked group by key order by key"
        )
        while batch := {key: details for key, *details in islice(ordered, TABLE_BATCH_ROWS)}:
            rows = []
            for key, completion in sorted(store.get(list(batch)).items()):
                task, urls = batch[key]
                sources = sorted(filter(None, json.loads(urls)))
                if (not sources and restricted) or any(map(is_restricted, sources)):
                    left_out[LeftOut.MAY_QUOTE] += 1
                elif (not sources and sealed) or not sealed.isdisjoint(sources):
                    left_out[LeftOut.SEALED] += 1
                elif not is_recordable(completion):
                    left_out[LeftOut.UNFIT] += 1
                else:
                    rows.append(_make_row(key, task, sources, completion))
            rows_written += len(rows)
            file.write_table(pa.Table.from_pylist(rows, schema=file.schema))
    partial.replace(folder.responses)
    return ResponseCounts(rows_written, dict(sorted(left_out.items())))


def _make_row(key: bytes, task: str, sources: list[str], completion: Completion) -> dict[str, Any]:
    usage = completion.usage
    return {
        "request_key": key.hex(),
        "task": task,
        "text": completion.text if completion.is_answer else None,
        "finish_reason": get_finish_reason(completion),
        "usage": {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "cached_tokens": usage.cached,
        },
        "sources": sources,
    }


RECORDED_SQL = """create table recorded (
    key blob primary key, text text, error text, finish_reason text not null,
    prompt integer not null, completion integer not null, cached integer not null
) without rowid"""


class RecordedAnswers:
    """The recorded answers of a release, with the interface of an answer store."""

    def __init__(self) -> None:
        self._connection = open_scratch(RECORDED_SQL)

    def add(self, answers: Iterable[tuple[bytes, Completion]]) -> None:
        self._connection.execute("begin")
        for key, completion in answers:
            usage = completion.usage
            outcome = (completion.text, completion.error, completion.finish_reason)
            row = (key, *outcome, usage.prompt, usage.completion, usage.cached)
            try:
                self._connection.execute("insert into recorded values (?, ?, ?, ?, ?, ?, ?)", row)
            except sqlite3.IntegrityError:
                raise ReleaseError(
                    f"request_key {key.hex()!r} stands in two rows of the responses, expected each "
                    f"once: {ADVICE}"
                ) from None
        self._connection.execute("commit")

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        query = "select * from recorded where key in ({0})"
        return {
            key: Completion(text, error, finish_reason, Usage(*tokens))
            for key, text, error, finish_reason, *tokens in select_by_keys(
                self._connection, query, keys
            )
        }

    def __len__(self) -> int:
        return int(self._connection.execute("select count(*) from recorded").fetchone()[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def read_recorded_answers(path: Path) -> RecordedAnswers:
    """Read the recorded answers of a release, after verifying it."""
    release = read_release(path)
    configs = release.manifest.configs
    if RESPONSES_CONFIG not in configs:
        raise ReleaseError(
            f"release {str(path)!r} carries no {RESPONSES_CONFIG}, only "
            f"{', '.join(map(repr, configs))}: take one that was built with "
            "--with-responses, or ask its builder for one"
        )
    verify_release(release.path, RESPONSES_CONFIG)
    with ExitStack() as stack:
        recorded = stack.enter_context(RecordedAnswers())
        for file in config_files(release, RESPONSES_CONFIG):
            recorded.add(read_responses(file))
        stack.pop_all()
    return recorded
