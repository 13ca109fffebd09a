"""The tables of the crawl's ledger, its connection, and how a page is kept in it."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from echo_hf.errors import StoreError
from echo_hf.sqlite_file import LONGEST_WAIT_S, write_ahead

FORMAT = 1
# A page is kept under the attempt that brought it: until a question that had to be asked again is
# done, what came before is better than nothing.
TABLES = """
create table if not exists questions (
    id integer primary key, platform text not null, key text not null, kind text not null,
    about text not null, language text, starts text, ends text, round integer not null,
    origin integer,
    state text not null, cursor text, attempt integer not null default 0,
    pages integer not null default 0, error text,
    requests integer not null default 0, posts integer not null default 0,
    cost_usd real not null default 0, unpriced integer not null default 0, unique (platform, key)
);
create index if not exists by_state on questions (platform, state, round, id);
create table if not exists answers (
    id integer primary key, question integer not null, attempt integer not null,
    page integer not null, body blob not null, fetched_at text not null,
    unique (question, attempt, page)
);
create table if not exists seen (
    id integer primary key, platform text not null, url text not null, post_id text, author text,
    parent_url text, quoted_url text, replies integer, missing text, found integer not null,
    round integer not null, expanded integer not null default 0, unique (platform, url)
);
create index if not exists by_parent on seen (platform, parent_url);
create index if not exists by_quoted on seen (platform, quoted_url) where quoted_url is not null;
create index if not exists by_post_id on seen (platform, post_id);
create index if not exists to_expand on seen (platform, id) where expanded = 0;
create table if not exists asked (
    platform text, kind text, identifier text, primary key (platform, kind, identifier)
) without rowid;
"""


def connected(path: Path) -> sqlite3.Connection:
    """Opens a ledger.

    Args:
        path: Its file; made when it does not exist.

    Returns:
        The connection.

    Raises:
        StoreError: The file is no such ledger, or cannot be used.
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=LONGEST_WAIT_S, isolation_level=None)
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Says what to do when the file of a ledger cannot be used."""
    try:
        yield
    except (OSError, sqlite3.Error, zlib.error) as error:
        raise StoreError(
            f"cannot use the collected posts {str(path)!r} ({error}): its folder must be "
            "writable; move a damaged file away to ask for the posts again"
        ) from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is written inside stays, or nothing of it does, whatever ends it."""
    connection.execute("begin immediate")
    try:
        yield
    except BaseException:
        connection.execute("rollback")
        raise
    connection.execute("commit")


def packed(body: str) -> bytes:
    """A page as the ledger keeps it.

    Example:
        >>> unpacked(packed('{"posts": []}'))
        '{"posts": []}'
    """
    return zlib.compress(body.encode("utf-8", "surrogatepass"))


def unpacked(data: bytes) -> str:
    """A page as it came."""
    return zlib.decompress(data).decode("utf-8", "surrogatepass")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    (found,) = connection.execute("pragma user_version").fetchone()
    if found not in (0, FORMAT):
        raise StoreError(
            f"{str(path)!r} has ledger format {found}, this version reads {FORMAT}: upgrade "
            "echo-hf, or move the file away to ask for the posts again"
        )
    write_ahead(connection)
    # Durable whatever ends the process. A loss of power may cost the last pages, not the file: they
    # are asked for again, and no platform bills a post twice a day.
    connection.execute("pragma synchronous = normal")
    connection.executescript(TABLES)
    if not found:
        connection.execute(f"pragma user_version = {FORMAT}")
