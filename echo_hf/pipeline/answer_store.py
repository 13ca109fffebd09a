"""The store: every answer a model gave, kept the moment it was given, under its request's key."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from echo_hf._infra.sqlite import Database, rows_of
from echo_hf.engines.base import Completion, ImageRef, Message, Request, Usage
from echo_hf.reasons import Failed

PAID = """prompt_tokens integer not null, completion_tokens integer not null,
    cached_tokens integer not null, cost_usd real"""


class _Answers(Database):
    name = "store of answers"
    remedy = "ask the model again"
    schema = f"""
create table if not exists answers (
    key blob primary key, task text not null, model text not null, text text not null,
    finish_reason text not null, {PAID}, readable integer not null, tries integer not null,
    digest blob
) without rowid;
create table if not exists failures (
    key blob primary key, error text, finish_reason text not null, {PAID}
) without rowid;
create table if not exists models (digest text primary key, signature text not null) without rowid;
create table if not exists sources (
    url text not null, key blob not null, primary key (url, key)
) without rowid"""
    pragmas = "pragma synchronous = normal; pragma wal_autocheckpoint = 16384"
    digest = "digest"  # as queries name it

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.text_factory = _decoded
        connection.create_function("text_digest", 1, text_digest, deterministic=True)
        super()._prepare(connection)
        if not self._has_digests(connection):
            self._fill_in(connection)
        self.digest = "digest" if self._has_digests(connection) else "null"

    def _has_digests(self, connection: sqlite3.Connection) -> bool:
        columns = connection.execute("select name from pragma_table_info('answers')")
        return ("digest",) in columns.fetchall()

    def _fill_in(self, connection: sqlite3.Connection) -> None:
        """Gives a store of an earlier version its digests, where it may be written."""
        if self.frozen:
            return
        connection.execute("begin immediate")
        try:
            if not self._has_digests(connection):  # nor did another process add them meanwhile
                connection.execute("alter table answers add column digest blob")
                connection.execute(f"update answers set digest = {TEXT_DIGEST}")  # noqa: S608
            connection.execute("commit")
        except sqlite3.OperationalError as error:
            if connection.in_transaction:
                connection.execute("rollback")
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY:
                raise


DIGEST_BYTES = 8  # against damage: who writes the text can write its digest as well
TEXT_DIGEST = "text_digest(cast(answers.text as blob))"
DAMAGED = Completion(None, error=Failed.DAMAGED_ANSWER.value, finish_reason="error")


def text_digest(text: str | bytes) -> bytes:
    """What is kept beside the text of an answer, to tell when it was damaged."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


CALLS = """
    select key, text, null, finish_reason, prompt_tokens, completion_tokens, cached_tokens,
        cost_usd, readable, tries, %s from answers where key in ({0})
    union all
    select key, null, error, finish_reason, prompt_tokens, completion_tokens, cached_tokens,
        cost_usd, 0, 0, null from failures where key in ({0})"""
# Tokens and prices add up over the calls of a request; a price that is null adds nothing.
ADDED = """prompt_tokens = prompt_tokens + excluded.prompt_tokens,
    completion_tokens = completion_tokens + excluded.completion_tokens,
    cached_tokens = cached_tokens + excluded.cached_tokens,
    cost_usd = coalesce(cost_usd + excluded.cost_usd, cost_usd, excluded.cost_usd)"""
COLUMNS = """key, task, model, text, finish_reason, prompt_tokens, completion_tokens,
    cached_tokens, cost_usd, readable, tries"""
TEXT = 3  # its place among them
ANSWER = f"""insert into answers ({COLUMNS}, digest)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (key) do update set
    task = excluded.task, model = excluded.model, text = excluded.text, digest = excluded.digest,
    finish_reason = excluded.finish_reason, readable = excluded.readable, tries = excluded.tries"""  # noqa: S608
INSERT_ANSWER = f"{ANSWER}, {ADDED}"
INSERT_FAILURE = f"""insert into failures values (?, ?, ?, ?, ?, ?, ?) on conflict (key)
    do update set error = excluded.error, finish_reason = excluded.finish_reason, {ADDED}"""  # noqa: S608
INSERT_SOURCE = "insert or ignore into sources values (?, ?)"
TAKEN = {
    # Of two answers a readable one, then the one with more tries; of equal ones the one here.
    "answers": f"""{ANSWER},
        prompt_tokens = excluded.prompt_tokens, completion_tokens = excluded.completion_tokens,
        cached_tokens = excluded.cached_tokens, cost_usd = excluded.cost_usd
        where (excluded.readable, excluded.tries) > (answers.readable, answers.tries)
        or answers.digest != {TEXT_DIGEST}""",
    "failures": "insert or ignore into failures values (?, ?, ?, ?, ?, ?, ?)",
    "models": "insert or ignore into models values (?, ?)",
}


