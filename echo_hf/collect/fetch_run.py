"""Fetch many pictures at once in an event loop of its own, while the caller reads results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue

from anyio import CapacityLimiter, create_task_group
from anyio.from_thread import start_blocking_portal
from anyio.to_thread import run_sync

from echo_hf.collect.checked_network import Resolve
from echo_hf.collect.fetch_hosts import Hosts
from echo_hf.collect.fetch_ledger import Entry, FetchLedger
from echo_hf.collect.fetch_policy import FetchPolicy
from echo_hf.collect.fetch_retries import Attempts
from echo_hf.collect.fetch_trouble import as_fetch_error
from echo_hf.collect.picture_client import PictureClient, picture_client
from echo_hf.errors import PictureError
from echo_hf.open_picture import BadPictureError, open_picture
from echo_hf.pictures import PictureStore
from echo_hf.pillow_guard import decoding
from echo_hf.reasons import BadPicture

DECODERS = 2
THREAD = "echo-hf fetch"

Outcome = tuple[str, Entry, int]
Report = Callable[[Outcome | Exception], None]


@dataclass(frozen=True)
class FetchRun:
    """What all fetches of a run share.

    Attributes:
        store: Where pictures go.
        ledger: Where outcomes are written down, before they are reported.
        policy: What may be fetched.
        resolve: Looks names up.
    """

    store: PictureStore
    ledger: FetchLedger
    policy: FetchPolicy
    resolve: Resolve

    def outcomes(self, urls: Sequence[str]) -> Iterator[Outcome]:
        """Asks for pictures; leaving early stops what is under way.

        Args:
            urls: Addresses that may be asked, each once.

        Yields:
            The address, what became of it, and how often it was asked for, as they are known.

        Raises:
            StoreError: The ledger cannot be used.
            OSError: The store cannot be written.
        """
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
