"""Configs of workers that tests run, and what is alive of them."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path
from typing import Any

from echo_hf.config.systems import SystemConfig
from echo_hf.engines.base import ImageRef
from echo_hf.systems.base import Task
from echo_hf.systems.command import CommandSystem

MISBEHAVING = Path(__file__).with_name("misbehaving.py")
LONG_S = 60.0
# Long enough for a busy machine to answer, short enough to wait for.
SHORT_S = 2.0


def command_config(
    *, timeout_s: float = LONG_S, script: Path = MISBEHAVING, seed: int = 7, **parameters: Any
) -> SystemConfig:
    """A system whose worker is a script that this Python runs."""
    return SystemConfig(
        name="lumen",
        adapter="command",
        developer="Northlight",
        status="current",
        seed=seed,
        limits={"timeout_s": timeout_s},
        parameters={"command": [sys.executable, "-S", str(script)], **parameters},
    )


def command_system(**options: Any) -> CommandSystem:
    """The system of `command_config`."""
    return CommandSystem(command_config(**options))


def task_of(prompt: str, *inputs: Path, sample_id: str = "a1") -> Task:
    """A task with images that lie in files."""
    refs = tuple(ImageRef(hashlib.sha256(path.read_bytes()).hexdigest(), path) for path in inputs)
    return Task(sample_id, "0" * 64, "text_to_image", prompt, refs)


def color_of(prompt: str, *inputs: bytes, seed: int = 7) -> tuple[int, ...]:
    """The color that the worker paints for a prompt."""
    return tuple(hashlib.sha256(prompt.encode() + b"%d" % seed + b"".join(inputs)).digest()[:3])


def is_alive(number: int) -> bool:
    """Whether a process runs; one that has ended and waits to be noticed does not."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return not Path("/proc/self").exists()
    return state != "Z"


def ends(number: int) -> bool:
    """Whether a process ends soon: a signal takes a moment on a busy machine."""
    until = time.monotonic() + LONG_S
    while is_alive(number) and time.monotonic() < until:
        time.sleep(0.02)
    return not is_alive(number)
