"""Open a run's SQLite files: settings, format, tables, and errors in one line."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import closing, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar, Self

from echo_hf._infra.regular_file import open_regular
from echo_hf.errors import StoreError

FORMAT_VERSION = 1
MAX_WAIT_SECONDS = 60
MAX_VARIABLES = 500
MAX_VALUE_BYTES = 1 << 26  # of a stranger's file


class Database:
    """A SQLite file of one kind; leaving the context closes it, and it reopens when used.

    A frozen one is another run's that has ended, perhaps on a disk that many machines share: it is
    read, without locks or files beside it. It may be a stranger's: it has tables alone, which
    compute nothing, and no more is read of it than it has bytes.
    """

    name: ClassVar[str]
    schema: ClassVar[str]  # makes its tables, and changes nothing where they are
    remedy: ClassVar[str]  # what moving a damaged file away is good for
    application: ClassVar[int] = 0  # tells its files from those of other programs
    # Durable whatever ends the process; a loss of power may cost the last changes, not the file.
    pragmas: ClassVar[str] = "pragma synchronous = normal"
    damage: ClassVar[tuple[type[Exception], ...]] = (sqlite3.DatabaseError,)
    _connection: sqlite3.Connection | None = None

    def __init__(self, path: Path, *, frozen: bool = False) -> None:
        self.path, self.frozen = path, frozen
        self._write_lock = RLock()
        with self.connect():
            pass

    @contextmanager
    def connect(self) -> Iterator[sqlite3.Connection]:
        """Open the connection; SQLite's errors become advice for the user."""
        try:
            if self._connection is None:
                self._connection = self._connect()
            yield self._connection
        except (OSError, sqlite3.OperationalError) as error:
            raise StoreError(
                f"cannot use the {self.name} {str(self.path)!r} ({error}): its folder must be "
                "writable and have room, and no other program may hold the file"
            ) from error
        except self.damage as error:
            raise StoreError(
                f"{str(self.path)!r} is not a readable {self.name} ({error}): put a copy of it "
                f"back, or move it away to {self.remedy}"
            ) from error

    def execute(self, query: str, *values: Any, **parameters: Any) -> list[tuple[Any, ...]]:
        with self.connect() as connection:
            return connection.execute(query, parameters or values).fetchall()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction: all of it is written, or nothing."""
        with self._write_lock, self.connect() as connection:
            connection.execute("begin immediate")
            try:
                yield connection
            except BaseException:
                connection.execute("rollback")
                raise
            connection.execute("commit")

    @contextmanager
    def erase(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction whose deletions also overwrite the file's bytes."""
        with self.connect() as connection:
            connection.execute("pragma secure_delete = on")
            with self.write():
                yield connection
            connection.execute("pragma wal_checkpoint(truncate)").fetchall()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Stages are never closed: a store that only a stage holds closes with it.
        self.close()

    def __reduce__(self) -> tuple[type[Self], tuple[Path]]:
        return type(self), (self.path,)

    def _connect(self) -> sqlite3.Connection:
        address = str(self.path)
        if self.frozen:
            check_checkpointed(self.path)
            open_regular(self.path, self.path.parent).close()
            address = f"{self.path.resolve().as_uri()}?mode=ro&immutable=1"
        else:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            address,
            timeout=MAX_WAIT_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            uri=self.frozen,
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def iterate_rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query; refuse more bytes than a frozen file has."""
        max_bytes = self.path.stat().st_size if self.frozen else math.inf
        bytes_read = 0
        with self.connect() as connection:
            for row in connection.execute(query):
                bytes_read += sum(len(cell) if isinstance(cell, str | bytes) else 1 for cell in row)
                if bytes_read > max_bytes:  # its pages lead back into each other
                    raise StoreError(
                        f"{str(self.path)!r} is not a readable {self.name} (it has more rows than "
                        f"bytes): put a copy of it back, or move it away to {self.remedy}"
                    )
                yield row

    def _check_tables(self, connection: sqlite3.Connection, own_tables: Set[str]) -> None:
        """Refuse views, triggers and anything else that computes when it is read."""
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        connection.executescript(
            "pragma trusted_schema = off; pragma query_only = on; pragma cell_size_check = on"
        )
        for kind, name, sql in connection.execute("select type, name, sql from sqlite_master"):
            is_plain = name in own_tables and (kind == "table" or (kind == "index" and sql is None))
            is_computed = (
                is_plain
                and kind == "table"
                and connection.execute(
                    "select count(*) from pragma_table_xinfo(?) where hidden != 0", (name,)
                ).fetchone()
                != (0,)
            )
            if not is_plain or is_computed or "virtual" in (sql or "").lower().split():
                raise StoreError(
                    f"{str(self.path)!r} has the {kind} {str(name)[:80]!r}, expected the tables of "
                    f"a {self.name} alone: it is no file of echo-hf; move it away to {self.remedy}"
                )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("pragma user_version").fetchone()
        (application,) = connection.execute("pragma application_id").fetchone()
        tables = "select name from sqlite_master"
        with closing(open_scratch(self.schema)) as empty:
            own_tables = empty.execute(tables).fetchall()
        # Some of our files were once written without a format, with our tables in them.
        foreign_tables = set(connection.execute(tables)).difference(own_tables)
        if (version and application != self.application) or (not version and foreign_tables):
            raise StoreError(
                f"{str(self.path)!r} is another program's database, expected a {self.name}: move "
                "it away, or name another folder with --runs"
            )
        if version not in (0, FORMAT_VERSION):
            raise StoreError(
                f"{str(self.path)!r} is a {self.name} of format {version}, this version reads "
                f"{FORMAT_VERSION}: upgrade echo-hf, or move the file away to {self.remedy}"
            )
        if self.frozen:
            self._check_tables(connection, {name for (name,) in own_tables})
            return
        set_write_ahead(connection)
        connection.executescript(self.pragmas)
        if not version:
            connection.executescript(
                f"begin immediate; {self.schema}; pragma application_id = {self.application}; "
                f"pragma user_version = {FORMAT_VERSION}; commit"
            )


def check_checkpointed(path: Path) -> None:
    """Refuse a file with changes that are still in its write-ahead log."""
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise StoreError(
            f"{str(path)!r} is being written, or was when a process was killed: wait for it, or "
            "run what wrote it again"
        )


def open_scratch(schema: str) -> sqlite3.Connection:
    """Open a temporary database, in memory while it fits."""
    connection = sqlite3.connect("", isolation_level=None)
    connection.executescript(f"pragma journal_mode = off; {schema}")
    return connection


def select_by_keys(
    connection: sqlite3.Connection, query: str, keys: Sequence[Any]
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query for any number of keys, in place of its `{0}`."""
    for start in range(0, len(keys), MAX_VARIABLES):
        batch = keys[start : start + MAX_VARIABLES]
        parameters = {f"key{number}": key for number, key in enumerate(batch)}
        yield from connection.execute(
            query.format(",".join(map(":{}".format, parameters))), parameters
        )


def set_write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging, waiting for processes that hold the file."""
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
            return
        except sqlite3.OperationalError as error:
            # This switch alone does not wait for other processes; the low byte tells why.
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
