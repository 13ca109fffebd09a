"""End vLLM's worker processes when the process that started them is gone."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

LOOK_INTERVAL_SECONDS = 0.2
MAX_MESSAGE_BYTES = 65_536
DONE = b"done"

GuardProcess = subprocess.Popen[bytes]


@contextmanager
def guard_processes() -> Iterator[GuardProcess | None]:
    """Guard the processes that are started inside the context, from their start."""
    if not hasattr(os, "pidfd_open"):
        yield None
        return
    # In a session of its own: Ctrl-C is for the run, which ends what it started itself.
    command = [sys.executable, "-I", __file__, str(os.getpid())]
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603
    guard_input: Any = guard.stdin
    reported, loaded = _find_children(), Event()

    def report_children() -> None:
        is_loaded = False
        while not is_loaded:
            is_loaded = loaded.wait(LOOK_INTERVAL_SECONDS)
            for number in _find_children() - reported:
                reported.add(number)
                with suppress(OSError):  # the guard is gone
                    guard_input.write(b"%d\n" % number)
                    guard_input.flush()

    reporter = Thread(target=report_children, daemon=True)
    reporter.start()
    try:
        try:
            yield guard
        finally:
            loaded.set()
            reporter.join()
    except BaseException:
        end_guard(guard)
        raise


def end_guard(guard: GuardProcess) -> None:
    guard.communicate(DONE)


def watch_parent(parent: int, lines: int) -> None:
    """Wait until the parent is gone or done, then kill its children if it is gone."""
    handles: list[int] = []
    parent_handles = list(_open(parent))  # empty if it is gone before this program has begun
    is_gone = is_done = False
    while not (is_gone or is_done):
        ready, _, _ = select.select([lines, *parent_handles], [], [], None if parent_handles else 0)
        is_gone = not parent_handles or parent_handles[0] in ready
        if lines in ready:
            words = os.read(lines, MAX_MESSAGE_BYTES).split()
            is_done = DONE in words or not words
            handles += [handle for word in words if word != DONE for handle in _open(int(word))]
    for handle in handles:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)


def _open(number: int) -> Iterator[int]:
    # Held like this, a process that ended in time is not mistaken for who gets its number next.
    with suppress(ProcessLookupError):
        yield os.pidfd_open(number)


def _find_children() -> set[int]:
    """Return the processes started by this one for the model, with their descendants."""
    children = {child.pid for child in multiprocessing.active_children() if child.pid is not None}
    parents: dict[int, int] = {}
    for stat_file in Path("/proc").glob("[0-9]*/stat") if children else ():
        with suppress(OSError):  # it has ended
            parent_pid = stat_file.read_text().rpartition(")")[2].split()[1]
            parents[int(stat_file.parent.name)] = int(parent_pid)
    while descendants := {pid for pid, parent in parents.items() if parent in children} - children:
        children |= descendants
    return children


if __name__ == "__main__":
    watch_parent(int(sys.argv[1]), sys.stdin.fileno())
