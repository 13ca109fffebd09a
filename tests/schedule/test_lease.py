"""Of several turns on one state one works; the others say which, and none of its work is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from echo_hf.errors import RunError
from echo_hf.schedule.lease import RunLease, get_process_namespace
from echo_hf.schedule.turn import COUNT_FILE, SyncedRun
from tests.errors_for_tests import said_by
from tests.local_hub import LocalHub
from tests.schedule.conftest import NAME, REPO

ROOT = Path(__file__).parents[2]
HOLDS = """
import sys, time
from pathlib import Path
from echo_hf.errors import RunError
from echo_hf.schedule.lease import RunLease
try:
    with RunLease(Path(sys.argv[1])).hold():
        print("works", flush=True)
        time.sleep(float(sys.argv[2]))
except RunError as error:
    print(error)
"""


def holding(path: Path, seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path), str(seconds)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def take(path: Path) -> None:
    with RunLease(path).hold():
        pass


def told(path: Path, **changed: Any) -> None:
    """Writes a lease of another machine."""
    holder = {
        "token": "ab",
        "machine": "north",
        "process": 7,
        "processes": "another boot pid:[1]",
        "until": (datetime.now(UTC) + timedelta(minutes=4)).isoformat(),
    }
    path.write_text(json.dumps({**holder, **changed}), "utf-8")


def test_of_many_that_begin_at_once_a_single_one_works(tmp_path: Path) -> None:
    path = tmp_path / ".run.lease"
    processes = [holding(path, 5.0) for _ in range(4)]
    said = [process.communicate(timeout=100)[0] for process in processes]
    assert sorted(one.startswith("works") for one in said) == [False] * 3 + [True], said
    assert all("works on this run until" in one for one in said if not one.startswith("works"))
    assert list(tmp_path.iterdir()) == []


def test_a_lease_is_renewed_while_it_is_held(tmp_path: Path) -> None:
    lease = RunLease(tmp_path / ".run.lease", lease_seconds=2.0)
    with lease.hold():
        time.sleep(4.0)
        assert datetime.fromisoformat(json.loads(lease.path.read_text())["until"]) > datetime.now(
            UTC
        )
        with pytest.raises(RunError, match="works on this run"):
            take(lease.path)
    assert not lease.path.exists()


def test_a_process_that_was_killed_here_holds_nothing_up(tmp_path: Path) -> None:
    if get_process_namespace() is None:
        pytest.skip("this system does not name its processes")
    path = tmp_path / ".run.lease"
    process = holding(path, 600.0)
    assert process.stdout is not None
    assert process.stdout.readline() == "works\n"
    process.kill()
    process.communicate()
    assert path.exists()
    take(path)


def test_a_lease_of_another_machine_holds_until_it_ends(tmp_path: Path) -> None:
    path = tmp_path / ".run.lease"
    told(path)
    said = said_by(RunError, lambda: take(path))
    assert "a turn on 'north' (process 7) works on this run until" in said
    told(path, until="2026-01-02T03:04:05+00:00")
    take(path)


def test_who_lost_the_lease_keeps_no_more(tmp_path: Path) -> None:
    """A machine that stood still for long goes on as another one works: its copy is the older."""
    (tmp_path / "mount").mkdir()
    slow = SyncedRun(tmp_path / "here" / "run", tmp_path / "mount" / "run")
    slow.folder.mkdir(parents=True)
    (slow.folder / "answers").write_text("first")
    with slow.hold_lease():
        slow.push()
        assert slow.lease is not None
        told(slow.lease.path)
        (slow.folder / "answers").write_text("too late")
        with pytest.raises(RunError, match="a turn on 'north'"):
            slow.push()
    assert slow.place is not None
    assert (slow.place / "answers").read_text() == "first"
    assert json.loads((slow.place / COUNT_FILE).read_text()) == {"kept": 1}
    assert slow.lease.path.exists()  # it is north's


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"token": "ab"}',
        '{"token": "ab", "machine": "n", "process": -1, "until": "2026-01-02T03:04:05Z"}',
        '{"token": "ab", "machine": "n", "process": 1, "until": "2026-01-02T03:04:05"}',
        '{"token": "ab", "machine": "n", "process": 1, "until": 1e999}',
        "[" * 100_000,
        "x" * 5000,
    ],
)
def test_a_lease_that_is_none_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / ".run.lease"
    path.write_text(text, "utf-8")
    said = said_by(RunError, lambda: take(path))
    assert "does not say which turn works on this run" in said
    assert path.read_text("utf-8") == text


def test_a_lease_is_no_link_and_no_pipe(tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    mount.mkdir()
    path, other = mount / ".run.lease", tmp_path / "other"
    other.write_text("mine")
    path.symlink_to(other)
    with pytest.raises(RunError, match="leads out of its folder"):
        take(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(RunError, match="not a regular file"):
        take(path)
    assert other.read_text() == "mine"


def started(hub: LocalHub, config: Path, machine: Path, state: Path) -> subprocess.Popen[str]:
    machine.mkdir(exist_ok=True)
    places = ["--state", str(state), "--runs", str(machine / "runs")]
    return subprocess.Popen(
        [sys.executable, "-m", "echo_hf", "schedule", str(config), "--once", *places],
        cwd=machine,
        env=hub.environment(machine / "home", PYTHONPATH=str(ROOT), COLUMNS="300"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_of_two_turns_on_one_state_one_works_and_the_other_says_which(
    hub: LocalHub, config: Path, tmp_path: Path
) -> None:
    state = tmp_path / "mount"
    state.mkdir()
    machines = {name: tmp_path / name for name in ("one", "other")}
    turns = {name: started(hub, config, at, state) for name, at in machines.items()}
    errors = {name: process.communicate(timeout=200)[1] for name, process in turns.items()}
    codes = {process.returncode: name for name, process in turns.items()}
    assert sorted(codes) == [0, 2], errors
    refused = " ".join(errors[codes[2]].split())
    assert f"(process {turns[codes[0]].pid}) works on this run until" in refused
    assert not (machines[codes[2]] / "runs").exists()
    assert hub.repositories[REPO].open_pulls == {1: f"Publish {NAME}"}
    assert [path.name for path in state.iterdir()] == [NAME]

    later = started(hub, config, machines[codes[2]], state)
    out, said = later.communicate(timeout=200)
    assert later.returncode == 0, said
    assert "files fetched" in out + said
    assert "0 calls made" in out + said
    assert hub.repositories[REPO].open_pulls == {1: f"Publish {NAME}"}


def test_a_turn_that_was_killed_is_gone_on_with_at_once(
    hub: LocalHub, config: Path, tmp_path: Path
) -> None:
    if get_process_namespace() is None:
        pytest.skip("this system does not name its processes")
    state = tmp_path / "mount"
    state.mkdir()
    killed = started(hub, config, tmp_path / "one", state)
    until = time.monotonic() + 100
    while not (state / NAME / COUNT_FILE).exists() and time.monotonic() < until:
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert (state / f".{NAME}.lease").exists()
    later = started(hub, config, tmp_path / "other", state)
    out, said = later.communicate(timeout=200)
    assert later.returncode == 0, out + said
    assert [path.name for path in state.iterdir()] == [NAME]
