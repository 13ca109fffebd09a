"""Limit how much begins per minute, and how much runs concurrently."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator, Iterable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from itertools import islice
from queue import SimpleQueue
from threading import Event, Lock
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup, TaskStatus
from anyio.from_thread import start_blocking_portal

# Threads cannot wait for as long as a rate may ask for; whoever wakes early waits again.
MAX_SLEEP_SECONDS = 3600.0


class RateLimiter:
    """Spreads starts evenly over time, apart from a burst of `burst_s` seconds."""

    def __init__(
        self,
        per_minute: float | None = None,
        *,
        burst_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._each_s = 60.0 / per_minute if per_minute else 0.0
        self._burst_s, self._clock, self._lock = burst_s, clock, Lock()
        # Places are of a clock that stands still while all are held, so that a hold moves them all.
        self._free_at = self._held_until = float("-inf")
        self._stood_still_s = 0.0

    def reserve(self, amount: float = 1.0) -> float:
        with self._lock:
            clock_time = max(self._clock(), self._held_until) - self._stood_still_s
            start = max(clock_time, self._free_at)
            self._free_at = start + amount * self._each_s
            return start - self._burst_s

    def wait_seconds(self, place: float) -> float:
        """Return the seconds until a start time, as known now."""
        with self._lock:
            start = max(self._held_until, place + self._stood_still_s)
            return max(0.0, start - self._clock())

    def settle(self, amount: float) -> None:
        """Correct a reservation by what was used more, or less if negative."""
        with self._lock:
            self._free_at += amount * self._each_s

    def hold(self, seconds: float) -> None:
        """Start nothing for a while, because the server asks to wait."""
        with self._lock:
            clock_time = self._clock()
            until = max(self._held_until, clock_time + max(0.0, seconds))
            self._stood_still_s += until - max(self._held_until, clock_time)
            self._held_until = until

    async def wait(self, amount: float = 1.0) -> None:
        """Wait for the next start, in a task."""
        place = self.reserve(amount)
        while (seconds := self.wait_seconds(place)) > 0:
            await anyio.sleep(min(seconds, MAX_SLEEP_SECONDS))

    def wait_unless(self, stopped: Event) -> bool:
        """Wait for the next start, in a thread; false when stopped before."""
        place = self.reserve(1.0)
        while not stopped.is_set() and (seconds := self.wait_seconds(place)) > 0:
            stopped.wait(min(seconds, MAX_SLEEP_SECONDS))
        return not stopped.is_set()


ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
Work = Callable[[ItemT], Awaitable[ResultT]]


def run_concurrently(
    items: Iterable[ItemT],
    open_worker: Callable[[], AbstractAsyncContextManager[Work[ItemT, ResultT]]],
    limit: int,
    thread: str,
) -> Generator[ResultT, None, None]:
    """Yield the results of items as they finish; an error comes after earlier results.

    Items are taken when there is room for them among the `limit` under way, in a thread of this
    name. Closing the generator cancels those, closes what they share, and joins the thread.
    """
    done: SimpleQueue[Future[ResultT]] = SimpleQueue()

    async def process_item(work: Work[ItemT, ResultT], item: ItemT) -> None:
        future = Future[ResultT]()
        try:
            future.set_result(await work(item))
        except BaseException as error:  # whatever happens is reported: somebody waits for it
            future.set_exception(error)
            if not isinstance(error, Exception):
                raise
        finally:
            done.put(future)

    async def serve(
        *,
        task_status: TaskStatus[tuple[TaskGroup, Work[ItemT, ResultT]]] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        async with open_worker() as work, anyio.create_task_group() as tasks:
            task_status.started((tasks, work))
            await anyio.sleep_forever()

    def start(item: ItemT) -> None:
        # Without its result, which the portal would wait for.
        tasks.start_soon(process_item, work, item)

    with start_blocking_portal(name=thread) as portal:
        closed, (tasks, work) = portal.start_task(serve)
        try:
            remaining, under_way = iter(items), 0
            while True:
                for item in islice(remaining, limit - under_way):
                    portal.call(start, item)
                    under_way += 1
                if not under_way:
                    return
                ready = [done.get()]
                while not done.empty():
                    ready.append(done.get())
                under_way -= len(ready)
                for future in sorted(ready, key=lambda future: future.exception() is not None):
                    yield future.result()
        finally:
            portal.call(tasks.cancel_scope.cancel)
            closed.result()
