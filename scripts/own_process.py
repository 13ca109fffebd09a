"""Run a measure in a process of its own, and see how much memory it takes."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

Result = TypeVar("Result")
INTERVAL = 0.005


class Held(NamedTuple):
    """Megabytes of a process: all that is resident, and of that what no file could give back."""

    resident: float
    anonymous: float


def held(process: int | str = "self") -> Held:
    """What a process holds now."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    kilobytes = dict(line.split()[:2] for line in lines if line.startswith(("VmRSS", "RssAnon")))
    return Held(int(kilobytes["VmRSS:"]) / 1024, int(kilobytes["RssAnon:"]) / 1024)


class Peak:
    """The most that this process holds, looked at again and again by a thread."""

    def __init__(self) -> None:
        self._most = held()
        self._stopped = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def taken(self) -> Held:
        """The most since the last call."""
        most, self._most = Held(*map(max, self._most, held())), held()
        return most

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._stopped.wait(INTERVAL):
            self._most = Held(*map(max, self._most, held()))


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
