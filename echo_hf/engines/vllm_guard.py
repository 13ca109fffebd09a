"""End the processes that vLLM computes in when the one that started them is gone."""

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

LOOK_EVERY_S = 0.2
MOST_BYTES = 65_536
DONE = b"done"

Guard = subprocess.Popen[bytes]


@contextmanager
def children_guarded() -> Iterator[Guard | None]:
    """Guards the processes that are started inside the context, from their start."""
    if not hasattr(os, "pidfd_open"):
        yield None
        return
    # In a session of its own: Ctrl-C is for the run, which ends what it started itself.
    command = [sys.executable, "-I", __file__, str(os.getpid())]
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603
    to: Any = guard.stdin
    known, loaded = _children(), Event()

    def tell() -> None:
        ended = False
        while not ended:
            ended = loaded.wait(LOOK_EVERY_S)
            for number in _children() - known:
                known.add(number)
                with suppress(OSError):  # the guard is gone
                    to.write(b"%d\n" % number)
                    to.flush()

    telling = Thread(target=tell, daemon=True)
    telling.start()
    try:
        try:
            yield guard
        finally:
            loaded.set()
            telling.join()
    except BaseException:
        end(guard)
        raise


def end(guard: Guard) -> None:
    guard.communicate(DONE)


def watch(parent: int, lines: int) -> None:
    """Waits until the parent is gone or done, then kills."""
    held: list[int] = []
    alive = list(_held(parent))  # empty if it is gone before this program has begun
    gone = done = False
    while not (gone or done):
        ready, _, _ = select.select([lines, *alive], [], [], None if alive else 0)
        gone = not alive or alive[0] in ready
        if lines in ready:
            said = os.read(lines, MOST_BYTES).split()
            done = DONE in said or not said
            held += [one for word in said if word != DONE for one in _held(int(word))]
    for process in held:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGKILL)


def _held(number: int) -> Iterator[int]:
    # Held like this, a process that ended in time is not mistaken for who gets its number next.
    with suppress(ProcessLookupError):
        yield os.pidfd_open(number)


def _children() -> set[int]:
    """The processes that this one has started for the model, and those that they have started."""
    found = {child.pid for child in multiprocessing.active_children() if child.pid is not None}
    parents: dict[int, int] = {}
    for process in Path("/proc").glob("[0-9]*/stat") if found else ():
        with suppress(OSError):  # it has ended
            above = process.read_text().rpartition(")")[2].split()[1]
            parents[int(process.parent.name)] = int(above)
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return found


if __name__ == "__main__":
    watch(int(sys.argv[1]), sys.stdin.fileno())
