"""The log of events, what stands after it, and samples lent to one person."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.curate.events import (
    UNDO,
    Event,
    EventLog,
    SampleLease,
    SampleLeases,
    current_decisions,
    drop_undone,
    latest_by_person,
)
from echo_hf.errors import RunError

MORNING = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    minutes = iter(range(10_000))
    return EventLog(
        tmp_path / "run" / "events.sqlite", lambda: MORNING + timedelta(minutes=next(minutes))
    )


def test_what_was_added_is_found_by_app_subject_and_person(log: EventLog) -> None:
    payload = {"prompt": "größer\n\u202e 🙂", "n": [1]}
    first = log.append("rank", "s1", "ann", "rank", payload)
    second = log.append("rank", "s1", "ben", "rank", base=first.id)
    third = log.append("rank", "s2", "ann", "rank")
    log.append("review", "s1", "ann", "keep")
    number = 1772443800000  # 2026-03-02 09:30 UTC in milliseconds
    assert first == Event(number, "rank", "s1", "ann", "rank", payload, None, MORNING)
    assert (second.base, second.at) == (first.id, MORNING + timedelta(minutes=1))
    found = [
        log.read_events("rank"),
        log.read_events("rank", "s1"),
        log.read_events("rank", person="ann"),
    ]
    assert found == [(first, second, third), (first, second), (first, third)]
    assert log.read_events("rank", "s1", "ann") == (first,)


def test_what_cannot_be_done_leaves_the_log_as_it_is(log: EventLog) -> None:
    """Only own events are undone, a base is an event, and none is ever changed."""
    there = log.append("rank", "s1", "ann", "rank").id
    for event, person in ((there, "ben"), (there + 6, "ann")):
        with pytest.raises(RunError, match=rf"^event {event} is none of '{person}'"):
            log.undo(event, person)
    with pytest.raises(RunError, match="has no event 5"):
        log.append("rank", "s1", "ann", "rank", base=5)
    with (
        sqlite3.connect(log.path) as other,
        pytest.raises(sqlite3.IntegrityError, match="never changed"),
    ):
        other.execute("update event set person = 'ben'")
    other.close()
    assert [(one.id, one.person) for one in log.read_events("rank")] == [(there, "ann")]


def test_what_has_to_go_leaves_the_bytes_of_the_file(log: EventLog) -> None:
    edited = log.append("review", "s1", "ann", "edit", {"prompt": "confidential words"})
    log.append("review", "s2", "ann", "keep")
    log.undo(edited.id, "ann")
    assert log.forget({"s1", "unknown"}) == 2
    assert [one.subject for one in log.read_events("review")] == ["s2"]
    files = log.path.parent.glob("events.sqlite*")
    assert all(b"confidential" not in file.read_bytes() for file in files)


def test_those_who_write_at_a_time_lose_nothing(log: EventLog) -> None:
    """Each call opens the file anew, as each of several processes does."""
    people = ["ann", "ben", "cy", "dee"]

    def write(person: str) -> list[int]:
        one = EventLog(log.path)
        return [one.append("rank", "s", person, "rank", {"n": n}).id for n in range(25)]

    with ThreadPoolExecutor(4) as pool:
        said = dict(zip(people, pool.map(write, people), strict=True))
    events = log.read_events("rank")
    assert len({event.id for event in events}) == 100
    for person, numbers in said.items():
        own = [event for event in events if event.person == person]
        assert [(event.id, event.payload["n"]) for event in own] == list(
            zip(numbers, range(25), strict=True)
        )


# Adds events until it is stopped, and says each number once it is on the disk.
WRITER = """
import sys
from itertools import count
from pathlib import Path
from echo_hf.curate.events import EventLog
log = EventLog(Path(sys.argv[1]))
for number in count():
    print(log.append("rank", f"s{number % 7}", "ann", "rank", {"number": number}).id, flush=True)
