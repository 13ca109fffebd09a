"""Run the blocks of a page of Markdown as a reader would: as they stand, in order, in a folder."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SHELL = ("sh", "bash")
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}) *(?P<language>\w*)")
SKIPPED = re.compile(r"<!-- not run: (.*) -->")
# Why a block may be left out; what it tells is checked in another way.
REASONS = ("installs",)
LONGEST_S = 600


@dataclass(frozen=True)
class Block:
    """A block of a page; a comment before it may say why it is not run."""

    line: int
    language: str
    text: str
    skipped: str | None = None


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and a home without anything in it."""

    bin: Path
    home: Path

    def run(self, command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
        """Runs a command there, with no checkout on its path and without the network's Hub."""
        kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        self.home.mkdir(exist_ok=True)
        return subprocess.run(
            [*command],
            cwd=folder,
            env={
                **kept,
                "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(self.home),
                "HF_HUB_OFFLINE": "1",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )

    def quickstart(self, folder: Path) -> str:
        """Runs the quickstart in a folder; what it printed."""
        told = self.run(["echo-hf", "quickstart"], folder)
        assert told.returncode == 0, told.stdout + told.stderr
        return told.stdout


def blocks(page: str, *languages: str) -> list[Block]:
    """The blocks in these languages; without any, those that a reader would run."""
    return [one for one in _blocks(page) if one.language in (languages or ("python", *SHELL))]


def _blocks(page: str) -> Iterator[Block]:
    lines = page.splitlines()
    at = 0
    while at < len(lines):
        opened = FENCE.match(lines[at])
        if opened is None:
            at += 1
            continue
        said = SKIPPED.search(lines[at - 1]) if at else None
        begin = at + 1
        end = next(
            number
            for number in range(begin, len(lines))
            if lines[number].strip() == opened["fence"]
        )
        text = "\n".join(line.removeprefix(opened["indent"]) for line in lines[begin:end])
        yield Block(begin, opened["language"], text, said[1] if said else None)
        at = end + 1


def command_of(block: Block) -> list[str]:
    """How a block is run: each in a process of its own."""
    if block.language == "python":
        return ["python", "-c", block.text]
    return ["bash", "-euo", "pipefail", "-c", block.text]


def run_page(page: str, environment: Environment, folder: Path) -> int:
    """Runs every block of a page in a folder; the number of those that ran."""
    count = 0
    for block in blocks(page):
        if block.skipped is not None:
            assert block.skipped in REASONS, f"line {block.line}: no reason of {REASONS}"
            continue
        told = environment.run(command_of(block), folder)
        shown = (
            f"line {block.line}, exit {told.returncode}\n{block.text}\n{told.stdout}{told.stderr}"
        )
        assert told.returncode == 0, shown
        count += 1
    return count
