"""So much begins in a minute, so much is under way, and nothing while a server asks to wait."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from threading import Event, Thread

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf._infra.rate_limit import RateLimiter, run_concurrently

THREAD = "echo-hf test"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def waits(limiter: RateLimiter, *amounts: float) -> list[float]:
    return [limiter.wait_seconds(limiter.reserve(amount)) for amount in amounts]


@pytest.mark.parametrize(
    ("per_minute", "burst_s", "amounts", "expected"),
    [
        (60, 0, (1, 1, 1), [0.0, 1.0, 2.0]),
        (60, 1, (1, 1, 1, 1), [0.0, 0.0, 1.0, 2.0]),
        # More than a minute's worth cannot be split: it is paid for afterwards.
        (600, 1, (1200, 1), [0.0, 119.0]),
        (None, 0, (10**9,) * 3, [0.0] * 3),
    ],
)
def test_places_are_spread_over_the_minute(
    per_minute: float | None, burst_s: float, amounts: tuple[float, ...], expected: list[float]
) -> None:
    """60 a minute are one a second; with a burst of a second, one goes early."""
    limiter = RateLimiter(per_minute, burst_s=burst_s, clock=Clock())
    assert waits(limiter, *amounts) == expected


def test_what_was_used_replaces_what_was_estimated() -> None:
    """20 more than reserved, at 10 a second, are 2 seconds; less gives time back."""
    limiter = RateLimiter(600, clock=Clock())
    limiter.reserve(100)
    limiter.settle(20)
    assert waits(limiter, 0) == [pytest.approx(12)]
    limiter.settle(-120)
    assert waits(limiter, 0) == [0.0]


@given(
    st.floats(1, 1e6),
    st.lists(st.tuples(st.floats(0, 30), st.floats(0, 1e5)), min_size=2, max_size=30),
)
def test_no_stretch_of_time_lets_more_through_than_the_rate(
    per_minute: float, asked: list[tuple[float, float]]
) -> None:
    clock, places = Clock(), []
    limiter = RateLimiter(per_minute, burst_s=1, clock=clock)
    for pause, amount in asked:
        clock.now += pause
        places.append((clock.now + waits(limiter, amount)[0], amount))
    for first in range(len(places)):
        through = 0.0
        for last in range(first + 1, len(places)):
            through += places[last - 1][1]
            allowed = (places[last][0] - places[first][0] + 1) * per_minute / 60
            assert through <= allowed * (1 + 1e-6) + 1e-6


def test_a_hold_moves_all_places_and_time_saves_none() -> None:
    clock = Clock()
    limiter = RateLimiter(60, clock=clock)
    taken = [limiter.reserve() for _ in range(3)]
    for seconds in (10, 3, -5):
        limiter.hold(seconds)
    assert [limiter.wait_seconds(place) for place in taken] == [10.0, 11.0, 12.0]
    clock.now += 4
    assert waits(limiter, 1) == [9.0]
    clock.now += 3600
    assert waits(limiter, 1, 1) == [0.0, 1.0]


def test_threads_and_tasks_wait_for_their_place() -> None:
    limiter = RateLimiter(6000)
    began = time.monotonic()
    assert limiter.wait_unless(Event())
    asyncio.run(limiter.wait())
    assert limiter.wait_unless(Event())
    assert time.monotonic() - began >= 0.019
    limiter, stopped, answers = RateLimiter(1e-12), Event(), list[bool]()
    assert limiter.wait_unless(stopped)
    waiting = [Thread(target=lambda: answers.append(limiter.wait_unless(stopped))) for _ in "abc"]
    for thread in waiting:
        thread.start()
    assert answers == []
    stopped.set()
    for thread in waiting:
        thread.join(30)
    assert answers == [False] * 3


class Office:
    """What all work shares; logs what is opened, cancelled and closed."""

    def __init__(self) -> None:
        self.under_way = self.most = 0
        self.log: list[str] = []

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Callable[[int], Awaitable[int]]]:
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
    office, taken = Office(), list[str]()

    def items() -> Iterator[int]:
        for number in range(5):
            taken.append(threading.current_thread().name)
            yield number

    results = run_concurrently(items(), office.opened, 2, THREAD)
    assert next(results) in (0, 1)
    assert len(taken) <= 3
    assert len(list(results)) == 4
    assert (office.most, office.log) == (2, ["opened", "closed"])
    assert set(taken) == {threading.current_thread().name}


def test_an_error_and_leaving_cancel_what_is_under_way() -> None:
    office, done = Office(), list[int]()
    with pytest.raises(ValueError, match="five"):
        done.extend(run_concurrently([8, 7, 5], office.opened, 3, THREAD))
    assert (done, office.log) == ([8], ["opened", "cancelled", "closed"])
    office = Office()
    results = run_concurrently([8, 7, 1], office.opened, 2, THREAD)
    assert next(results) == 8
    results.close()
    assert office.log == ["opened", "cancelled", "closed"]
    assert THREAD not in {thread.name for thread in threading.enumerate()}
