"""The ledger of addresses: what became of each, and what can go wrong while fetching."""

from __future__ import annotations

import datetime
import hashlib
import json
import socket
import sqlite3
import ssl
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import httpcore2

from echo_hf._infra.http_errors import causes
from echo_hf._infra.retry import RequestError
from echo_hf._infra.sqlite import LONGEST_WAIT_S, write_ahead
from echo_hf.collect.network import PrivateAddressError
from echo_hf.errors import StoreError
from echo_hf.images.decode import BadPictureError
from echo_hf.reasons import BadPicture, Unfetched

FORMAT = 1
MOST_VARIABLES = 500
TABLE = """create table if not exists fetches (
    url text primary key, sha256 text, reason text, detail text not null,
    attempts integer not null, asked_at text not null
) without rowid"""
UPSERT = "insert or replace into fetches values (?, ?, ?, ?, ?, ?)"
ALL = "select url, sha256, reason, detail from fetches order by url"
DELETE = "delete from fetches where url = ?"
ROWS = "select url, sha256, reason, detail from fetches where url in ({0})"


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of an address.

    Attributes:
        sha256: Digest of the picture; null when there is none.
        reason: Why there is none.
        detail: What a person needs to see the cause.
    """

    sha256: str | None
    reason: Unfetched | None
    detail: str = ""


class FetchLedger:
    """A ledger in a file; a context manager that closes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, timeout=LONGEST_WAIT_S, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def known(self, urls: Sequence[str]) -> dict[str, Entry]:
        """What is known of addresses."""
        found: dict[str, Entry] = {}
        for start in range(0, len(urls), MOST_VARIABLES):
            some = urls[start : start + MOST_VARIABLES]
            with self._explained():
                rows = self._connection.execute(ROWS.format(", ".join("?" * len(some))), some)
                for url, sha256, reason, detail in rows:
                    found[url] = Entry(sha256, _reason(reason), detail)
        return found

    def record(self, url: str, entry: Entry, attempts: int) -> None:
        """Writes down what became of an address; it outlives a killed process."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        row = (url, entry.sha256, entry.reason, entry.detail, attempts, now)
        with self._explained():
            self._connection.execute(UPSERT, row)

    def forget(self, urls: Iterable[str]) -> None:
        """Deletes addresses, from the file's bytes as well."""
        with self._explained():
            self._connection.execute("pragma secure_delete = on")
            self._connection.executemany(DELETE, [(url,) for url in urls])
            self._connection.execute("pragma wal_checkpoint(truncate)").fetchall()

    def digest(self) -> str | None:
        """Sha256 of what became of all addresses; null when none was ever asked."""
        sha256, rows = hashlib.sha256(), 0
        with self._explained():
            for row in self._connection.execute(ALL):
                sha256.update(json.dumps(row).encode() + b"\n")
                rows += 1
        return sha256.hexdigest() if rows else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _prepare(self) -> None:
        (found,) = self._connection.execute("pragma user_version").fetchone()
        if found not in (0, FORMAT):
            raise StoreError(
                f"{str(self.path)!r} has ledger format {found}, this version reads {FORMAT}: "
                "upgrade echo-hf, or move the file away to fetch the pictures again"
            )
        write_ahead(self._connection)
        self._connection.execute("pragma synchronous = normal")
        self._connection.execute(TABLE)
        self._connection.execute(f"pragma user_version = {FORMAT}")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"cannot use the ledger of fetched pictures {str(self.path)!r} ({error}): its "
                "folder must be writable; move a damaged file away to fetch the pictures again"
            ) from error


def read_ledger(path: Path, urls: Sequence[str]) -> dict[str, Entry]:
    """What the ledger in a file knows of addresses."""
    if not path.exists():
        return {}
    with FetchLedger(path) as ledger:
        return ledger.known(urls)


def ledger_digest(path: Path) -> str | None:
    """Sha256 of what became of all addresses, without when and how often they were asked for."""
    if not path.exists():
        return None
    with FetchLedger(path) as ledger:
        return ledger.digest()


def _reason(text: str | None) -> Unfetched | None:
    return None if text is None else next(one for one in Unfetched if one == text)


LONGEST_DETAIL = 200
AS_A_PICTURE = {
    BadPicture.TOO_MANY_BYTES: Unfetched.TOO_LARGE,
    BadPicture.TOO_MANY_PIXELS: Unfetched.TOO_LARGE,
    BadPicture.TRUNCATED: Unfetched.UNDECODABLE,
    BadPicture.DAMAGED: Unfetched.UNDECODABLE,
}


class FetchError(RequestError):
    """One attempt that gave no picture."""

    def __init__(
        self, reason: Unfetched, detail: str, *, again: bool = False, wait_s: float | None = None
    ) -> None:
        super().__init__(f"{reason}: {detail}", again=again, wait_s=wait_s)
        self.reason = reason
        self.detail = " ".join(detail.split())[:LONGEST_DETAIL]


@contextmanager
def as_fetch_error() -> Iterator[None]:
    """Turns what the network and a decoder raise into a `FetchError`."""
    try:
        yield
    except PrivateAddressError as error:
        raise FetchError(Unfetched.PRIVATE_ADDRESS, str(error)) from error
    except (TimeoutError, httpcore2.TimeoutException) as error:
        raise FetchError(Unfetched.TIMEOUT, _said(error), again=True) from error
    except httpcore2.NetworkError as error:
        again = not _is_lasting(error)
        raise FetchError(Unfetched.UNREACHABLE, _said(error), again=again) from error
    except httpcore2.ProtocolError as error:
        raise FetchError(Unfetched.UNREACHABLE, _said(error), again=True) from error
    except BadPictureError as error:
        reason = AS_A_PICTURE.get(error.reason, Unfetched.WRONG_TYPE)
        # A file that was cut may have been cut on its way.
        again = error.reason is BadPicture.TRUNCATED
        detail = f"{error.reason}: {error.detail}"
        raise FetchError(reason, detail, again=again) from error


def _is_lasting(error: BaseException) -> bool:
    """Whether there is no such name, or the certificate is not the name's."""
    return any(
        (isinstance(one, socket.gaierror) and one.errno == socket.EAI_NONAME)
        or isinstance(one, ssl.SSLCertVerificationError)
        for one in causes(error)
    )


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
