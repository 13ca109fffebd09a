"""The SQLite file of a log of events: its tables, and how it is opened for one call."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from echo_hf.errors import RunError
from echo_hf.sqlite_file import LONGEST_WAIT_S, write_ahead

# Tells the file from other programs' databases: "echo" in ASCII.
APPLICATION = 0x6563686F
FORMAT = 1
TABLES = (
    """create table event (
    id integer primary key autoincrement, app text not null, subject text not null,
    person text not null, action text not null, payload text not null,
    base integer references event (id), at text not null
)""",
    "create index event_of_subject on event (app, subject)",
    """create trigger event_stays before update on event
    begin select raise(abort, 'events are never changed'); end""",
    """create table lease (
    app text not null, subject text not null, person text not null, until text not null,
    primary key (app, subject)
) without rowid""",
)


@contextmanager
def opened(path: Path, *, writes: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection for one call, closed at its end.

    Args:
        path: The file; made where there is none.
        writes: Whether the call is one transaction that writes: nobody else writes meanwhile, and
            what was written is on the disk when the block has ended without an error.

    Yields:
        The connection.

    Raises:
        RunError: The file cannot be used, is another program's, or of another version.
    """
    with _explained(path), closing(_connected(path)) as connection:
        if not writes:
            yield connection
            return
        connection.execute("begin immediate")
        try:
            yield connection
        except BaseException:
            connection.execute("rollback")
            raise
        connection.execute("commit")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        raise RunError(
            f"cannot use the log of events {str(path)!r} ({error}): its folder must be writable "
            "and have room, and no other program may hold the file"
        ) from error
    except sqlite3.DatabaseError as error:
        raise RunError(
            f"{str(path)!r} is no readable log of events ({error}): put a copy of it back, or "
            "move it away to begin anew"
        ) from error


def _connected(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=LONGEST_WAIT_S, isolation_level=None)
    try:
        if not _number(connection, "user_version"):
            _create(connection, path)
        _check(connection, path)
        # In write-ahead mode `full` alone has each commit on the disk when it returns.
        connection.execute("pragma synchronous = full")
        connection.execute("pragma foreign_keys = on")
    except BaseException:
        connection.close()
        raise
    return connection


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"pragma {pragma}").fetchone()[0])


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if _number(connection, "application_id") != APPLICATION:
        raise RunError(
            f"{str(path)!r} is another program's database: move it away, or name another folder "
            "with --runs"
        )
    version = _number(connection, "user_version")
    if version != FORMAT:
        raise RunError(
            f"{str(path)!r} is a log of events of version {version}, this echo-hf reads {FORMAT}: "
            "upgrade echo-hf"
        )


def _create(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("select count(*) from sqlite_master").fetchone()[0] == 0:
        write_ahead(connection)
    connection.execute("begin immediate")
    if not _number(connection, "user_version"):  # else another process was faster
        if connection.execute("select count(*) from sqlite_master").fetchone()[0]:
            _check(connection, path)
        for statement in TABLES:
            connection.execute(statement)
        connection.execute(f"pragma application_id = {APPLICATION}")
        connection.execute(f"pragma user_version = {FORMAT}")
    connection.execute("commit")
