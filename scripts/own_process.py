"""Run a measure in a process of its own, and see how much memory it takes."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")


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
    before = peak = anonymous_megabytes()
    stopped = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not stopped.wait(0.005):
            peak = max(peak, anonymous_megabytes())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    result = step()
    stopped.set()
    watcher.join()
    sender.send((result, max(peak, anonymous_megabytes()) - before))


def anonymous_megabytes(process: int | str = "self") -> float:
    """What a process holds that no file could give back."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return float("nan")
