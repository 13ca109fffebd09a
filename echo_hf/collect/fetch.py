"""Fetch the pictures that posts name by their addresses, each once, into the picture store.

An address in a post is a stranger's wish to make this machine ask another one for something. Only
the public internet is asked, within limits of size and time; what comes is believed to be a
picture when it decodes as one, and is kept as the bytes it was.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from echo_hf.collect.checked_network import Resolve, resolve
from echo_hf.collect.fetch_ledger import Entry, FetchLedger
from echo_hf.collect.fetch_policy import FetchPolicy
from echo_hf.collect.fetch_run import FetchRun
from echo_hf.collect.fetch_trouble import FetchError
from echo_hf.collect.picture_client import allowed_url
from echo_hf.pictures import PictureStore
from echo_hf.reasons import Unfetched

LEDGER = "fetched.sqlite"


@dataclass(frozen=True, slots=True)
class FetchResult:
    """What became of an address.

    Attributes:
        url: The address as it was given.
        sha256: Digest of the picture in the store; null when there is none.
        reason: Why there is none.
        detail: What a person needs to see the cause.
        attempts: How often it was asked for in this run.
        known: Whether an earlier run had settled it, so that nobody was asked.
    """

    url: str
    sha256: str | None
    reason: Unfetched | None = None
    detail: str = ""
    attempts: int = 0
    known: bool = False


@dataclass
class FetchStats:
    """How far a run is; addresses that differ only in spelling count once.

    Attributes:
        total: Addresses.
        known: Addresses that an earlier run had settled.
        fetched: Pictures that this run has brought.
        reasons: Addresses that gave this run no picture, by reason.
        seconds: Since the beginning.
    """

    total: int
    known: int = 0
    fetched: int = 0
    reasons: Counter[Unfetched] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def done(self) -> int:
        """Addresses whose outcome is known."""
        return self.known + self.fetched + self.reasons.total()

    def count(self, result: FetchResult) -> None:
        """Adds one outcome."""
        if result.known:
            self.known += 1
        elif result.reason is None:
            self.fetched += 1
        else:
            self.reasons[result.reason] += 1


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
    """Fetches pictures into the store.

    What was fetched before and still lies in the store, and what was gone for good, is not asked
    for again; every other trouble is tried again by the next run. An outcome is written down
    before it is yielded, so that a killed run goes on as if it had not been killed.

    Args:
        urls: Addresses; those that differ only in spelling are asked for once.
        store: Where the bytes go.
        policy: What may be fetched; null for the usual limits.
        ledger: The file that remembers outcomes; null for `fetched.sqlite` beside the store.
        progress: Called after each outcome.
        resolve: Looks names up.

    Yields:
        A result for each different address, as they are known; leaving early stops the rest.

    Raises:
        StoreError: The ledger cannot be used.
        OSError: The store cannot be written.
    """
    policy = policy or FetchPolicy()
    started = time.monotonic()
    spellings, refused = _sorted_out(urls, policy)
    stats = FetchStats(len(spellings) + len(refused))
    with FetchLedger(ledger or store.root.with_name(LEDGER)) as known:
        run = FetchRun(store, known, policy, resolve)
        for result in _results(run, list(spellings), refused):
            stats.count(result)
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
