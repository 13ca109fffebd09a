"""Run the blocks of a page of Markdown as a reader would: as they stand, in order, in a folder."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.markdown_for_tests import tokens

# Each is run in a process of its own.
RUN_BY = {
    "python": ("python", "-c"),
    "sh": ("bash", "-euo", "pipefail", "-c"),
    "bash": ("bash", "-euo", "pipefail", "-c"),
}
SKIPPED = re.compile(r"<!-- not run: (.*) -->")
# Why a block may be left out; what it tells is checked in another way.
REASONS = ("installs",)
LONGEST_S = 600


class Block(NamedTuple):
    """A block of a page; a comment before it may say why it is not run."""

    line: int
    language: str
    text: str
    skipped: str | None


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and a home without anything in it."""

    bin: Path
    home: Path

    def run(
        self, command: Sequence[str], folder: Path, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command there, with no checkout on its path and without the network's Hub."""
        kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        self.home.mkdir(exist_ok=True)
        return subprocess.run(
            [*command],
            cwd=folder,
            env={**kept, "PATH": path, "HOME": str(self.home), "HF_HUB_OFFLINE": "1"} | more,
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
    found, before = list[Block](), ""
    for token in tokens(page):
        if token.type == "fence" and token.info in (languages or RUN_BY):
            said, first = SKIPPED.search(before), (token.map or [0])[0]
            text = token.content.removesuffix("\n")
            found.append(Block(first + 1, token.info, text, said and said[1]))
        before = token.content if token.type == "html_block" else ""
    return found


def run_page(page: str, environment: Environment, folder: Path) -> int:
    """Runs every block of a page in a folder; the number of those that ran."""
    count = 0
    for line, language, text, skipped in blocks(page):
        if skipped is not None:
            assert skipped in REASONS, f"line {line}: no reason of {REASONS}"
            continue
        told = environment.run([*RUN_BY[language], text], folder)
        shown = f"line {line}, exit {told.returncode}\n{text}\n{told.stdout}{told.stderr}"
        assert told.returncode == 0, shown
        count += 1
    return count
