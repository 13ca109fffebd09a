"""The store: every answer a model gave, kept the moment it was given.

One SQLite file in WAL mode. An answer is found by its request's key: the engine's signature, the
messages with the digests of their pictures, the answer's schema and the token limit. What is kept
is the raw text; parsing happens on reading. Errors, refusals and cut answers are not answers: the
last one of a request is remembered apart, so that its row's quarantine can say why. Tokens and
prices add up over all calls of a request, and every post that went into it is written down.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any

from echo_hf.engines.base import Completion, Request, Usage
from echo_hf.request_key import signature_digest
from echo_hf.store_file import (
    ANSWER_ROWS,
    FAILURE_ROWS,
    FORGET,
    INSERT_ANSWER,
    INSERT_FAILURE,
    INSERT_SOURCE,
    RECORD_ROWS,
    connect,
    explained,
)

MOST_VARIABLES = 500
MOST_TRIES = 2


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a request without reading its answer.

    Attributes:
        tries: How many tries its answer took, 0 when there is none.
        readable: Whether the answer could be read when it came.
        usage: Tokens of all its calls, failed ones included.
        cost_usd: Price of all its calls, null when unknown.
    """

    tries: int = 0
    readable: bool = False
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None

    @property
    def settled(self) -> bool:
        """Whether nothing is left to ask: it was readable, or had its two tries."""
        return self.readable or self.tries >= MOST_TRIES


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
        self._writing = RLock()
        self._open()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        """What is known of requests: their answers, or else their last failure.

        Args:
            keys: Keys of requests, as `request_keys` computes them.

        Returns:
            A completion for each key that was ever answered or failed, with the tokens and the
            price of all calls that ended so.
        """
        known = dict(self._rows(ANSWER_ROWS, keys, _answer))
        rest = [key for key in keys if key not in known]
        return {**known, **dict(self._rows(FAILURE_ROWS, rest, _failure))} if rest else known

    def answered(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those of the keys that have an answer, readable or not."""
        return {key for key, record in self.records(keys).items() if record.tries}

    def records(self, keys: Sequence[bytes]) -> dict[bytes, Record]:
        """What is known of requests without reading a text.

        Args:
            keys: Keys of requests.

        Returns:
            A record for each key that was ever answered or failed.
        """
        return dict(self._rows(RECORD_ROWS, keys, _record))

    def put(
        self,
        key: bytes,
        request: Request,
        completion: Completion,
        signature: Mapping[str, Any],
        *,
        readable: bool = True,
        tries: int = 1,
        sources_known: bool = False,
    ) -> None:
        """Keeps a completion; it is durable against a killed process when this returns.

        Args:
            key: Key of the request.
            request: The request.
            completion: What came back; anything but an answer is remembered as a failure.
            signature: Signature of the engine.
            readable: Whether the answer has the declared shape.
            tries: Which try of the request this is, from 1.
            sources_known: True after `add_sources`, which is cheaper for many requests at once.
        """
        if completion.is_answer:
            model = self._model(signature)
            row = (*_answer_row(key, request, completion, model), readable, tries)
        else:
            row = _failure_row(key, completion)
        insert = INSERT_ANSWER if completion.is_answer else INSERT_FAILURE
        with self._opened() if sources_known else self._transaction() as connection:
            connection.execute(insert, row)
            if not sources_known:
                connection.executemany(INSERT_SOURCE, [(url, key) for url in request.sources])

    def add_sources(self, sources: Iterable[tuple[str, bytes]]) -> None:
        """Notes posts that go into requests, answered already or about to be.

        Args:
            sources: Addresses of posts, each with the key of a request; known ones change nothing.
        """
        with self._transaction() as connection:
            connection.executemany(INSERT_SOURCE, sources)

    def forget(self, urls: Iterable[str]) -> int:
        """Deletes every answer and failure that a post went into, from the file's bytes as well.

        Args:
            urls: Addresses of posts.

        Returns:
            How many answers were deleted.
        """
        wanted = [(url,) for url in set(urls)]
        with self._opened() as connection:
            connection.execute("pragma secure_delete = on")
            with self._transaction():
                deleted = _forget(connection, wanted)
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
        self._writing = RLock()

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
                marks = ",".join(f"?{number}" for number in range(1, len(some) + 1))
                for row in connection.execute(query.format(marks), some):
                    yield row[0], read(row)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with explained(self.path):
            yield self._open()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        # An engine may take requests in another thread than the one that keeps its answers.
        with self._writing, self._opened() as connection:
            connection.execute("begin immediate")
            try:
                yield connection
            except BaseException:
                connection.execute("rollback")
                self._last_model = None
                raise
            connection.execute("commit")

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            with explained(self.path):
                self._connection = connect(self.path)
        return self._connection


def _forget(connection: sqlite3.Connection, urls: list[tuple[str]]) -> int:
    connection.execute("create temp table forgotten (key blob primary key) without rowid")
    connection.executemany(
        "insert or ignore into forgotten select key from sources where url = ?", urls
    )
    deleted = connection.execute(FORGET.format("answers")).rowcount
    for table in ("failures", "sources"):
        connection.execute(FORGET.format(table))
    connection.execute("drop table forgotten")
    return deleted


def _completion(row: tuple[Any, ...], text: str | None, error: str | None) -> Completion:
    return Completion(text, error, row[2], Usage(*row[3:6]), row[6])


def _answer(row: tuple[Any, ...]) -> Completion:
    return _completion(row, _said(row[1]), None)


def _failure(row: tuple[Any, ...]) -> Completion:
    return _completion(row, None, _said(row[1]))


def _record(row: tuple[Any, ...]) -> Record:
    return Record(row[1], bool(row[2]), Usage(*row[3:6]), row[6])


def _answer_row(
    key: bytes, request: Request, completion: Completion, model: str
) -> tuple[Any, ...]:
    text = _storable(completion.text)
    return key, request.task, model, text, completion.finish_reason, *_paid(completion)


def _failure_row(key: bytes, completion: Completion) -> tuple[Any, ...]:
    return key, _storable(completion.error), completion.finish_reason, *_paid(completion)


def _paid(completion: Completion) -> tuple[int, int, int, float | None]:
    usage = completion.usage
    return usage.prompt, usage.completion, usage.cached, completion.cost_usd


def _storable(text: str | None) -> str | bytes | None:
    # An answer cut inside a character may end in half of it, which SQLite takes as bytes only.
    try:
        text is None or text.encode()
    except UnicodeEncodeError:
        return (text or "").encode("utf-8", "surrogatepass")
    return text


def _said(stored: str | bytes | None) -> str | None:
    return stored.decode("utf-8", "surrogatepass") if isinstance(stored, bytes) else stored
