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

import httpcore2

from echo_hf._infra.http_errors import causes
from echo_hf._infra.retry import RequestError
from echo_hf._infra.sqlite import Database, rows_of
from echo_hf.collect.network import PrivateAddressError
from echo_hf.images.decode import BadImageError
from echo_hf.reasons import BadImage, Unfetched

UPSERT = "insert or replace into fetches values (?, ?, ?, ?, ?, ?)"
ALL = "select url, sha256, reason, detail from fetches order by url"
DELETE = "delete from fetches where url = ?"
ROWS = "select url, sha256, reason, detail from fetches where url in ({0})"


@dataclass(frozen=True, slots=True)
class FetchEntry:
    """What became of an address."""

    sha256: str | None
    reason: Unfetched | None
    detail: str = ""


class FetchLedger(Database):
    name = "ledger of fetched images"
    remedy = "fetch the images again"
    damage = (sqlite3.DatabaseError, ValueError)  # the second: a reason that there is not
    schema = """create table if not exists fetches (
    url text primary key, sha256 text, reason text, detail text not null,
    attempts integer not null, asked_at text not null
) without rowid"""

    def known(self, urls: Sequence[str]) -> dict[str, FetchEntry]:
        with self.opened() as connection:
            return {
                url: FetchEntry(sha256, None if reason is None else Unfetched(reason), detail)
                for url, sha256, reason, detail in rows_of(connection, ROWS, urls)
            }

    def record(self, url: str, entry: FetchEntry, attempts: int) -> None:
        """Writes down what became of an address; it outlives a killed process."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self.execute(UPSERT, url, entry.sha256, entry.reason, entry.detail, attempts, now)

    def forget(self, urls: Iterable[str]) -> None:
        """Deletes addresses, from the file's bytes as well."""
        with self.erasing() as connection:
            connection.executemany(DELETE, [(url,) for url in urls])

    def digest(self) -> str | None:
        """Sha256 of what became of all addresses; null when none was ever asked."""
        sha256, rows = hashlib.sha256(), 0
        with self.opened() as connection:
            for row in connection.execute(ALL):
                sha256.update(json.dumps(row).encode() + b"\n")
                rows += 1
        return sha256.hexdigest() if rows else None


def read_ledger(path: Path, urls: Sequence[str]) -> dict[str, FetchEntry]:
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


LONGEST_DETAIL = 200
AS_AN_IMAGE = {
    BadImage.TOO_MANY_BYTES: Unfetched.TOO_LARGE,
    BadImage.TOO_MANY_PIXELS: Unfetched.TOO_LARGE,
    BadImage.TRUNCATED: Unfetched.UNDECODABLE,
    BadImage.DAMAGED: Unfetched.UNDECODABLE,
}


class FetchError(RequestError):
    def __init__(
        self, reason: Unfetched, detail: str, *, again: bool = False, wait_s: float | None = None
    ) -> None:
        super().__init__(f"{reason}: {detail}", again=again, wait_s=wait_s)
        self.reason = reason
        self.detail = " ".join(detail.split())[:LONGEST_DETAIL]


@contextmanager
def as_fetch_error() -> Iterator[None]:
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
    except BadImageError as error:
        reason = AS_AN_IMAGE.get(error.reason, Unfetched.WRONG_TYPE)
        # A file that was cut may have been cut on its way.
        again = error.reason is BadImage.TRUNCATED
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
