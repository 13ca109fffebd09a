"""Tasks are begun at a rate, and none while a system asks to wait."""

from __future__ import annotations

import time
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.systems.runner import Pace

PATIENCE_S = 30


@given(st.floats(0.01, 1e4))
def test_so_many_in_a_minute_are_evenly_spread(per_minute: float) -> None:
    """The turn after one that was taken comes a share of a minute later."""
    pace = Pace(per_minute)
    before = time.monotonic()
    assert pace.begin()
    after = time.monotonic()
    assert before + 60 / per_minute <= pace._next <= after + 60 / per_minute


def test_without_a_rate_nobody_waits() -> None:
    """Every turn is there at once."""
    pace = Pace()
    for _ in range(1000):
        assert pace._seconds_left() == 0
        assert pace._next <= time.monotonic()


def test_the_second_turn_is_not_there_at_once() -> None:
    """One is taken; the others have to wait, and waiting takes none away."""
    pace = Pace(0.001)
    assert pace._seconds_left() == 0
    first = pace._next
    assert 59_000 < pace._seconds_left() <= 60_000
    assert 59_000 < pace._seconds_left() <= 60_000
    assert pace._next == first


def test_whoever_waits_is_let_go_when_nothing_begins_any_more() -> None:
    """The wait of a whole day ends, and says that nothing begins."""
    pace, answers = Pace(1e-12), list[bool]()
    assert pace.begin()
    waiting = [Thread(target=lambda: answers.append(pace.begin())) for _ in range(3)]
    for one in waiting:
        one.start()
    assert answers == []
    pace.stopped.set()
    for one in waiting:
        one.join(PATIENCE_S)
    assert answers == [False] * 3
    assert not pace.begin()


@pytest.mark.parametrize("per_minute", [None, 60.0])
def test_a_system_that_asks_to_wait_holds_everybody(per_minute: float | None) -> None:
    """For the longest of what it asked for, from then on."""
    pace = Pace(per_minute)
    pace.hold(5000)
    held = pace._next
    pace.hold(20)
    pace.hold(-5)
    assert pace._next == held
    assert 4900 < pace._seconds_left() <= 5000
