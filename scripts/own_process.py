"""Run a measure in a process of its own, and see how much memory it and its forks take."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection
from operator import add
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

Result = TypeVar("Result")
INTERVAL = 0.02  # a look takes 0.2 ms, which the work that is measured waits for
LOOKS = 25  # of which one is at the forks as well, which takes longer


class Held(NamedTuple):
    """Megabytes of a process: all that is resident, and of that what no file could give back."""

    resident: float
    anonymous: float


def held(process: int | str = "self") -> Held:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    kilobytes = dict(line.split()[:2] for line in lines if line.startswith(("VmRSS", "RssAnon")))
    return Held(int(kilobytes["VmRSS:"]) / 1024, int(kilobytes["RssAnon:"]) / 1024)


def held_by_forks() -> Held:
    """What the forks of this process hold that is not this one's."""
    found = [0, 0]
    for file in Path("/proc/self/task").glob("*/children"):
        for number in file.read_text().split():
            with suppress(OSError, KeyError):  # it has just ended
                lines = Path(f"/proc/{number}/smaps_rollup").read_text().splitlines()
                kilobytes = dict(line.split()[:2] for line in lines[1:])
                clean, dirty = (int(kilobytes[f"Private_{of}:"]) for of in ("Clean", "Dirty"))
                found = [found[0] + clean + dirty, found[1] + dirty]
    return Held(*(one / 1024 for one in found))


class Peak:
    """The most that this process and its forks hold, looked at again and again by a thread."""

    def __init__(self) -> None:
        self._most = held()
        self._stopped = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def taken(self) -> Held:
        most, self._most = Held(*map(max, self._most, held())), held()
        return most

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._watcher.join()

    def _watch(self) -> None:
        forks, looks = Held(0, 0), count()
        while not self._stopped.wait(INTERVAL):
            if next(looks) % LOOKS == 0:
                forks = held_by_forks()
            self._most = Held(*map(max, self._most, map(add, held(), forks)))


def forked(step: Callable[[], Result]) -> tuple[Result, float]:
    """What a step returns, and the peak of the anonymous megabytes that it added to its process."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_watched, args=(step, sender))
    process.start()
    sender.close()
    try:
        result, megabytes = receiver.recv()
    finally:
        process.join()
    return result, megabytes


def _watched(step: Callable[[], Result], sender: Connection) -> None:
    before = held().anonymous
    with Peak() as peak:
        result = step()
        most = peak.taken().anonymous
    sender.send((result, most - before))
