"""The store: every answer a model gave, kept the moment it was given.

One SQLite file in WAL mode. An answer is found by its request's key: the engine's signature, the
messages with the digests of their pictures, the answer's schema and the token limit. What is kept
is the raw text; parsing happens on reading. Errors, refusals and cut answers are not answers: the
last one of a request is remembered apart, so that its row's quarantine can say why.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from echo_hf.engines.base import Completion, Request, Usage
from echo_hf.request_key import signature_digest
from echo_hf.store_file import connect, explained

MOST_VARIABLES = 500


class Store:
    """The answers of one run.

    Args:
        path: The SQLite file; made when it does not exist.

    Raises:
        StoreError: The file is not a store, is damaged, or was written by another version.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None
        self._last_model: tuple[Mapping[str, Any], str] | None = None
        self._open()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        """What is known of requests: their answers, or else their last failure.

        Args:
            keys: Keys of requests, as `request_keys` computes them.

        Returns:
            A completion for each key that was ever answered or failed.
        """
        known = dict(self._rows(ANSWER_ROWS, keys, _answer))
        rest = [key for key in keys if key not in known]
        return {**known, **dict(self._rows(FAILURE_ROWS, rest, _failure))} if rest else known

    def answered(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those of the keys that have an answer."""
        return {key for key, _ in self._rows(KEY_ROWS, keys, _nothing)}

    def put(
        self, key: bytes, request: Request, completion: Completion, signature: Mapping[str, Any]
    ) -> None:
        """Keeps a completion; it is durable against a killed process when this returns.

        Args:
            key: Key of the request.
            request: The request.
            completion: What came back; anything but an answer is remembered as a failure.
            signature: Signature of the engine.
        """
        with self._opened() as connection:
            if completion.is_answer:
                row = _answer_row(key, request, completion, self._model(signature))
                connection.execute(INSERT_ANSWER, row)
            else:
                connection.execute(INSERT_FAILURE, _failure_row(key, request, completion))

    def forget(self, urls: Iterable[str]) -> int:
        """Deletes every answer and failure that a post went into, from the file's bytes as well.

        Args:
            urls: Addresses of posts.

        Returns:
            How many answers were deleted.
        """
        wanted = (json.dumps(sorted(set(urls))),)
        with self._opened() as connection:
            connection.execute("pragma secure_delete = on")
            connection.execute(FORGET.format("failures"), wanted)
            deleted = connection.execute(FORGET.format("answers"), wanted).rowcount
            connection.execute("pragma wal_checkpoint(truncate)").fetchall()
        return deleted

    def __len__(self) -> int:
        with self._opened() as connection:
            return int(connection.execute("select count(*) from answers").fetchone()[0])

    def close(self) -> None:
        """Closes the file; it opens again when used."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path = state["path"]
        self._connection = None
        self._last_model = None

    def _model(self, signature: Mapping[str, Any]) -> str:
        if self._last_model is None or self._last_model[0] is not signature:
            model = signature_digest(signature).hex()[:16]
            text = json.dumps(signature, sort_keys=True, default=str)
            self._open().execute("insert or ignore into models values (?, ?)", (model, text))
            self._last_model = signature, model
        return self._last_model[1]

    def _rows(self, query: str, keys: Sequence[bytes], read: Any) -> Iterable[tuple[bytes, Any]]:
        with self._opened() as connection:
            for start in range(0, len(keys), MOST_VARIABLES):
                some = keys[start : start + MOST_VARIABLES]
                marks = ",".join("?" * len(some))
                for row in connection.execute(query.format(marks), some):
                    yield row[0], read(row)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with explained(self.path):
            yield self._open()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            with explained(self.path):
                self._connection = connect(self.path)
        return self._connection


KEY_ROWS = "select key from answers where key in ({})"
ANSWER_ROWS = (
    "select key, text, finish_reason, prompt_tokens, completion_tokens, cached_tokens, cost_usd "
    "from answers where key in ({})"
)
FAILURE_ROWS = "select key, error, finish_reason from failures where key in ({})"
INSERT_ANSWER = "insert or replace into answers values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_FAILURE = "insert or replace into failures values (?, ?, ?, ?)"
FORGET = (
    "delete from {0} where exists (select 1 from json_each({0}.sources) s "
    "join json_each(?) w on s.value = w.value)"
)


def _nothing(row: tuple[Any, ...]) -> None:
    del row


def _answer(row: tuple[Any, ...]) -> Completion:
    return Completion(_said(row[1]), None, row[2], Usage(row[3], row[4], row[5]), row[6])


def _failure(row: tuple[Any, ...]) -> Completion:
    return Completion(None, _said(row[1]), row[2])


def _answer_row(
    key: bytes, request: Request, completion: Completion, model: str
) -> tuple[Any, ...]:
    usage = completion.usage
    return (
        key,
        request.task,
        model,
        _storable(completion.text),
        completion.finish_reason,
        usage.prompt,
        usage.completion,
        usage.cached,
        completion.cost_usd,
        json.dumps(request.sources),
    )


def _failure_row(key: bytes, request: Request, completion: Completion) -> tuple[Any, ...]:
    sources = json.dumps(request.sources)
    return key, _storable(completion.error), completion.finish_reason, sources


def _storable(text: str | None) -> str | bytes | None:
    # An answer cut inside a character may end in half of it, which SQLite takes as bytes only.
    try:
        text is None or text.encode()
    except UnicodeEncodeError:
        return (text or "").encode("utf-8", "surrogatepass")
    return text


def _said(stored: str | bytes | None) -> str | None:
    return stored.decode("utf-8", "surrogatepass") if isinstance(stored, bytes) else stored