def request_keys(signature: Mapping[str, Any], requests: Sequence[Request]) -> list[bytes]:
    """Keys under which answers are kept."""
    base = hashlib.sha256(signature_digest(signature))
    # Instructions are the same object in thousands of requests, all alive: hashed once.
    shared: dict[int, bytes] = {}
    keys = []
    for request in requests:
        key = base.copy()
        key.update(_schema_digest(request.answer))
        key.update(b"%d" % request.max_tokens)
        if request.regex is not None:
            key.update(b"r" + hashlib.sha256(request.regex.encode()).digest())
        if request.repeat:
            key.update(b"n%d" % request.repeat)
        for message in request.messages:
            if message.role != "system":
                key.update(_digest(message))
            else:
                if id(message) not in shared:
                    shared[id(message)] = _digest(message)
                key.update(shared[id(message)])
        keys.append(key.digest())
    return keys


def signature_digest(signature: Mapping[str, Any]) -> bytes:
    """Sha256 of an engine's signature."""
    text = json.dumps(signature, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).digest()


def _digest(message: Message) -> bytes:
    digest = hashlib.sha256(message.role.encode())
    for part in message.parts:
        kind, content = (b"i", part.sha256) if isinstance(part, ImageRef) else (b"t", part.text)
        data = content.encode("utf-8", "surrogatepass")
        digest.update(b"%s%d:" % (kind, len(data)))
        digest.update(data)
    return digest.digest()


@lru_cache(maxsize=256)
def _schema_digest(answer: type[BaseModel] | None) -> bytes:
    schema: Any = None if answer is None else answer.model_json_schema()
    # A bound that was another when answers were stored under it: they still count.
    for name, length in getattr(answer, "keyed_lengths", {}).items():
        kinds = schema["properties"][name]
        for kind in kinds.get("anyOf", [kinds]):
            if kind["type"] == "string":
                kind["maxLength"] = length
    return hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).digest()


