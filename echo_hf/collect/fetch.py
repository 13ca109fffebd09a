"""Fetch the images that posts name by address, each once, politely to every host."""

from __future__ import annotations

import datetime
import hashlib
import json
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

from anyio import CapacityLimiter, sleep
from anyio.to_thread import run_sync

from echo_hf._infra.rate_limit import RateLimiter, Work, finished
from echo_hf._infra.retry import RetryPolicy
from echo_hf._infra.sqlite import Database, rows_of
from echo_hf.collect.network import (
    FetchError,
    ImageClient,
    Resolve,
    allowed_url,
    as_fetch_error,
    image_client,
    resolve,
)
from echo_hf.config.collection import FetchPolicy
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Unfetched

LEDGER = "fetched.sqlite"
DECODERS = 2
THREAD = "echo-hf fetch"


@dataclass(frozen=True, slots=True)
class FetchResult:
    """What became of an address: an image, or why there is none."""

    url: str
    sha256: str | None
    reason: Unfetched | None = None
    detail: str = ""
    attempts: int = 0
    known: bool = False


class FetchLedger(Database):
    name = "ledger of fetched images"
    remedy = "fetch the images again"
    damage = (sqlite3.DatabaseError, ValueError)  # the second: a reason that there is not
    schema = """create table if not exists fetches (
    url text primary key, sha256 text, reason text, detail text not null,
    attempts integer not null, asked_at text not null
) without rowid"""

    def known(self, urls: Sequence[str]) -> dict[str, FetchResult]:
        rows = "select url, sha256, reason, detail from fetches where url in ({0})"
        with self.opened() as connection:
            return {
                url: FetchResult(url, sha256, reason and Unfetched(reason), detail, known=True)
                for url, sha256, reason, detail in rows_of(connection, rows, urls)
            }

    def record(self, one: FetchResult) -> None:
        """Writes down what became of an address; it outlives a killed process."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        upsert = "insert or replace into fetches values (?, ?, ?, ?, ?, ?)"
        self.execute(upsert, one.url, one.sha256, one.reason, one.detail, one.attempts, now)

    def take(self, path: Path, urls: Sequence[str]) -> list[str]:
        """Takes in what another run's ledger says of addresses; gives the digests it names."""
        rows = "select * from fetches where url in ({0})"
        # Before what was fetched goes no failure; of two alike the later one stands.
        upsert = """insert or replace into fetches select ?1, ?2, ?3, ?4, ?5, ?6 where not exists (
            select 1 from fetches
            where url = ?1 and (sha256 is not null, asked_at) >= (?2 is not null, ?6)
        )"""
        with FetchLedger(path, frozen=True) as other, other.opened() as theirs:
            taken = list(rows_of(theirs, rows, urls))
        with self.transaction() as connection:
            connection.executemany(upsert, taken)
        return [sha256 for _, sha256, *_ in taken if sha256 is not None]

    def forget(self, urls: Iterable[str]) -> None:
        with self.erasing() as connection:
            connection.executemany("delete from fetches where url = ?", [(url,) for url in urls])


def read_ledger(path: Path, urls: Sequence[str]) -> dict[str, FetchResult]:
    if not path.exists():
        return {}
    with FetchLedger(path) as ledger:
        return ledger.known(urls)


