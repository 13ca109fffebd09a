"""When platforms were last asked whether posts are still there, and what they said.

Posts stand in it as hashes of their addresses: what is forgotten later is not named here.
"""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from echo_hf.collect.tombstones import hashed
from echo_hf.errors import StoreError
from echo_hf.reasons import Missing
from echo_hf.sqlite_file import LONGEST_WAIT_S, write_ahead

RECORD = "refreshed.sqlite"
TABLE = """create table if not exists checks (
    post text primary key, platform text not null, at text not null, gone text
) without rowid"""
REASONS = {one.value: one for one in Missing}
KEEP = "insert or replace into checks values (?, ?, ?, ?)"
FIND = "select at, gone from checks where post = ?"


class RefreshRecord:
    """The record of a run, in a file; a context manager that closes it.

    Args:
        path: The SQLite file; made when it does not exist.

    Raises:
        StoreError: The file is no such record, or cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=LONGEST_WAIT_S)
            write_ahead(self._connection)
            self._connection.execute(TABLE)

    def due(self, urls: Iterable[str], since: datetime.datetime) -> list[str]:
        """Posts that nobody was asked about since a moment, in their order.

        Args:
            urls: Canonical addresses.
            since: The moment, with a zone.

        Returns:
            Those of them.
        """
        limit = _written(since)
        with self._explained():
            return [url for url in urls if (found := self._found(url)) is None or found[0] < limit]

    def keep(
        self,
        platform: str,
        asked: Sequence[str],
        gone: Mapping[str, Missing],
        at: datetime.datetime,
    ) -> None:
        """Writes down, in one transaction, what a platform said of posts.

        Args:
            platform: Its name.
            asked: Canonical addresses of all posts that it was asked about.
            gone: Why each of those is gone that are.
            at: When it was asked, with a zone.
        """
        rows = [(hashed(url), platform, _written(at), gone.get(url)) for url in asked]
        with self._explained(), self._connection:
            self._connection.executemany(KEEP, rows)

    def gone(self, urls: Iterable[str]) -> dict[str, Missing]:
        """Why posts are gone, by the last answer about each; others are left out."""
        with self._explained():
            said = ((url, self._found(url)) for url in urls)
            return {url: REASONS[found[1]] for url, found in said if found and found[1]}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _found(self, url: str) -> tuple[str, str | None] | None:
        row: tuple[str, str | None] | None = self._connection.execute(
            FIND, (hashed(url),)
        ).fetchone()
        return row

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error, KeyError) as error:
            raise StoreError(
                f"cannot use the record {str(self.path)!r} ({error}): its folder must be writable; "
                "move a damaged file away to ask about all posts again"
            ) from error


def _written(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.UTC).isoformat(timespec="microseconds")
