"""Leases: two people never get the same sample, and nobody keeps one by going away."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from echo_hf.apps.events import EventLog, Lease, Leases


@dataclass
class Clock:
    """A clock that a test sets."""

    time: datetime = datetime(2026, 3, 2, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        """The time."""
        return self.time

    def wait(self, minutes: float) -> None:
        """Lets time pass."""
        self.time += timedelta(minutes=minutes)


@pytest.fixture
def clock() -> Clock:
    """The time of a test."""
    return Clock()


@pytest.fixture
def leases(tmp_path: Path, clock: Clock) -> Leases:
    """Nothing is lent yet."""
    return Leases(EventLog(tmp_path / "events.sqlite", clock), "review")


def test_people_get_different_samples(leases: Leases, clock: Clock) -> None:
    """The first that is free, in the order of the wish; none when all are out."""
    wanted = ["s1", "s2"]
    assert [leases.lend(wanted, who) for who in ("ann", "ben", "cy")] == ["s1", "s2", None]
    until = clock.time + timedelta(minutes=10)
    assert leases.running() == {"s1": Lease("ann", until), "s2": Lease("ben", until)}


def test_a_lease_is_renewed_by_asking_again(leases: Leases, clock: Clock) -> None:
    """Nine minutes and nine minutes: it is still Ann's."""
    for _ in range(3):
        assert leases.lend(["s1"], "ann") == "s1"
        clock.wait(9)
    assert leases.lend(["s1"], "ben") is None


def test_a_lease_that_ended_goes_to_another(leases: Leases, clock: Clock) -> None:
    """Ten minutes after; then it is not Ann's any more."""
    leases.lend(["s1"], "ann")
    clock.wait(10)
    assert leases.running() == {}
    assert leases.lend(["s1"], "ben") == "s1"
    assert leases.lend(["s1"], "ann") is None


def test_a_lease_of_a_clock_that_was_wrong_has_expired(leases: Leases, clock: Clock) -> None:
    """A sample that is lent for longer than anybody may have it is free."""
    clock.wait(60 * 24)
    leases.lend(["s1"], "ann")
    clock.wait(-60 * 24)
    assert leases.running() == {}
    assert leases.lend(["s1"], "ben") == "s1"


def test_only_ones_own_lease_is_given_back(leases: Leases) -> None:
    """Ben gives back what is Ann's: nothing happens."""
    leases.lend(["s1"], "ann")
    leases.give_back("s1", "ben")
    assert leases.lend(["s1"], "ben") is None
    leases.give_back("s1", "ann")
    assert leases.lend(["s1"], "ben") == "s1"


def test_apps_lend_apart(leases: Leases) -> None:
    """The same sample in another app is another loan."""
    leases.lend(["s1"], "ann")
    assert Leases(leases.log, "other").lend(["s1"], "ben") == "s1"


def test_no_sample_is_lent_twice_at_a_time(leases: Leases) -> None:
    """Eight people ask at once for eight samples in the same order."""
    wanted = [f"s{number}" for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(lambda number: leases.lend(wanted, f"p{number}"), range(8)))
    assert sorted(map(str, given)) == wanted
