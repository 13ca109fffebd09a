"""The answer store of a run: every answer under its request's key, stored as it comes."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from echo_hf._infra.sqlite import Database, select_by_keys
from echo_hf.engines.base import Completion, Failed, ImageRef, Message, Packing, Request, Usage

COST_COLUMNS = """prompt_tokens integer not null, completion_tokens integer not null,
    cached_tokens integer not null, cost_usd real"""


class _AnswerDatabase(Database):
    name = "store of answers"
    remedy = "ask the model again"
    schema = f"""
create table if not exists answers (
    key blob primary key, task text not null, model text not null, text text not null,
    finish_reason text not null, {COST_COLUMNS}, readable integer not null, tries integer not null,
    digest blob
) without rowid;
create table if not exists failures (
    key blob primary key, error text, finish_reason text not null, {COST_COLUMNS}
) without rowid;
create table if not exists models (digest text primary key, signature text not null) without rowid;
create table if not exists sources (
    url text not null, key blob not null, primary key (url, key)
) without rowid"""
    pragmas = "pragma synchronous = normal; pragma wal_autocheckpoint = 16384"
    digest_column = "digest"  # as queries name it

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.text_factory = _decode_or_bytes
        connection.create_function("text_digest", 1, answer_checksum, deterministic=True)
        super()._prepare(connection)
        if not self._has_digests(connection):
            self._add_digests(connection)
        self.digest_column = "digest" if self._has_digests(connection) else "null"

    def _has_digests(self, connection: sqlite3.Connection) -> bool:
        columns = connection.execute("select name from pragma_table_info('answers')")
        return ("digest",) in columns.fetchall()

    def _add_digests(self, connection: sqlite3.Connection) -> None:
        """Add digests to a store of an earlier version, where it is writable."""
        if self.frozen:
            return
        connection.execute("begin immediate")
        try:
            if not self._has_digests(connection):  # nor did another process add them meanwhile
                connection.execute("alter table answers add column digest blob")
                connection.execute(f"update answers set digest = {DIGEST_SQL}")  # noqa: S608
            connection.execute("commit")
        except sqlite3.OperationalError as error:
            if connection.in_transaction:
                connection.execute("rollback")
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY:
                raise


DIGEST_BYTES = 8  # against damage: who writes the text can write its digest as well
DIGEST_SQL = "text_digest(cast(answers.text as blob))"
DAMAGED = Completion(None, error=Failed.DAMAGED_ANSWER.value, finish_reason="error")


def answer_checksum(text: str | bytes) -> bytes:
    """Compute the checksum stored beside an answer, which reveals damage."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


SELECT_CALLS = """
    select key, text, null, finish_reason, prompt_tokens, completion_tokens, cached_tokens,
        cost_usd, readable, tries, %s from answers where key in ({0})
    union all
    select key, null, error, finish_reason, prompt_tokens, completion_tokens, cached_tokens,
        cost_usd, 0, 0, null from failures where key in ({0})"""
# Tokens and prices add up over the calls of a request; a price that is null adds nothing.
ADD_COSTS = """prompt_tokens = prompt_tokens + excluded.prompt_tokens,
    completion_tokens = completion_tokens + excluded.completion_tokens,
    cached_tokens = cached_tokens + excluded.cached_tokens,
    cost_usd = coalesce(cost_usd + excluded.cost_usd, cost_usd, excluded.cost_usd)"""
ANSWER_COLUMNS = """key, task, model, text, finish_reason, prompt_tokens, completion_tokens,
    cached_tokens, cost_usd, readable, tries"""
TEXT_COLUMN = 3  # its place among them
UPSERT_ANSWER = f"""insert into answers ({ANSWER_COLUMNS}, digest)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (key) do update set
    task = excluded.task, model = excluded.model, text = excluded.text, digest = excluded.digest,
    finish_reason = excluded.finish_reason, readable = excluded.readable, tries = excluded.tries"""  # noqa: S608
INSERT_ANSWER = f"{UPSERT_ANSWER}, {ADD_COSTS}"
INSERT_FAILURE = f"""insert into failures values (?, ?, ?, ?, ?, ?, ?) on conflict (key)
    do update set error = excluded.error, finish_reason = excluded.finish_reason, {ADD_COSTS}"""  # noqa: S608
INSERT_SOURCE = "insert or ignore into sources values (?, ?)"
TAKE_ROWS = {
    # Of two answers a readable one, then the one with more tries; of equal ones the one here.
    "answers": f"""{UPSERT_ANSWER},
        prompt_tokens = excluded.prompt_tokens, completion_tokens = excluded.completion_tokens,
        cached_tokens = excluded.cached_tokens, cost_usd = excluded.cost_usd
        where (excluded.readable, excluded.tries) > (answers.readable, answers.tries)
        or answers.digest != {DIGEST_SQL}""",
    "failures": "insert or ignore into failures values (?, ?, ?, ?, ?, ?, ?)",
    "models": "insert or ignore into models values (?, ?)",
}