def ledger_digest(path: Path) -> str | None:
    """Sha256 of what became of all addresses, without when and how often they were asked for."""
    if not path.exists():
        return None
    with FetchLedger(path) as ledger:
        rows = ledger.execute("select url, sha256, reason, detail from fetches order by url")
    sha256 = hashlib.sha256(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    return sha256.hexdigest() if rows else None


@dataclass
class FetchStats:
    """How far a run is; addresses that differ only in spelling count once."""

    total: int
    known: int = 0
    fetched: int = 0
    reasons: Counter[Unfetched] = field(default_factory=Counter)
    seconds: float = 0.0

    def __str__(self) -> str:
        rate = self.fetched / self.seconds if self.seconds else 0.0
        lost = (f"{count:,} {reason}" for reason, count in sorted(self.reasons.items()))
        had = f"{self.fetched:,} images ({rate:.0f}/s)"
        return ", ".join([had, f"{self.known:,} known before", *lost])

    @property
    def done(self) -> int:
        return self.known + self.fetched + self.reasons.total()

    def count(self, result: FetchResult) -> None:
        if result.known:
            self.known += 1
        elif result.reason is None:
            self.fetched += 1
        else:
            self.reasons[result.reason] += 1


class _Fetcher:
    def __init__(
        self, client: ImageClient, store: ImageStore, ledger: FetchLedger, policy: FetchPolicy
    ) -> None:
        self._client, self._store, self._ledger, self._policy = client, store, ledger, policy
        self._retries = RetryPolicy(policy.max_attempts, policy.backoff_s, policy.longest_wait_s)
        self._decoders = CapacityLimiter(DECODERS)
        self._places = defaultdict[str, CapacityLimiter](lambda: CapacityLimiter(policy.per_host))
        self._limiters = defaultdict[str, RateLimiter](RateLimiter)

    async def fetched(self, url: str) -> FetchResult:
        times, host = 0, urlsplit(url).netloc

        async def attempt() -> str:
            nonlocal times
            async with self._places[host]:
                await self._turn(self._limiters[host])
                times += 1
                try:
                    data = await self._client.fetch(url)
                    with as_fetch_error():
                        put, most = self._store.put, self._policy.most_pixels
                        return await run_sync(put, data, most, limiter=self._decoders)
                except FetchError as error:
                    if error.wait_s is not None:
                        self._limiters[host].hold(error.wait_s)
                    raise

        try:
            digest = await self._retries.call_async(attempt)
            result = FetchResult(url, digest, attempts=times)
        except FetchError as error:
            result = FetchResult(url, None, error.reason, error.detail, times)
        self._ledger.record(result)
        return result

    async def _turn(self, limiter: RateLimiter) -> None:
        place, longest = limiter.reserve(), self._policy.longest_wait_s
        while (left := limiter.left_s(place)) > 0:
            if left > longest:
                said = f"the host asks to wait {left:.0f} s, expected {longest:.0f} s"
                raise FetchError(Unfetched.RATE_LIMITED, said)
            await sleep(left)


def fetch_images(
    urls: Iterable[str],
    store: ImageStore,
    *,
    policy: FetchPolicy | None = None,
    ledger: Path | None = None,
    progress: Callable[[FetchStats], None] | None = None,
    resolve: Resolve = resolve,
) -> Iterator[FetchResult]:
    policy = policy or FetchPolicy()
    started = time.monotonic()
    spellings: dict[str, list[str]] = {}
    refused: list[FetchResult] = []
    for url in dict.fromkeys(urls):
        try:
            spellings.setdefault(allowed_url(url, policy), []).append(url)
        except FetchError as error:
            refused.append(FetchResult(url, None, error.reason, error.detail))
    stats = FetchStats(len(spellings) + len(refused))
    with FetchLedger(ledger or store.root.with_name(LEDGER)) as known:

        @asynccontextmanager
        async def opened() -> AsyncIterator[Work[str, FetchResult]]:
            async with image_client(policy, resolve) as client:
                yield _Fetcher(client, store, known, policy).fetched

        settled = {
            url: one
            for url, one in known.known(list(spellings)).items()
            if one.reason is Unfetched.GONE or (one.sha256 and store.path(one.sha256).exists())
        }
        asked = [url for url in spellings if url not in settled]
        before = [settled[url] for url in spellings if url in settled]
        with closing(finished(asked, opened, policy.concurrency, THREAD)) as fresh:
            for result in chain(refused, before, fresh if asked else ()):
                stats.count(result)
                stats.seconds = time.monotonic() - started
                if progress is not None:
                    progress(stats)
                for url in spellings.get(result.url, (result.url,)):
                    yield replace(result, url=url)
