"""Processes that must not outlive the run that started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from echo_hf.engines.vllm_guard import end_guard, guard_processes
from tests.engines.vllm.questions import LONGEST_S, ended
from tests.stages_for_tests import ROOT

FORK = multiprocessing.get_context("fork")
# Starts a child that would sleep for ever, says its number, and sleeps as well.
RUN = """
import multiprocessing, time
from echo_hf.engines.vllm_guard import guard_processes
with guard_processes():
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(3600,))
    child.start()
    {inside}
print(child.pid, flush=True)
time.sleep(3600)
"""
# Killed while the model is loading: the guard has had time to notice the child.
EARLY = "time.sleep(0.8); print(child.pid, flush=True); time.sleep(3600)"


@pytest.fixture
def child() -> Iterator[BaseProcess]:
    process = FORK.Process(target=time.sleep, args=(3600,))
    yield process
    if process.pid is not None:
        process.kill()
        process.join()


SLOW_TERM = pytest.param(signal.SIGTERM, "pass", marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("how", "inside"), [(signal.SIGKILL, "pass"), (signal.SIGKILL, EARLY), SLOW_TERM]
)
def test_children_go_with_a_killed_run(how: signal.Signals, inside: str) -> None:
    command = [sys.executable, "-c", RUN.format(inside=inside)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        held = os.pidfd_open(int(run.stdout.readline()))
        run.send_signal(how)
        run.wait()
        assert ended(held)


def test_what_a_child_has_started_goes_as_well() -> None:
    """In a session of its own, where nothing else would end it."""
    start = "subprocess.run(['sleep', '3600'], start_new_session=True)"
    text = RUN.replace("target=time.sleep, args=(3600,)", f"target=lambda: {start}")
    text = text.replace("import multiprocessing, time", "import multiprocessing, subprocess, time")
    inside = "time.sleep(0.8); print(child.pid, flush=True)"
    command = [sys.executable, "-c", text.format(inside=inside)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        child = int(run.stdout.readline())
        below = Path(f"/proc/{child}/task/{child}/children").read_text().split()
        (held,) = (os.pidfd_open(int(number)) for number in below)
        run.kill()
        run.wait()
        assert ended(held)


def test_a_failed_start_leaves_nothing(child: BaseProcess) -> None:

    def fail() -> None:
        child.start()
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"), guard_processes():
        fail()
    child.join(LONGEST_S)
    assert child.exitcode == -signal.SIGKILL


def test_the_guard_ends_what_was_started_under_it(child: BaseProcess) -> None:
    with guard_processes() as guard:
        child.start()
    assert guard
    assert child.is_alive()
    end_guard(guard)
    child.join(LONGEST_S)
    assert (child.exitcode, guard.returncode) == (-signal.SIGKILL, 0)
