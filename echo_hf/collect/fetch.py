"""Fetch the images that posts name by address, each once, politely to every host."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from urllib.parse import urlsplit

import anyio
from anyio import CapacityLimiter, create_task_group
from anyio.from_thread import start_blocking_portal
from anyio.to_thread import run_sync
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random,
    wait_random_exponential,
)

from echo_hf.collect.fetch_ledger import Entry, FetchError, FetchLedger, as_fetch_error
from echo_hf.collect.image_client import PictureClient, allowed_url, picture_client
from echo_hf.collect.network import Resolve, resolve
from echo_hf.config.collection import FetchPolicy
from echo_hf.errors import PictureError
from echo_hf.images.decode import BadPictureError, decoding, open_picture
from echo_hf.images.store import PictureStore
from echo_hf.pipeline.progress import FetchStats
from echo_hf.reasons import BadPicture, Unfetched


@dataclass
class Host:
    """One host."""

    places: anyio.CapacityLimiter
    closed_until: float = 0.0


@dataclass
class Hosts:
    """The hosts of a run."""

    policy: FetchPolicy
    _hosts: dict[str, Host] = field(default_factory=dict)

    @asynccontextmanager
    async def visit(self, url: str) -> AsyncIterator[None]:
        """Waits for a place at an address's host, and closes the host when it asks for that."""
        host = self._host(url)
        async with host.places:
            await self._wait(host)
            try:
                yield
            except FetchError as error:
                if error.wait_s is not None:
                    until = anyio.current_time() + error.wait_s
                    host.closed_until = max(host.closed_until, until)
                raise

    async def _wait(self, host: Host) -> None:
        left = host.closed_until - anyio.current_time()
        if left > self.policy.longest_wait_s:
            raise FetchError(
                Unfetched.RATE_LIMITED,
                f"the host asks to wait {left:.0f} s, expected {self.policy.longest_wait_s:.0f} s",
            )
        await anyio.sleep(max(0.0, left))

    def _host(self, url: str) -> Host:
        name = urlsplit(url).netloc
        if name not in self._hosts:
            self._hosts[name] = Host(anyio.CapacityLimiter(self.policy.per_host))
        return self._hosts[name]


LONGEST_BACKOFF_S = 60.0

Keep = Callable[[str], Awaitable[str]]


@dataclass(frozen=True)
class Attempts:
    """Asks as often as it makes sense."""

    policy: FetchPolicy
    hosts: Hosts

    async def make(self, url: str, keep: Keep) -> tuple[Entry, int]:
        """Asks for a picture until it is there or no attempt is left."""
        times = 0

        async def once() -> str:
            nonlocal times
            async with self.hosts.visit(url):
                times += 1
                return await keep(url)

        retrying = AsyncRetrying(
            sleep=anyio.sleep,
            stop=stop_after_attempt(self.policy.max_attempts),
            retry=retry_if_exception(self._may_go_better),
            wait=self._wait,
            reraise=True,
        )
        try:
            return Entry(await retrying(once), None), times
        except FetchError as error:
            return Entry(None, error.reason, error.detail), times

    def _may_go_better(self, error: BaseException) -> bool:
        if not isinstance(error, FetchError) or not error.again:
            return False
        return error.wait_s is None or error.wait_s <= self.policy.longest_wait_s

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, FetchError) and error.wait_s is not None:
            return error.wait_s + wait_random(0, self.policy.backoff_s)(state)
        longest = max(self.policy.backoff_s, LONGEST_BACKOFF_S)
        return wait_random_exponential(self.policy.backoff_s, max=longest)(state)


DECODERS = 2
THREAD = "echo-hf fetch"

Outcome = tuple[str, Entry, int]
Report = Callable[[Outcome | Exception], None]


