"""So much begins in a minute, and nothing while a server asks to wait."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from threading import Event, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf._infra.rate_limit import RateLimiter

PATIENCE_S = 30


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: float = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def waits(limiter: RateLimiter, *amounts: float) -> list[float]:
    """How long each of these has to wait."""
    return [limiter.left_s(limiter.reserve(amount)) for amount in amounts]


def test_places_are_spread_over_the_minute() -> None:
    """60 a minute are one a second; with a burst of a second, one goes early."""
    assert waits(RateLimiter(60, clock=Clock()), 1, 1, 1) == [0.0, 1.0, 2.0]
    assert waits(RateLimiter(60, burst_s=1, clock=Clock()), 1, 1, 1, 1) == [0.0, 0.0, 1.0, 2.0]


def test_time_brings_places_but_saves_none() -> None:
    """After a long pause there is no more room than at the start."""
    clock = Clock()
    limiter = RateLimiter(60, burst_s=1, clock=clock)
    assert waits(limiter, 1, 1, 1) == [0.0, 0.0, 1.0]
    clock.now += 2
    assert waits(limiter, 1, 1) == [0.0, 1.0]
    clock.now += 3600
    assert waits(limiter, 1, 1, 1) == [0.0, 0.0, 1.0]


def test_a_large_amount_goes_at_once_and_holds_back_the_next() -> None:
    """More than a minute's worth cannot be split: it is paid for afterwards."""
    assert waits(RateLimiter(600, burst_s=1, clock=Clock()), 1200, 1) == [0.0, 119.0]


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
    """Between any two places: at most the rate times that time and the burst."""
    clock = Clock(0.0)
    limiter = RateLimiter(per_minute, burst_s=1, clock=clock)
    places = []
    for pause, amount in asked:
        clock.now += pause
        places.append((clock.now + waits(limiter, amount)[0], amount))
    for first in range(len(places)):
        through = 0.0
        for last in range(first + 1, len(places)):
            through += places[last - 1][1]
            allowed = (places[last][0] - places[first][0] + 1) * per_minute / 60
            assert through <= allowed * (1 + 1e-6) + 1e-6


def test_without_a_rate_nothing_waits() -> None:
    """Whatever begins and is used."""
    limiter = RateLimiter()
    limiter.settle(5000)
    assert waits(limiter, *[10**9] * 3) == [0.0] * 3


def test_a_hold_moves_all_places() -> None:
    """For the longest of what was asked for; those that were taken keep their distance."""
    clock = Clock()
    limiter = RateLimiter(60, clock=clock)
    taken = [limiter.reserve() for _ in range(3)]
    for seconds in (10, 3, -5):
        limiter.hold(seconds)
    assert [limiter.left_s(place) for place in taken] == [10.0, 11.0, 12.0]
    clock.now += 4
    assert waits(limiter, 1) == [9.0]
    clock.now += 100
    assert waits(limiter, 1, 1) == [0.0, 1.0]


def test_threads_and_tasks_wait_for_their_place() -> None:
    """By the real clock."""
    limiter = RateLimiter(600)
    began = time.monotonic()
    assert limiter.turn_unless(Event())
    asyncio.run(limiter.turn())
    assert limiter.turn_unless(Event())
    assert time.monotonic() - began >= 0.19


def test_whoever_waits_is_let_go_when_nothing_begins_any_more() -> None:
    """A wait of years ends, and says that nothing begins."""
    limiter, stopped, answers = RateLimiter(1e-12), Event(), list[bool]()
    assert limiter.turn_unless(stopped)
    waiting = [Thread(target=lambda: answers.append(limiter.turn_unless(stopped))) for _ in "abc"]
    for thread in waiting:
        thread.start()
    assert answers == []
    stopped.set()
    for thread in waiting:
        thread.join(PATIENCE_S)
    assert answers == [False] * 3
    assert not limiter.turn_unless(stopped)
