"""The log of events: what was added stays, whoever writes and whoever is killed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from echo_hf.apps.events import UNDO, Event, EventLog
from echo_hf.errors import RunError, StoreError

WRITER = Path(__file__).with_name("writing_process.py")
MORNING = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    """A log that does not exist yet; each event is a minute after the one before."""
    minutes = iter(range(10_000))
    return EventLog(
        tmp_path / "run" / "events.sqlite", lambda: MORNING + timedelta(minutes=next(minutes))
    )


def writing(log: EventLog, *arguments: str) -> subprocess.Popen[str]:
    """A process that writes into a log."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, str(WRITER), str(log.path), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def test_what_was_added_is_read_back(log: EventLog) -> None:
    """Every value, in the order of the events."""
    first = log.append("review", "s1", "ann", "edit", {"prompt": "größer\n\u202e 🙂", "n": [1]})
    second = log.append("review", "s1", "ben", "keep", base=first.id)
    assert log.events("review") == (first, second)
    assert first == Event(
        1772443800000,  # 2026-03-02 09:30 UTC in milliseconds
        "review",
        "s1",
        "ann",
        "edit",
        {"prompt": "größer\n\u202e 🙂", "n": [1]},
        None,
        MORNING,
    )
    assert (second.base, second.at) == (first.id, MORNING + timedelta(minutes=1))


def test_events_are_found_by_app_subject_and_person(log: EventLog) -> None:
    """Each filter alone, and together."""
    first, second, third, _ = (
        log.append(app, subject, person, "did")
        for app, subject, person in [
            ("rank", "s1", "ann"),
            ("rank", "s1", "ben"),
            ("rank", "s2", "ann"),
            ("review", "s1", "ann"),
        ]
    )
    found = [log.events("rank"), log.events("rank", "s1"), log.events("rank", person="ann")]
    assert found == [(first, second, third), (first, second), (first, third)]
    assert log.events("rank", "s1", "ann") == (first,)


def test_an_undo_names_what_it_takes_back(log: EventLog) -> None:
    """It is about the same sample of the same app."""
    done = log.append("rank", "s1", "ann", "rank")
    undone = log.undo(done.id, "ann")
    assert (undone.app, undone.subject) == ("rank", "s1")
    assert (undone.action, undone.base) == (UNDO, done.id)


@pytest.mark.parametrize(("later", "person"), [(0, "ben"), (6, "ann")])
def test_only_own_events_are_undone(log: EventLog, later: int, person: str) -> None:
    """Nobody takes back what another did, or what nobody did."""
    event = log.append("rank", "s1", "ann", "rank").id + later
    with pytest.raises(RunError, match=rf"^event {event} is none of '{person}'"):
        log.undo(event, person)
    assert len(log.events("rank")) == 1


def test_a_base_is_an_event(log: EventLog) -> None:
    """What a page saw must be there; nothing is added otherwise."""
    with pytest.raises(RunError, match="has no event 5"):
        log.append("rank", "s1", "ann", "rank", base=5)
    assert log.events("rank") == ()


def test_events_cannot_be_changed(log: EventLog) -> None:
    """Not even by another program that opens the file."""
    log.append("rank", "s1", "ann", "rank")
    with (
        sqlite3.connect(log.path) as other,
        pytest.raises(sqlite3.IntegrityError, match="never changed"),
    ):
        other.execute("update event set person = 'ben'")
    other.close()


def test_what_has_to_go_leaves_the_bytes_of_the_file(log: EventLog) -> None:
    """With all that was done about it; the rest stays."""
    edited = log.append("review", "s1", "ann", "edit", {"prompt": "confidential words"})
    log.append("review", "s2", "ann", "keep")
    log.undo(edited.id, "ann")
    assert log.forget({"s1", "unknown"}) == 2
    assert [one.subject for one in log.events("review")] == ["s2"]
    files = log.path.parent.glob("events.sqlite*")
    assert all(b"confidential" not in file.read_bytes() for file in files)


def test_processes_that_write_at_a_time_lose_nothing(log: EventLog) -> None:
    """Four real processes, 150 events each, a file that none of them finds."""
    people = ["ann", "ben", "cy", "dee"]
    processes = [writing(log, person, "150") for person in people]
    said = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    events = log.events("rank")
    assert len({event.id for event in events}) == 600
    for person, words in zip(people, said, strict=True):
        own = [event for event in events if event.person == person]
        assert [event.payload["number"] for event in own] == list(range(150))
        assert [str(event.id) for event in own] == words[::2]


@pytest.mark.parametrize("after", [1, 12, 40])
def test_a_killed_process_loses_nothing_that_it_said(log: EventLog, after: int) -> None:
    """SIGKILL while it writes: each number that was said is there, and the log goes on."""
    process = writing(log, "ann")
    assert process.stdout is not None
    said = [int(process.stdout.readline().split()[0]) for _ in range(after)]
    process.kill()
    rest = [int(line.split()[0]) for line in process.stdout if line.endswith("\n")]
    process.stdout.close()
    process.wait()
    there = log.events("rank")
    assert set(said + rest) <= {event.id for event in there}
    assert [event.payload["number"] for event in there] == list(range(len(there)))
    assert log.append("rank", "s1", "ben", "rank").id > there[-1].id


def test_a_log_in_place_of_a_lost_one_has_larger_numbers(log: EventLog) -> None:
    """Also one whose clock stands still, and one of which a copy was put back."""
    first = log.append("rank", "s1", "ann", "rank")
    for file in log.path.parent.glob("events.sqlite*"):
        file.unlink()
    second = log.append("rank", "s1", "ann", "rank")
    still = EventLog(log.path, lambda: MORNING)
    numbers = [first.id, second.id, *(still.append("rank", "s1", "a", "r").id for _ in range(2))]
    assert numbers[0] < numbers[1] < numbers[2] < numbers[3]


def test_a_clock_that_was_put_back_makes_no_smaller_number(log: EventLog) -> None:
    """Each number is larger than the last one, whatever the time."""
    log.append("rank", "s1", "ann", "rank")
    with sqlite3.connect(log.path) as other:
        other.execute(
            "insert into event select 9007199254740000, app, subject, person, action, "
            "payload, base, at from event"
        )
    other.close()
    assert log.append("rank", "s1", "ann", "rank").id == 9007199254740001


def test_a_log_that_was_cut_short_is_one_line(log: EventLog) -> None:
    """What it is and what to do; it stays as it was."""
    for number in range(200):
        log.append("rank", "s1", "ann", "rank", {"text": "x" * 100, "number": number})
    log.path.write_bytes(log.path.read_bytes()[:6000])
    with pytest.raises(StoreError, match="is not a readable log of events"):
        log.append("rank", "s1", "ann", "rank")
    assert log.path.stat().st_size == 6000
