"""What worker processes do in tests; it imports little, as each of them has to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from echo_hf._infra.worker_pool import VISIBLE_DEVICES, ItemStreams
from echo_hf.errors import EngineError, GenerationError


def work(folder: Path, runs: ItemStreams[str]) -> Iterator[tuple[int, Any]]:
    """Notes each item that it begins; some items say what is to happen."""
    for number, item in chain.from_iterable(runs):
        with (folder / str(os.getpid())).open("a") as notes:
            notes.write(f"{item}\n")
        word, _, rest = item.partition(" ")
        if word == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "once" and not (folder / "died").exists():
            (folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "sleep":
            time.sleep(float(rest))
        if word == "child":
            child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
            (folder / "child").write_text(str(child.pid))
            time.sleep(600)
        if word == "refuse":
            yield number, GenerationError(rest)
        elif word == "stop":
            raise EngineError(rest)
        else:
            yield number, (item.upper(), os.environ.get(VISIBLE_DEVICES), os.getpid())


def windows(runs: ItemStreams[str]) -> Iterator[tuple[int, Any]]:
    """Says of each item how many came in its run."""
    for run in runs:
        window = [(number, item) for number, item in run if time.sleep(0.05) is None]
        for number, item in window:
            yield number, (item, len(window), os.getpid())


def refuses(error: Exception, _: ItemStreams[str]) -> Iterator[tuple[int, Any]]:
    raise error
    yield
