"""Work in an event loop of a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import anyio
import pytest

from echo_hf._infra.rate_limit import finished

THREAD = "echo-hf test"
Numbers = Callable[[int], Awaitable[int]]


class Office:
    """What all work shares.

    Attributes:
        most: Items that were under way at one time.
        log: What was opened, cancelled and closed.
    """

    def __init__(self) -> None:
        self.under_way = self.most = 0
        self.log: list[str] = []

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Numbers]:
        """Open while there is work."""
        self.log.append("opened")
        yield self.work
        self.log.append("closed")

    async def work(self, number: int) -> int:
        """Fails for 5, has no end for 7, and takes longer for smaller numbers."""
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await anyio.sleep(60 if number == 7 else (9 - number) * 0.002)
        except BaseException:
            self.log.append("cancelled")
            raise
        finally:
            self.under_way -= 1
        if number == 5:
            raise ValueError("five")
        return number


def test_as_many_as_allowed_are_under_way() -> None:
    """Items are taken as there is room, in the caller's thread; all that is done is yielded."""
    office, taken = Office(), list[str]()

    def items() -> Iterator[int]:
        for number in range(5):
            taken.append(threading.current_thread().name)
            yield number

    results = finished(items(), office.opened, 2, THREAD)
    assert next(results) in (0, 1)
    assert len(taken) <= 3
    assert len(list(results)) == 4
    assert (office.most, office.log) == (2, ["opened", "closed"])
    assert set(taken) == {threading.current_thread().name}


def test_an_error_comes_after_what_was_done_before_it() -> None:
    """The rest is cancelled, and the thread ends."""
    office, done = Office(), list[int]()
    with pytest.raises(ValueError, match="five"):
        done.extend(finished([7, 5], office.opened, 2, THREAD))
    assert office.log == ["opened", "cancelled", "closed"]
    assert THREAD not in {thread.name for thread in threading.enumerate()}


def test_leaving_early_cancels_what_is_under_way() -> None:
    """And closes what all work shared."""
    office = Office()
    results = finished([8, 7, 1], office.opened, 2, THREAD)
    assert next(results) == 8
    results.close()
    assert office.log == ["opened", "cancelled", "closed"]
