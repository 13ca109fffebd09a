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
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from echo_hf.engines.base import Completion, ImageRef, Message, Request, Usage
from echo_hf.errors import StoreError

FORMAT = 1
MOST_VARIABLES = 500
TABLES = """
create table if not exists answers (
    key blob primary key, task text not null, model text not null, text text not null,
    finish_reason text not null, prompt_tokens integer not null, completion_tokens integer not null,
    cached_tokens integer not null, cost_usd real, sources text not null
) without rowid;
create table if not exists failures (
    key blob primary key, error text, finish_reason text not null
) without rowid;
create table if not exists models (digest text primary key, signature text not null) without rowid;
"""


class Store:
    """The answers of one run.

    Args:
        path: The SQLite file; made when it does not exist.

    Raises:
        StoreError: The file is not a store, or was written by a newer version.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None
        self._models: set[str] = set()
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
        connection = self._open()
        if not completion.is_answer:
            row = (key, completion.error, completion.finish_reason)
            connection.execute("insert or replace into failures values (?, ?, ?)", row)
            return
        model = signature_digest(signature).hex()[:16]
        if model not in self._models:
            text = json.dumps(signature, sort_keys=True, default=str)
            connection.execute("insert or ignore into models values (?, ?)", (model, text))
            self._models.add(model)
        usage = completion.usage
        connection.execute(
            "insert or replace into answers values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                key,
                request.task,
                model,
                completion.text,
                completion.finish_reason,
                usage.prompt,
                usage.completion,
                usage.cached,
                completion.cost_usd,
                json.dumps(request.sources),
            ),
        )

    def forget(self, urls: Iterable[str]) -> int:
        """Deletes every answer that a post went into.

        Args:
            urls: Addresses of posts.

        Returns:
            How many answers were deleted.
        """
        connection = self._open()
        wanted = json.dumps(sorted(set(urls)))
        cursor = connection.execute(
            "delete from answers where exists (select 1 from json_each(answers.sources) s "
            "join json_each(?) w on s.value = w.value)",
            (wanted,),
        )
        return cursor.rowcount

    def __len__(self) -> int:
        return int(self._open().execute("select count(*) from answers").fetchone()[0])

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
        self._models = set()

    def _rows(self, query: str, keys: Sequence[bytes], read: Any) -> Iterable[tuple[bytes, Any]]:
        connection = self._open()
        for start in range(0, len(keys), MOST_VARIABLES):
            some = keys[start : start + MOST_VARIABLES]
            marks = ",".join("?" * len(some))
            for row in connection.execute(query.format(marks), some):
                yield row[0], read(row)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _connect(self.path)
        return self._connection


KEY_ROWS = "select key from answers where key in ({})"
ANSWER_ROWS = (
    "select key, text, finish_reason, prompt_tokens, completion_tokens, cached_tokens, cost_usd "
    "from answers where key in ({})"
)
FAILURE_ROWS = "select key, error, finish_reason from failures where key in ({})"


def _nothing(row: tuple[Any, ...]) -> None:
    del row


def _answer(row: tuple[Any, ...]) -> Completion:
    return Completion(row[1], None, row[2], Usage(row[3], row[4], row[5]), row[6])


def _failure(row: tuple[Any, ...]) -> Completion:
    return Completion(None, row[1], row[2])


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        connection.execute("pragma wal_autocheckpoint = 16384")
        version = connection.execute("pragma user_version").fetchone()[0]
        if version not in (0, FORMAT):
            raise StoreError(
                f"{str(path)!r} has store format {version}, this version reads {FORMAT}: "
                "upgrade echo-hf, or move the file away to ask the model again"
            )
        connection.executescript(TABLES)
        connection.execute(f"pragma user_version = {FORMAT}")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise StoreError(
            f"{str(path)!r} is not a readable store of answers ({error}): "
            "move it away to ask the model again"
        ) from error
    return connection


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