"""


@pytest.mark.parametrize("after", [12, pytest.param(40, marks=pytest.mark.slow)])
def test_a_killed_process_loses_nothing_that_it_said(log: EventLog, after: int) -> None:
    root = str(Path(__file__).resolve().parents[2])
    command = [sys.executable, "-c", WRITER, str(log.path)]
    environment = {**os.environ, "PYTHONPATH": root}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        said = [int(process.stdout.readline()) for _ in range(after)]
        process.kill()
        said += [int(line) for line in process.stdout if line.endswith("\n")]
    there = log.read_events("rank")
    assert set(said) <= {event.id for event in there}
    assert [event.payload["number"] for event in there] == list(range(len(there)))
    assert log.append("rank", "s1", "ben", "rank").id > there[-1].id


def test_a_log_in_place_of_a_lost_one_has_larger_numbers(log: EventLog) -> None:
    first = log.append("rank", "s1", "ann", "rank")
    for file in log.path.parent.glob("events.sqlite*"):
        file.unlink()
    second = log.append("rank", "s1", "ann", "rank")
    still = EventLog(log.path, lambda: MORNING)
    numbers = [first.id, second.id, *(still.append("rank", "s1", "a", "r").id for _ in range(2))]
    assert numbers[0] < numbers[1] < numbers[2] < numbers[3]


AT = datetime(2026, 3, 2, tzinfo=UTC)
PEOPLE = ("ann", "ben", "cy")


def event(number: int, action: str, base: int | None = None, **more: str) -> Event:
    subject, person = more.get("subject", "s"), more.get("person", "ann")
    return Event(number, "review", subject, person, action, {}, base, AT)


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    found: list[Event] = []
    for number in range(1, draw(st.integers(1, 12)) + 1):
        person = draw(st.sampled_from(PEOPLE))
        own = [one for one in found if one.person == person]
        if own and draw(st.booleans()):
            back = draw(st.sampled_from(own))
            found.append(event(number, UNDO, back.id, person=person, subject=back.subject))
        else:
            subject = draw(st.sampled_from(("s", "t")))
            base = draw(st.sampled_from([None, *(one.id for one in found)]))
            action = draw(st.sampled_from(("keep", "flag")))
            found.append(event(number, action, base, person=person, subject=subject))
    return found


def stands(one: Event, log: list[Event]) -> bool:
    return not any(
        other.action == UNDO and other.base == one.id and stands(other, log) for other in log
    )


@given(logs())
def test_what_stands_is_what_nothing_that_stands_takes_back(log: list[Event]) -> None:
    expected = tuple(one for one in log if one.action != UNDO and stands(one, log))
    assert drop_undone(log) == expected


@given(logs(), st.integers())
def test_the_fold_is_stable_under_the_order_of_reading(log: list[Event], seed: int) -> None:
    mixed = random.Random(seed).sample(log, len(log))
    assert drop_undone(mixed) == drop_undone(log)
    assert latest_by_person(mixed) == latest_by_person(log)
    assert current_decisions(mixed) == current_decisions(log)


def test_two_decisions_on_one_base_are_a_conflict_until_one_has_seen_both() -> None:
    log = [event(1, "keep"), event(2, "flag", 1, person="ben"), event(3, "edit", 1, person="cy")]
    assert current_decisions(log) == {"s": (log[1], log[2])}
    settled = event(4, "keep", 3, person="ann")
    assert current_decisions([*log, settled]) == {"s": (settled,)}
    assert current_decisions([*log, settled, event(5, UNDO, 4)])["s"] == (log[1], log[2])

    # One on an old base does not hide a later one.
    old = [*log[:2], event(3, "flag", 2, person="ann"), event(4, "keep", 2, person="cy")]
    assert current_decisions(old) == {"s": (old[2], old[3])}


@dataclass
class Clock:
    time: datetime = datetime(2026, 3, 2, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def wait(self, minutes: float) -> None:
        self.time += timedelta(minutes=minutes)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def leases(tmp_path: Path, clock: Clock) -> SampleLeases:
    return SampleLeases(EventLog(tmp_path / "events.sqlite", clock), "review")


def test_people_get_different_samples(leases: SampleLeases, clock: Clock) -> None:
    wanted = ["s1", "s2"]
    assert [leases.lend(wanted, who) for who in ("ann", "ben", "cy")] == ["s1", "s2", None]
    until = clock.time + timedelta(minutes=10)
    assert leases.get_running() == {
        "s1": SampleLease("ann", until),
        "s2": SampleLease("ben", until),
    }
    # Only one's own is given back.
    leases.give_back("s1", "ben")
    assert leases.lend(["s1"], "ben") is None
    leases.give_back("s1", "ann")
    assert leases.lend(["s1"], "ben") == "s1"


def test_a_lease_is_renewed_by_asking_and_ends_after_ten_minutes(
    leases: SampleLeases, clock: Clock
) -> None:
    for _ in range(3):
        assert leases.lend(["s1"], "ann") == "s1"
        clock.wait(9)
    assert leases.lend(["s1"], "ben") is None
    clock.wait(1)
    assert leases.get_running() == {}
    assert leases.lend(["s1"], "ben") == "s1"
    clock.wait(-60 * 24)  # so the clock of that one was wrong
    assert leases.get_running() == {}
    assert leases.lend(["s1"], "ann") == "s1"


def test_no_sample_is_lent_twice_at_a_time(leases: SampleLeases) -> None:
    wanted = [f"s{number}" for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(lambda number: leases.lend(wanted, f"p{number}"), range(8)))
    assert sorted(map(str, given)) == wanted
