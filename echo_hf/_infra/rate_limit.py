"""How much may begin in a minute, and how much is under way at a time."""

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
LONGEST_SLEEP_S = 3600.0


class RateLimiter:
    """Spreads what begins evenly over time, but for the share of `burst_s`, which may be early."""

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
            now = max(self._clock(), self._held_until) - self._stood_still_s
            place = max(now, self._free_at)
            self._free_at = place + amount * self._each_s
            return place - self._burst_s

    def left_s(self, place: float) -> float:
        """Seconds until a place, as far as it is known now."""
        with self._lock:
            begins = max(self._held_until, place + self._stood_still_s)
            return max(0.0, begins - self._clock())

    def settle(self, amount: float) -> None:
        """Counts what was more, or less when negative, than had been reserved."""
        with self._lock:
            self._free_at += amount * self._each_s

    def hold(self, seconds: float) -> None:
        """Lets nothing begin for a while, because the server asks to wait."""
        with self._lock:
            now = self._clock()
            until = max(self._held_until, now + max(0.0, seconds))
            self._stood_still_s += until - max(self._held_until, now)
            self._held_until = until

    async def turn(self, amount: float = 1.0) -> None:
        """Waits for the next place, in a task."""
        place = self.reserve(amount)
        while (left := self.left_s(place)) > 0:
            await anyio.sleep(min(left, LONGEST_SLEEP_S))

    def turn_unless(self, stopped: Event, amount: float = 1.0) -> bool:
        """Waits for the next place, in a thread; false where it is stopped before."""
        place = self.reserve(amount)
        while not stopped.is_set() and (left := self.left_s(place)) > 0:
            stopped.wait(min(left, LONGEST_SLEEP_S))
        return not stopped.is_set()


Item = TypeVar("Item")
Done = TypeVar("Done")
Work = Callable[[Item], Awaitable[Done]]


def finished(
    items: Iterable[Item],
    opened: Callable[[], AbstractAsyncContextManager[Work[Item, Done]]],
    most: int,
    thread: str,
) -> Generator[Done, None, None]:
    """Yields what becomes of items, in any order; an error comes after what was done before it.

    Items are taken when there is room for them among the `most` under way, in a thread of this
    name. Closing the generator cancels those, closes what they share, and joins the thread.
    """
    ended: SimpleQueue[Future[Done]] = SimpleQueue()

    async def end(work: Work[Item, Done], item: Item) -> None:
        one = Future[Done]()
        try:
            one.set_result(await work(item))
        except BaseException as error:  # whatever happens is reported: somebody waits for it
            one.set_exception(error)
            if not isinstance(error, Exception):
                raise
        finally:
            ended.put(one)

    async def serve(
        *, task_status: TaskStatus[tuple[TaskGroup, Work[Item, Done]]] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        async with opened() as work, anyio.create_task_group() as tasks:
            task_status.started((tasks, work))
            await anyio.sleep_forever()

    def start(item: Item) -> None:
        tasks.start_soon(end, work, item)  # without its result, which the portal would wait for

    with start_blocking_portal(name=thread) as portal:
        closed, (tasks, work) = portal.start_task(serve)
        try:
            waiting, under_way = iter(items), 0
            while True:
                for item in islice(waiting, most - under_way):
                    portal.call(start, item)
                    under_way += 1
                if not under_way:
                    return
                ready = [ended.get()]
                while not ended.empty():
                    ready.append(ended.get())
                under_way -= len(ready)
                for one in sorted(ready, key=lambda one: one.exception() is not None):
                    yield one.result()
        finally:
            portal.call(tasks.cancel_scope.cancel)
            closed.result()
