"""The package as a user gets it: built, installed into a fresh environment, its quickstart run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.package.blocks import Environment
from tests.stages_for_tests import ROOT

INSTALL = ("-m", "pip", "install", "--quiet")


class Quickstart(NamedTuple):
    folder: Path
    printed: str


def build(folder: Path, *options: str) -> Path:
    """Builds the package of this checkout; the wheel."""
    checked("-m", "build", "--no-isolation", *options, "--outdir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    return wheel


def empty_environment(folder: Path) -> Environment:
    """A virtual environment with nothing in it, and a home of its own."""
    checked("-m", "venv", str(folder / "venv"))
    return Environment(folder / "venv" / "bin", folder / "home")


def checked(*arguments: str, python: Path | str = sys.executable) -> None:
    done = subprocess.run([python, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that was built from the sdist, which lies beside it."""
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A fresh virtual environment with the wheel and what it needs, and a home of its own."""
    environment = empty_environment(tmp_path_factory.mktemp("installed"))
    locked = ("--constraint", str(ROOT / "locks" / "core.txt"))
    checked(*INSTALL, *locked, str(wheel), python=environment.bin / "python")
    return environment


@pytest.fixture(scope="session")
def quickstart(installed: Environment, tmp_path_factory: pytest.TempPathFactory) -> Quickstart:
    """The quickstart, run in a folder that was empty."""
    folder = tmp_path_factory.mktemp("quickstart")
    return Quickstart(folder, installed.quickstart(folder))
