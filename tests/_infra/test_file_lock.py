"""One process at a time holds a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from echo_hf._infra.file_lock import held
from echo_hf.errors import ReviewError, RunError
from tests.stages_for_tests import ROOT


def test_who_comes_second_is_told_what_the_first_is_at(tmp_path: Path) -> None:
    """In the words of the caller; afterwards the file is free."""
    place, busy = tmp_path / "lock", ReviewError("somebody decides")
    for _ in range(2):
        with held(place, busy), pytest.raises(ReviewError, match="decides"), held(place, busy):
            pass


def test_a_place_that_cannot_be_locked_is_named(tmp_path: Path) -> None:
    """Such as one below a file."""
    (tmp_path / "file").write_text("x")
    place = tmp_path / "file" / "lock"
    with (
        pytest.raises(RunError, match=re.escape(f"cannot lock {str(place)!r} (")),
        held(place, RunError("busy")),
    ):
        pass


def test_nothing_else_takes_locks() -> None:
    """Else a file system without locks is told without the name of the file."""
    files = (ROOT / "echo_hf").rglob("*.py")
    taking = [file.name for file in files if "import FileLock" in file.read_text("utf-8")]
    assert taking == ["file_lock.py"]