MOST_TRIES = 2
CUT, REFUSED = "length", "refusal"  # how completions end that are no answers
LONGEST_CAUSE = 300


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a request beside its answer; one that was damaged is no answer."""

    tries: int = 0
    readable: bool = False
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    damaged: bool = False
    refused: bool = False

    @property
    def settled(self) -> bool:
        """Whether nothing is left to ask: it was readable, had its two tries, or was refused."""
        return self.readable or self.refused or self.tries >= MOST_TRIES


class Store:
    """The answers of one run.

    Args:
        path: The SQLite file; made when it does not exist.

    Raises:
        StoreError: The file is not a store, is damaged, or was written by another version.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._file = _Answers(self.path)
        self._last_model: tuple[Mapping[str, Any], str] | None = None

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        """What is known of requests, by their keys: their answers, or else their last failure.

        Each comes with the tokens and the price of all calls that ended so. An answer whose text
        was damaged is a failure.
        """
        known: dict[bytes, Completion] = {}
        for key, text, error, finish, *paid, readable, _, digest in self._calls(keys):
            if text is not None and is_damaged(text, digest):
                known[key] = DAMAGED
            elif text is not None and finish == CUT and not readable:
                usage, cost = Usage(*paid[:3]), paid[3]
                known[key] = Completion(None, _whole(text) or None, finish, usage, cost)
            elif text is not None or known.get(key, DAMAGED) is DAMAGED:
                usage, cost = Usage(*paid[:3]), paid[3]
                known[key] = Completion(_whole(text), _whole(error), finish, usage, cost)
        return known

    def records(self, keys: Sequence[bytes]) -> dict[bytes, Record]:
        """What is known of each request that was ever answered or failed, without its text."""
        known: dict[bytes, Record] = {}
        for key, text, _, finish, *paid, readable, tries, digest in self._calls(keys):
            record, cost = known.get(key, Record()), paid[3]
            damaged = text is not None and is_damaged(text, digest)
            known[key] = Record(
                record.tries if damaged else max(record.tries, tries),
                bool(record.readable or (readable and not damaged)),
                record.usage + Usage(*paid[:3]),
                record.cost_usd if cost is None else (record.cost_usd or 0.0) + cost,
                record.damaged or damaged,
                record.refused or finish == REFUSED,
            )
        return known

    def put(
        self,
        key: bytes,
        request: Request,
        completion: Completion,
        signature: Mapping[str, Any],
        *,
        readable: bool | None = None,
        tries: int = 1,
    ) -> None:
        """Keeps a completion; it is durable against a killed process when this returns.

        Args:
            key: Key of the request.
            request: The request; `add_sources` notes its posts, before.
            completion: What came back; anything but an answer is remembered as a failure, a cut
                one by its beginning.
            signature: Signature of the engine.
            readable: Whether the answer has the declared shape, a cut one in all that counts; by
                default each that is whole has it.
            tries: Which try of the request this is, from 1.
        """
        usage, ended = completion.usage, completion.finish_reason
        paid = (usage.prompt, usage.completion, usage.cached, completion.cost_usd)
        if readable is None:
            readable = completion.is_answer
        if completion.is_answer or readable or ended == CUT:
            said = completion.text or ""
            if ended == CUT and not readable:  # its beginning tells what went wrong
                said = (completion.error or said)[:LONGEST_CAUSE]
            model, text = self._model(signature), _storable(said)
            digest = text_digest(text or b"")
            row = (key, request.task, model, text, ended, *paid, readable, tries, digest)
            self._file.execute(INSERT_ANSWER, *row)
        else:
            why = completion.error or (completion.text or "")[:LONGEST_CAUSE] or None
            self._file.execute(INSERT_FAILURE, key, _storable(why), ended, *paid)

    def add_sources(self, sources: Iterable[tuple[str, bytes]]) -> None:
        """Notes posts, each with the key of a request that it goes into; known ones stay."""
        with self._file.transaction() as connection:
            connection.executemany(INSERT_SOURCE, sources)

    def take(self, path: Path, posts: Collection[str]) -> int:
        """Takes in what another run's store holds of posts, each answer once.

        Args:
            path: The file of a run that has ended; it is only read.
            posts: Addresses; what went into a request with any other post stays there.

        Returns:
            How many answers are damaged, and stay there too.
        """
        damaged = 0

        def intact(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
            nonlocal damaged
            for *row, digest in rows:
                if is_damaged(row[TEXT], digest):
                    damaged += 1
                else:
                    yield (*row, text_digest(row[TEXT]))

        with _Answers(path, frozen=True) as other:
            every = other.rows("select url, key from sources")
            left = {key for url, key in every if url not in posts}
            with self._file.transaction() as connection:
                for table, insert in TAKEN.items():
                    is_answers = table == "answers"
                    columns = f"{COLUMNS}, {other.digest}" if is_answers else "*"
                    rows = other.rows(f"select {columns} from {table}")  # noqa: S608 - own names
                    rows = (row for row in rows if row[0] not in left)
                    connection.executemany(insert, intact(rows) if is_answers else rows)
                pairs = other.rows("select url, key from sources")
                connection.executemany(
                    INSERT_SOURCE, (pair for pair in pairs if pair[1] not in left)
                )
        return damaged

    def forget(self, urls: Iterable[str]) -> int:
        """Deletes every answer and failure that a post went into, from the file's bytes as well.

        Args:
            urls: Addresses of posts.

        Returns:
            How many answers were deleted.
        """
        deleted = {}
        with self._file.erasing() as connection:
            connection.execute("create temp table forgotten (key blob primary key) without rowid")
            connection.executemany(
                "insert or ignore into forgotten select key from sources where url = ?",
                [(url,) for url in set(urls)],
            )
            for table in ("answers", "failures", "sources"):
                query = f"delete from {table} where key in (select key from forgotten)"  # noqa: S608
                deleted[table] = connection.execute(query).rowcount
            connection.execute("drop table forgotten")
        return deleted["answers"]

    def __len__(self) -> int:
        query = "select count(*) from answers where readable or finish_reason != ?"
        return int(self._file.execute(query, CUT)[0][0])

    def close(self) -> None:
        """Closes the file; it opens again when used."""
        self._file.close()

    def __reduce__(self) -> tuple[type[Store], tuple[Path]]:
        return Store, (self.path,)

    def _calls(self, keys: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
        with self._file.opened() as connection:
            yield from rows_of(connection, CALLS % self._file.digest, keys)

    def _model(self, signature: Mapping[str, Any]) -> str:
        if self._last_model is None or self._last_model[0] is not signature:
            model = signature_digest(signature).hex()[:16]
            text = json.dumps(signature, sort_keys=True, default=str)
            with self._file.transaction() as connection:
                connection.execute("insert or ignore into models values (?, ?)", (model, text))
            self._last_model = signature, model
        return self._last_model[1]


def _storable(text: str | None) -> str | bytes | None:
    # An answer cut inside a character may end in half of it, which SQLite takes as bytes only.
    try:
        text is None or text.encode()
    except UnicodeEncodeError:
        return (text or "").encode("utf-8", "surrogatepass")
    return text


def _decoded(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _whole(stored: str | bytes | None) -> str | None:
    if not isinstance(stored, bytes):
        return stored
    try:
        return stored.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return stored.decode("utf-8", "replace")


def is_damaged(text: Any, digest: bytes | None) -> bool:
    """Whether the text of an answer is not what was stored."""
    if not isinstance(text, str | bytes):
        return True
    is_text = isinstance(text, str) or text == (_whole(text) or "").encode("utf-8", "surrogatepass")
    return not is_text or digest not in (None, text_digest(text))
