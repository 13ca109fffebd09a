"""The store: every answer a model gave, kept the moment it was given.

One SQLite file in WAL mode. An answer is found by its request's key: the engine's signature, the
messages with the digests of their pictures, the answer's schema and the token limit. What is kept
is the raw text; parsing happens on reading. Errors, refusals and cut answers are not answers: the
last one of a request is remembered apart, so that its row's quarantine can say why.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from echo_hf.engines.base import Completion, ImageRef, Message, Request, Usage
from echo_hf.errors import StoreError

FORMAT = 1
MOST_VARIABLES = 500
LONGEST_WAIT_S = 60
TABLES = (
    """create table answers (
    key blob primary key, task text not null, model text not null, text text not null,
    finish_reason text not null, prompt_tokens integer not null, completion_tokens integer not null,
    cached_tokens integer not null, cost_usd real, sources text not null
) without rowid""",
    """create table failures (
    key blob primary key, error text, finish_reason text not null, sources text not null
) without rowid""",
    "create table models (digest text primary key, signature text not null) without rowid",
)


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
        with _explained(self.path):
            yield self._open()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            with _explained(self.path):
                self._connection = _connect(self.path)
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


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        raise StoreError(
            f"cannot use the store of answers {str(path)!r} ({error}): its folder must be writable "
            "and have room, and no other program may hold the file"
        ) from error
    except sqlite3.DatabaseError as error:
        raise StoreError(
            f"{str(path)!r} is not a readable store of answers ({error}): "
            "move it away to ask the model again"
        ) from error


def _connect(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(
        path, timeout=LONGEST_WAIT_S, isolation_level=None, check_same_thread=False
    )
    try:
        if not _version(connection):
            _create(connection, path)
        if _version(connection) != FORMAT:
            raise StoreError(
                f"{str(path)!r} has store format {_version(connection)}, this version reads "
                f"{FORMAT}: upgrade echo-hf, or move the file away to ask the model again"
            )
        _write_ahead(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("pragma user_version").fetchone()[0])


def _create(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("begin immediate")
    if not _version(connection):  # else another process was faster
        if connection.execute("select count(*) from sqlite_master").fetchone()[0]:
            raise StoreError(
                f"{str(path)!r} is another program's database: choose another place for the answers"
            )
        for table in TABLES:
            connection.execute(table)
        connection.execute(f"pragma user_version = {FORMAT}")
    connection.execute("commit")


def _write_ahead(connection: sqlite3.Connection) -> None:
    until = time.monotonic() + LONGEST_WAIT_S
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
            break
        except sqlite3.OperationalError:
            # This switch alone does not wait for other processes by itself.
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
    connection.execute("pragma synchronous = normal")
    connection.execute("pragma wal_autocheckpoint = 16384")


def request_keys(signature: Mapping[str, Any], requests: Sequence[Request]) -> list[bytes]:
    """Keys under which answers are kept.

    Args:
        signature: Signature of the engine that is asked.
        requests: What it is asked.

    Returns:
        32 bytes a request; equal for requests that the same engine must answer alike.
    """
    base = hashlib.sha256(signature_digest(signature))
    return [_request_key(base.copy(), request) for request in requests]


def signature_digest(signature: Mapping[str, Any]) -> bytes:
    """Sha256 of an engine's signature."""
    text = json.dumps(signature, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).digest()


def _request_key(key: Any, request: Request) -> bytes:
    key.update(_schema_digest(request.answer))
    key.update(b"%d" % request.max_tokens)
    for message in request.messages:
        # Instructions are the same object in thousands of requests: hashed once.
        key.update(_shared(message) if message.role == "system" else _message_digest(message))
    return bytes(key.digest())


def _message_digest(message: Message) -> bytes:
    digest = hashlib.sha256(message.role.encode())
    for part in message.parts:
        kind, content = ("i", part.sha256) if isinstance(part, ImageRef) else ("t", part.text)
        data = content.encode("utf-8", "surrogatepass")
        digest.update(b"%s%d:" % (kind.encode(), len(data)))
        digest.update(data)
    return digest.digest()


_shared = lru_cache(maxsize=256)(_message_digest)


@lru_cache(maxsize=256)
def _schema_digest(answer: type[BaseModel]) -> bytes:
    return hashlib.sha256(json.dumps(answer.model_json_schema(), sort_keys=True).encode()).digest()