def compute_request_keys(signature: Mapping[str, Any], requests: Sequence[Request]) -> list[bytes]:
    """Compute the keys under which answers are stored."""
    base = hashlib.sha256(signature_digest(signature))
    # Instructions are the same object in thousands of requests, all alive: hashed once.
    shared: dict[int, bytes] = {}
    keys = []
    for request in requests:
        key = base.copy()
        key.update(_hash_schema(request.answer))
        key.update(b"%d" % request.max_tokens)
        if request.regex is not None:
            key.update(b"r" + hashlib.sha256(request.regex.encode()).digest())
        if request.repeat:
            key.update(b"n%d" % request.repeat)
        if request.packing is not None:
            key.update(b"p" + _hash_packing(request.packing))
        for message in request.messages:
            if message.role != "system":
                key.update(_hash_message(message))
            else:
                if id(message) not in shared:
                    shared[id(message)] = _hash_message(message)
                key.update(shared[id(message)])
        keys.append(key.digest())
    return keys


def signature_digest(signature: Mapping[str, Any]) -> bytes:
    """Return the sha256 of an engine's signature."""
    text = json.dumps(signature, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).digest()


@lru_cache(maxsize=16)
def _hash_packing(packing: Packing) -> bytes:
    shape = _hash_schema(packing.answer) + b"%d" % packing.size
    return hashlib.sha256(shape + _hash_message(packing.instructions)).digest()


def _hash_message(message: Message) -> bytes:
    digest = hashlib.sha256(message.role.encode())
    for part in message.parts:
        kind, content = (b"i", part.sha256) if isinstance(part, ImageRef) else (b"t", part.text)
        data = content.encode("utf-8", "surrogatepass")
        digest.update(b"%s%d:" % (kind, len(data)))
        digest.update(data)
    return digest.digest()


@lru_cache(maxsize=256)
def _hash_schema(answer: type[BaseModel] | None) -> bytes:
    schema: Any = None if answer is None else answer.model_json_schema()
    # A bound that was another when answers were stored under it: they still count.
    for name, length in getattr(answer, "keyed_lengths", {}).items():
        kinds = schema["properties"][name]
        for kind in kinds.get("anyOf", [kinds]):
            if kind["type"] == "string":
                kind["maxLength"] = length
    return hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).digest()


