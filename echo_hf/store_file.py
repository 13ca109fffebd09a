"""The SQLite file of a store: its tables, the statements on them, and how it is opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from echo_hf.errors import StoreError
from echo_hf.sqlite_file import LONGEST_WAIT_S, write_ahead

FORMAT = 1
PAID = """prompt_tokens integer not null, completion_tokens integer not null,
    cached_tokens integer not null, cost_usd real"""
TABLES = (
    f"""create table answers (
    key blob primary key, task text not null, model text not null, text text not null,
    finish_reason text not null, {PAID}, readable integer not null, tries integer not null
) without rowid""",
    f"""create table failures (
    key blob primary key, error text, finish_reason text not null, {PAID}
) without rowid""",
    "create table models (digest text primary key, signature text not null) without rowid",
    """create table sources (
    url text not null, key blob not null, primary key (url, key)
) without rowid""",
)
ANSWER_ROWS = (
    "select key, text, finish_reason, prompt_tokens, completion_tokens, cached_tokens, cost_usd "
    "from answers where key in ({0})"
)
FAILURE_ROWS = (
    "select key, error, finish_reason, prompt_tokens, completion_tokens, cached_tokens, cost_usd "
    "from failures where key in ({0})"
)
RECORD_ROWS = """
    select key, max(tries), max(readable), sum(prompt_tokens), sum(completion_tokens),
        sum(cached_tokens), sum(cost_usd)
    from (
        select key, tries, readable, prompt_tokens, completion_tokens, cached_tokens, cost_usd
        from answers where key in ({0})
        union all
        select key, 0, 0, prompt_tokens, completion_tokens, cached_tokens, cost_usd
        from failures where key in ({0})
    ) group by key"""
# Tokens and prices add up over the calls of a request; a price that is null adds nothing.
INSERT_ANSWER = """
    insert into answers values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict (key) do update set
        task = excluded.task, model = excluded.model, text = excluded.text,
        finish_reason = excluded.finish_reason,
        prompt_tokens = prompt_tokens + excluded.prompt_tokens,
        completion_tokens = completion_tokens + excluded.completion_tokens,
        cached_tokens = cached_tokens + excluded.cached_tokens,
        cost_usd = coalesce(cost_usd + excluded.cost_usd, cost_usd, excluded.cost_usd),
        readable = excluded.readable, tries = excluded.tries"""
INSERT_FAILURE = """
    insert into failures values (?, ?, ?, ?, ?, ?, ?)
    on conflict (key) do update set
        error = excluded.error, finish_reason = excluded.finish_reason,
        prompt_tokens = prompt_tokens + excluded.prompt_tokens,
        completion_tokens = completion_tokens + excluded.completion_tokens,
        cached_tokens = cached_tokens + excluded.cached_tokens,
        cost_usd = coalesce(cost_usd + excluded.cost_usd, cost_usd, excluded.cost_usd)"""
INSERT_SOURCE = "insert or ignore into sources values (?, ?)"
FORGET = "delete from {0} where key in (select key from forgotten)"


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns what SQLite says of a file into what a user can do.

    Args:
        path: The file.

    Raises:
        StoreError: The file cannot be used, or is no store.
    """
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


def connect(path: Path) -> sqlite3.Connection:
    """Opens the file, and makes it and its tables where there is none.

    Args:
        path: The file.

    Returns:
        A connection that commits each statement, in write-ahead mode.

    Raises:
        StoreError: The file is another program's, or of another format.
    """
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
        _tune(connection)
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


def _tune(connection: sqlite3.Connection) -> None:
    write_ahead(connection)
    connection.execute("pragma synchronous = normal")
    connection.execute("pragma wal_autocheckpoint = 16384")
