"""Token buckets."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.server_engine import BURST_S, Limits, TokenBucket


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: float = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def test_requests_are_spread_over_the_minute() -> None:
    """60 a minute: two at once, as a second's worth may go early, then one a second."""
    bucket = TokenBucket(60, Clock())
    assert [bucket.reserve(1) for _ in range(5)] == [0.0, 0.0, 1.0, 2.0, 3.0]


def test_time_brings_places_but_saves_none() -> None:
    """After a long pause there is no more room than at the start."""
    clock = Clock()
    bucket = TokenBucket(60, clock)
    assert [bucket.reserve(1) for _ in range(3)] == [0.0, 0.0, 1.0]
    clock.now += 2
    assert [bucket.reserve(1) for _ in range(2)] == [0.0, 1.0]
    clock.now += 3600
    assert [bucket.reserve(1) for _ in range(3)] == [0.0, 0.0, 1.0]


def test_a_large_amount_goes_at_once_and_holds_back_the_next() -> None:
    """More than a minute's worth cannot be split: it is paid for afterwards."""
    bucket = TokenBucket(600, Clock())
    assert [bucket.reserve(1200), bucket.reserve(1)] == [0.0, 119.0]


def test_what_was_used_replaces_what_was_estimated() -> None:
    """20 tokens more than reserved, at 10 a second, are 2 seconds; less gives time back."""
    bucket = TokenBucket(600, Clock())
    bucket.reserve(100)
    bucket.settle(20)
    assert bucket.reserve(0) == pytest.approx(10 + 2 - BURST_S)
    bucket.settle(-120)
    assert bucket.reserve(0) == 0.0


@given(
    st.floats(1, 1e6),
    st.lists(st.tuples(st.floats(0, 30), st.floats(0, 1e5)), min_size=2, max_size=30),
)
def test_no_stretch_of_time_lets_more_through_than_the_rate(
    per_minute: float, asked: list[tuple[float, float]]
) -> None:
    """Between any two places: at most the rate times that time and the burst."""
    clock = Clock(0.0)
    bucket = TokenBucket(per_minute, clock)
    places = []
    for pause, amount in asked:
        clock.now += pause
        places.append((clock.now + bucket.reserve(amount), amount))
    for first in range(len(places)):
        through = 0.0
        for last in range(first + 1, len(places)):
            through += places[last - 1][1]
            allowed = (places[last][0] - places[first][0] + BURST_S) * per_minute / 60
            assert through <= allowed * (1 + 1e-6) + 1e-6


def test_both_limits_hold() -> None:
    """The longer wait of the two."""
    clock = Clock()
    limits = Limits(TokenBucket(60, clock), TokenBucket(6000, clock), clock)
    assert limits.reserve(300) == 0.0
    # Tokens: 3 s less the burst; requests would go at once.
    assert limits.reserve(0) == 2.0
    # Requests: the third.
    limits.settle(300, 0)
    assert limits.reserve(0) == 1.0


def test_without_limits_nothing_waits() -> None:
    """Whatever is sent and used."""
    limits = Limits.per_minute(None, None)
    limits.settle(5, 5000)
    assert [limits.reserve(10**9) for _ in range(3)] == [0.0] * 3


def test_a_closed_server_is_not_asked() -> None:
    """Until the time that it named, and a shorter one does not shorten it."""
    clock = Clock()
    limits = Limits(clock=clock)
    limits.close_for(10)
    limits.close_for(3)
    clock.now += 4
    assert limits.reserve(0) == 6.0
    clock.now += 6
    assert limits.reserve(0) == 0.0