@dataclass(frozen=True)
class FetchRun:
    """What all fetches of a run share."""

    store: PictureStore
    ledger: FetchLedger
    policy: FetchPolicy
    resolve: Resolve

    def outcomes(self, urls: Sequence[str]) -> Iterator[Outcome]:
        """Asks for pictures; leaving early stops what is under way."""
        finished: SimpleQueue[Outcome | Exception | None] = SimpleQueue()
        # Left by an exception, as when the caller stops early, it cancels what is under way.
        with start_blocking_portal(name=THREAD) as portal:
            task = portal.start_task_soon(self._ask, urls, finished.put)
            task.add_done_callback(lambda _: finished.put(None))
            while (outcome := finished.get()) is not None:
                if isinstance(outcome, Exception):
                    raise outcome
                yield outcome
            task.result()

    async def _ask(self, urls: Sequence[str], report: Report) -> None:
        waiting = iter(urls)
        attempts = Attempts(self.policy, Hosts(self.policy))
        async with picture_client(self.policy, self.resolve) as client:
            keeper = _Keeper(client, self.store, self.policy.most_pixels, CapacityLimiter(DECODERS))

            async def work() -> None:
                for url in waiting:
                    entry, times = await attempts.make(url, keeper.keep)
                    self.ledger.record(url, entry, times)
                    report((url, entry, times))

            async def work_or_say() -> None:
                try:
                    await work()
                except Exception as error:  # not a picture's fault: the run cannot go on
                    report(error)

            async with create_task_group() as tasks:
                for _ in range(min(self.policy.concurrency, len(urls))):
                    tasks.start_soon(work_or_say)


@dataclass(frozen=True)
class _Keeper:
    client: PictureClient
    store: PictureStore
    most_pixels: int
    decoders: CapacityLimiter

    async def keep(self, url: str) -> str:
        data = await self.client.fetch(url)
        with as_fetch_error():
            return await run_sync(self._put, data, limiter=self.decoders)

    def _put(self, data: bytes) -> str:
        self._check_size(data)
        try:
            with decoding:
                return self.store.put(data)
        except PictureError as error:
            raise _bad(data, error) from error

    def _check_size(self, data: bytes) -> None:
        try:
            with open_picture(data, most_pixels=self.most_pixels):
                return
        except BadPictureError as error:
            # One pixel is a picture, whatever it is good for.
            if error.reason is not BadPicture.TOO_SMALL:
                raise


def _bad(data: bytes, said: PictureError) -> BadPictureError:
    """Why the store refuses bytes, which itself gives no reason from the list."""
    try:
        with open_picture(data) as picture:
            picture.load()
    except BadPictureError as error:
        return error
    return BadPictureError(BadPicture.DAMAGED, str(said))


LEDGER = "fetched.sqlite"


@dataclass(frozen=True, slots=True)
class FetchResult:
    """What became of an address."""

    url: str
    sha256: str | None
    reason: Unfetched | None = None
    detail: str = ""
    attempts: int = 0
    known: bool = False


Progress = Callable[[FetchStats], None]


def fetch_pictures(
    urls: Iterable[str],
    store: PictureStore,
    *,
    policy: FetchPolicy | None = None,
    ledger: Path | None = None,
    progress: Progress | None = None,
    resolve: Resolve = resolve,
) -> Iterator[FetchResult]:
    """Fetches pictures into the store."""
    policy = policy or FetchPolicy()
    started = time.monotonic()
    spellings, refused = _sorted_out(urls, policy)
    stats = FetchStats(len(spellings) + len(refused))
    with FetchLedger(ledger or store.root.with_name(LEDGER)) as known:
        run = FetchRun(store, known, policy, resolve)
        for result in _results(run, list(spellings), refused):
            stats.count(result.known, result.reason)
            stats.seconds = time.monotonic() - started
            if progress is not None:
                progress(stats)
            for url in spellings.get(result.url, (result.url,)):
                yield _spelt(result, url)


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


def _results(
    run: FetchRun, urls: list[str], refused: Iterable[FetchResult]
) -> Iterator[FetchResult]:
    yield from refused
    known = run.ledger.known(urls)
    settled = {url: known[url] for url in urls if _is_settled(known.get(url), run.store)}
    for url, one in settled.items():
        yield FetchResult(url, one.sha256, one.reason, one.detail, known=True)
    rest = [url for url in urls if url not in settled]
    if rest:
        for url, one, attempts in run.outcomes(rest):
            yield FetchResult(url, one.sha256, one.reason, one.detail, attempts)


def _is_settled(entry: Entry | None, store: PictureStore) -> bool:
    if entry is None:
        return False
    if entry.sha256 is not None:
        return store.path(entry.sha256).exists()
    return entry.reason is Unfetched.GONE


def _spelt(result: FetchResult, url: str) -> FetchResult:
    return FetchResult(
        url, result.sha256, result.reason, result.detail, result.attempts, result.known
    )