MAX_TRIES = 2
CUT_FINISH, REFUSED_FINISH = "length", "refusal"  # how completions end that are no answers
MAX_CAUSE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """Tries and costs of a request, without its answer's text; a damaged answer is none."""

    tries: int = 0
    readable: bool = False
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    damaged: bool = False
    refused: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to ask: readable, refused, or both tries made."""
        return self.readable or self.refused or self.tries >= MAX_TRIES


class Store:
    """The answers of one run.

    Args:
        path: The SQLite file; made when it does not exist.

    Raises:
        StoreError: The file is not a store, is damaged, or was written by another version.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._file = _AnswerDatabase(self.path)
        self._last_model: tuple[Mapping[str, Any], str] | None = None
        self.proven: set[str] = set()  # signatures of engines with an answer that can be used

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        """Return the completions of requests by key: the answer, else the last failure.

        Each comes with the tokens and the price of all calls that ended so. An answer whose text
        was damaged is a failure.
        """
        stored: dict[bytes, Completion] = {}
        for key, text, error, finish, *costs, readable, _, digest in self._read_calls(keys):
            if text is not None and is_damaged(text, digest):
                stored[key] = DAMAGED
            elif text is not None and finish == CUT_FINISH and not readable:
                usage, cost = Usage(*costs[:3]), costs[3]
                stored[key] = Completion(None, _decode(text) or None, finish, usage, cost)
            elif text is not None or stored.get(key, DAMAGED) is DAMAGED:
                usage, cost = Usage(*costs[:3]), costs[3]
                stored[key] = Completion(_decode(text), _decode(error), finish, usage, cost)
        return stored

    def records(self, keys: Sequence[bytes]) -> dict[bytes, RequestRecord]:
        """Return what is recorded of each request that was answered or failed, without its text."""
        records: dict[bytes, RequestRecord] = {}
        for key, text, _, finish, *costs, readable, tries, digest in self._read_calls(keys):
            record, cost = records.get(key, RequestRecord()), costs[3]
            is_bad = text is not None and is_damaged(text, digest)
            records[key] = RequestRecord(
                record.tries if is_bad else max(record.tries, tries),
                bool(record.readable or (readable and not is_bad)),
                record.usage + Usage(*costs[:3]),
                record.cost_usd if cost is None else (record.cost_usd or 0.0) + cost,
                record.damaged or is_bad,
                record.refused or finish == REFUSED_FINISH,
            )
        return records

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
        """Store a completion, durable against a killed process.

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
        usage, finish_reason = completion.usage, completion.finish_reason
        costs = (usage.prompt, usage.completion, usage.cached, completion.cost_usd)
        if readable is None:
            readable = completion.is_answer
        if completion.is_answer or readable or finish_reason == CUT_FINISH:
            answer = completion.text or ""
            if finish_reason == CUT_FINISH and not readable:  # its beginning tells what went wrong
                answer = (completion.error or answer)[:MAX_CAUSE_CHARACTERS]
            model, text = self._add_model(signature), _to_storable(answer)
            digest = answer_checksum(text or b"")
            row = (key, request.task, model, text, finish_reason, *costs, readable, tries, digest)
            self._file.execute(INSERT_ANSWER, *row)
        else:
            cause = completion.error or (completion.text or "")[:MAX_CAUSE_CHARACTERS] or None
            self._file.execute(INSERT_FAILURE, key, _to_storable(cause), finish_reason, *costs)

    @contextmanager
    def write_together(self, signature: Mapping[str, Any]) -> Iterator[None]:
        """Open a transaction for the answers of one call: all of them are kept, or none."""
        self._add_model(signature)  # which is a transaction of its own
        with self._file.write():
            yield

    def add_sources(self, sources: Iterable[tuple[str, bytes]]) -> None:
        """Record posts, each with the key of a request that quotes it; known ones stay."""
        with self._file.write() as connection:
            connection.executemany(INSERT_SOURCE, sources)

    def take(self, path: Path, posts: Collection[str]) -> int:
        """Copy what another run's store holds about posts, each answer once.

        Args:
            path: The file of a run that has ended; it is only read.
            posts: Addresses; what went into a request with any other post stays there.

        Returns:
            How many answers are damaged, and stay there too.
        """
        damaged = 0

        def skip_damaged(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
            nonlocal damaged
            for *row, digest in rows:
                if is_damaged(row[TEXT_COLUMN], digest):
                    damaged += 1
                else:
                    yield (*row, answer_checksum(row[TEXT_COLUMN]))

        with _AnswerDatabase(path, frozen=True) as other:
            sources = other.iterate_rows("select url, key from sources")
            left_keys = {key for url, key in sources if url not in posts}
            with self._file.write() as connection:
                for table, insert in TAKE_ROWS.items():
                    is_answers = table == "answers"
                    columns = f"{ANSWER_COLUMNS}, {other.digest_column}" if is_answers else "*"
                    rows = other.iterate_rows(f"select {columns} from {table}")  # noqa: S608 - own names
                    rows = (row for row in rows if row[0] not in left_keys)
                    connection.executemany(insert, skip_damaged(rows) if is_answers else rows)
                pairs = other.iterate_rows("select url, key from sources")
                connection.executemany(
                    INSERT_SOURCE, (pair for pair in pairs if pair[1] not in left_keys)
                )
        return damaged

    def forget(self, urls: Iterable[str]) -> int:
        """Delete every answer and failure that quotes a post, from the file's bytes as well.

        Args:
            urls: Addresses of posts.

        Returns:
            How many answers were deleted.
        """
        deleted = {}
        with self._file.erase() as connection:
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
        return int(self._file.execute(query, CUT_FINISH)[0][0])

    def close(self) -> None:
        """Close the file; it reopens when used."""
        self._file.close()

    def __reduce__(self) -> tuple[type[Store], tuple[Path]]:
        return Store, (self.path,)

    def _read_calls(self, keys: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
        with self._file.connect() as connection:
            yield from select_by_keys(connection, SELECT_CALLS % self._file.digest_column, keys)

    def _add_model(self, signature: Mapping[str, Any]) -> str:
        if self._last_model is None or self._last_model[0] is not signature:
            model = signature_digest(signature).hex()[:16]
            text = json.dumps(signature, sort_keys=True, default=str)
            with self._file.write() as connection:
                connection.execute("insert or ignore into models values (?, ?)", (model, text))
            self._last_model = signature, model
        return self._last_model[1]


def _to_storable(text: str | None) -> str | bytes | None:
    # An answer cut inside a character may end in half of it, which SQLite takes as bytes only.
    try:
        text is None or text.encode()
    except UnicodeEncodeError:
        return (text or "").encode("utf-8", "surrogatepass")
    return text


def _decode_or_bytes(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _decode(stored: str | bytes | None) -> str | None:
    if not isinstance(stored, bytes):
        return stored
    try:
        return stored.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return stored.decode("utf-8", "replace")


def is_damaged(text: Any, digest: bytes | None) -> bool:
    """Return whether an answer's text is not what was stored."""
    if not isinstance(text, str | bytes):
        return True
    is_text = isinstance(text, str) or text == (_decode(text) or "").encode(
        "utf-8", "surrogatepass"
    )
    return not is_text or digest not in (None, answer_checksum(text))
