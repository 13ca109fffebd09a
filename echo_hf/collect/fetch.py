"""Fetch the images that posts name by address, each once, politely to every host."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from anyio import CapacityLimiter, sleep
from anyio.to_thread import run_sync

from echo_hf._infra.rate_limit import RateLimiter, Work, finished
from echo_hf._infra.retry import RetryPolicy
from echo_hf.collect.fetch_ledger import FetchEntry, FetchError, FetchLedger, as_fetch_error
from echo_hf.collect.image_client import ImageClient, allowed_url, image_client
from echo_hf.collect.network import Resolve, resolve
from echo_hf.config.collection import FetchPolicy
from echo_hf.errors import ImageError
from echo_hf.images.decode import BadImageError, decoding, open_image
from echo_hf.images.store import ImageStore
from echo_hf.reasons import BadImage, Unfetched

DECODERS = 2
THREAD = "echo-hf fetch"

Outcome = tuple[str, FetchEntry, int]


@dataclass
class _Host:
    places: CapacityLimiter
    limiter: RateLimiter = field(default_factory=RateLimiter)


class _Fetcher:
    def __init__(
        self, client: ImageClient, store: ImageStore, ledger: FetchLedger, policy: FetchPolicy
    ) -> None:
        self._client, self._store, self._ledger, self._policy = client, store, ledger, policy
        self._retries = RetryPolicy(policy.max_attempts, policy.backoff_s, policy.longest_wait_s)
        self._decoders = CapacityLimiter(DECODERS)
        self._hosts: defaultdict[str, _Host] = defaultdict(
            lambda: _Host(CapacityLimiter(policy.per_host))
        )

    async def outcome(self, url: str) -> Outcome:
        times, host = 0, self._hosts[urlsplit(url).netloc]

        async def attempt() -> str:
            nonlocal times
            async with host.places:
                await self._wait(host)
                times += 1
                return await self._keep(url, host)

        try:
            entry = FetchEntry(await self._retries.call_async(attempt), None)
        except FetchError as error:
            entry = FetchEntry(None, error.reason, error.detail)
        self._ledger.record(url, entry, times)
        return url, entry, times

    async def _wait(self, host: _Host) -> None:
        place, longest = host.limiter.reserve(), self._policy.longest_wait_s
        while (left := host.limiter.left_s(place)) > 0:
            if left > longest:
                said = f"the host asks to wait {left:.0f} s, expected {longest:.0f} s"
                raise FetchError(Unfetched.RATE_LIMITED, said)
            await sleep(left)

    async def _keep(self, url: str, host: _Host) -> str:
        try:
            data = await self._client.fetch(url)
            with as_fetch_error():
                return await run_sync(self._put, data, limiter=self._decoders)
        except FetchError as error:
            if error.wait_s is not None:
                host.limiter.hold(error.wait_s)
            raise

    def _put(self, data: bytes) -> str:
        try:
            with open_image(data, most_pixels=self._policy.most_pixels):
                pass
        except BadImageError as error:
            # One pixel is an image, whatever it is good for.
            if error.reason is not BadImage.TOO_SMALL:
                raise
        try:
            with decoding:
                return self._store.put(data)
        except ImageError as error:
            raise _bad(data, error) from error


def _bad(data: bytes, said: ImageError) -> BadImageError:
    """Why the store refuses bytes, which itself gives no reason from the list."""
    try:
        with open_image(data) as image:
            image.load()
    except BadImageError as error:
        return error
    return BadImageError(BadImage.DAMAGED, str(said))


LEDGER = "fetched.sqlite"


@dataclass(frozen=True, slots=True)
class FetchResult:
    url: str
    sha256: str | None
    reason: Unfetched | None = None
    detail: str = ""
    attempts: int = 0
    known: bool = False


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


Progress = Callable[[FetchStats], None]


def fetch_images(
    urls: Iterable[str],
    store: ImageStore,
    *,
    policy: FetchPolicy | None = None,
    ledger: Path | None = None,
    progress: Progress | None = None,
    resolve: Resolve = resolve,
) -> Iterator[FetchResult]:
    policy = policy or FetchPolicy()
    started = time.monotonic()
    spellings, refused = _sorted_out(urls, policy)
    stats = FetchStats(len(spellings) + len(refused))
    with FetchLedger(ledger or store.root.with_name(LEDGER)) as known:

        @asynccontextmanager
        async def opened() -> AsyncIterator[Work[str, Outcome]]:
            async with image_client(policy, resolve) as client:
                yield _Fetcher(client, store, known, policy).outcome

        def results() -> Iterator[FetchResult]:
            yield from refused
            asked = list[str]()
            entries = known.known(list(spellings))
            for url in spellings:
                entry = entries.get(url)
                if entry is not None and _is_settled(entry, store):
                    yield FetchResult(url, entry.sha256, entry.reason, entry.detail, known=True)
                else:
                    asked.append(url)
            if not asked:
                return
            for url, entry, times in finished(asked, opened, policy.concurrency, THREAD):
                yield FetchResult(url, entry.sha256, entry.reason, entry.detail, times)

        for result in results():
            stats.count(result)
            stats.seconds = time.monotonic() - started
            if progress is not None:
                progress(stats)
            for url in spellings.get(result.url, (result.url,)):
                yield replace(result, url=url)


def _sorted_out(
    urls: Iterable[str], policy: FetchPolicy
) -> tuple[dict[str, list[str]], list[FetchResult]]:
    """For each address to ask how it was spelt, and what may not be asked at all."""
    spellings: dict[str, list[str]] = {}
    refused: list[FetchResult] = []
    for url in dict.fromkeys(urls):
        try:
            spellings.setdefault(allowed_url(url, policy), []).append(url)
        except FetchError as error:
            refused.append(FetchResult(url, None, error.reason, error.detail))
    return spellings, refused


def _is_settled(entry: FetchEntry, store: ImageStore) -> bool:
    if entry.sha256 is not None:
        return store.path(entry.sha256).exists()
    return entry.reason is Unfetched.GONE
