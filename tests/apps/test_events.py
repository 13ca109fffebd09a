"""The log of events: what was added stays, whoever writes and whoever is killed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from echo_hf.apps.events import UNDO, Event, EventLog
from echo_hf.errors import RunError

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
        1,
        "review",
        "s1",
        "ann",
        "edit",
        {"prompt": "größer\n\u202e 🙂", "n": [1]},
        None,
        MORNING,
    )
    assert (second.base, second.at) == (1, MORNING + timedelta(minutes=1))


def test_events_are_found_by_app_subject_and_person(log: EventLog) -> None:
    """Each filter alone, and together."""
    for app, subject, person in [
        ("rank", "s1", "ann"),
        ("rank", "s1", "ben"),
        ("rank", "s2", "ann"),
        ("review", "s1", "ann"),
    ]:
        log.append(app, subject, person, "did")
    found = [log.events("rank"), log.events("rank", "s1"), log.events("rank", person="ann")]
    assert [[one.id for one in some] for some in found] == [[1, 2, 3], [1, 2], [1, 3]]
    assert [one.id for one in log.events("rank", "s1", "ann")] == [1]


def test_an_undo_names_what_it_takes_back(log: EventLog) -> None:
    """It is about the same sample of the same app."""
    log.append("rank", "s1", "ann", "rank")
    undone = log.undo(1, "ann")
    assert (undone.app, undone.subject, undone.action, undone.base) == ("rank", "s1", UNDO, 1)


@pytest.mark.parametrize(("event", "person"), [(1, "ben"), (7, "ann")])
def test_only_own_events_are_undone(log: EventLog, event: int, person: str) -> None:
    """Nobody takes back what another did, or what nobody did."""
    log.append("rank", "s1", "ann", "rank")
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
    log.append("review", "s1", "ann", "edit", {"prompt": "confidential words"})
    log.append("review", "s2", "ann", "keep")
    log.undo(1, "ann")
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
    assert [event.id for event in events] == list(range(1, 601))
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
    there = [event.id for event in log.events("rank")]
    assert set(said + rest) <= set(there)
    assert there == list(range(1, len(there) + 1))
    assert log.append("rank", "s1", "ben", "rank").id == len(there) + 1


def of_another_version(path: Path) -> None:
    """A log as a later version might write it."""
    EventLog(path).append("rank", "s1", "ann", "rank")
    with sqlite3.connect(path) as connection:
        connection.execute("pragma user_version = 9")
    connection.close()


def of_another_program(path: Path) -> None:
    """A database that is no log, with a version of its own."""
    with sqlite3.connect(path) as connection:
        connection.execute("create table event (id integer)")
        connection.execute("pragma user_version = 1")
    connection.close()


def of_a_program_without_version(path: Path) -> None:
    """A database that is no log."""
    with sqlite3.connect(path) as connection:
        connection.execute("create table mine (id integer)")
    connection.close()


def of_text(path: Path) -> None:
    """No database."""
    path.write_text("ranks, by hand\n" * 100, "utf-8")


def cut_short(path: Path) -> None:
    """A log of which the end is missing."""
    log = EventLog(path)
    for number in range(200):
        log.append("rank", "s1", "ann", "rank", {"text": "x" * 100, "number": number})
    path.write_bytes(path.read_bytes()[:6000])


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (of_another_version, "version 9, this echo-hf reads 1: upgrade"),
        (of_another_program, "another program's database"),
        (of_a_program_without_version, "another program's database"),
        (of_text, "no readable log of events"),
        (cut_short, "no readable log of events"),
    ],
)
def test_a_file_that_is_no_log_is_one_line(tmp_path: Path, made: Any, said: str) -> None:
    """What it is and what to do; it stays as it was."""
    path = tmp_path / "events.sqlite"
    made(path)
    before = path.read_bytes()
    with pytest.raises(RunError, match=said) as caught:
        EventLog(path).append("rank", "s1", "ann", "rank")
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    """Here it is a file."""
    (tmp_path / "run").write_text("", "utf-8")
    with pytest.raises(RunError, match="cannot use the log of events"):
        EventLog(tmp_path / "run" / "events.sqlite").append("rank", "s1", "ann", "rank")
