"""One process at a time draws with a system, and none while samples are forgotten."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from echo_hf.errors import RunError
from echo_hf.systems.journal import Journal, locked, locked_all
from tests.systems.runs_for_tests import entry

HOLD = """
import sys
from pathlib import Path
from echo_hf.systems.journal import locked

with locked(Path(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    input()
"""


def test_another_process_is_one_line(tmp_path: Path) -> None:
    """The same system is refused, another one is not; when that process is killed, none is."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path), "mine"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(RunError, match=r"another process .* 'mine' .*--systems") as raised:
            locked(tmp_path, "mine").__enter__()
        assert "\n" not in str(raised.value)
        with locked(tmp_path, "theirs"):
            pass
        with pytest.raises(RunError, match="'mine'"), locked_all(tmp_path, ["mine"]):
            pass
        other.kill()
    with locked(tmp_path, "mine"):
        pass


def test_all_are_those_that_have_drawn_and_those_that_may(tmp_path: Path) -> None:
    """A system with a journal is kept out although nobody names it; where there is none, nobody."""
    with locked_all(tmp_path):
        assert not (tmp_path / "outputs").exists()
    Journal(tmp_path, "before").add(entry(0))
    with locked_all(tmp_path, ["next"]):
        for name in ("before", "next"):
            with pytest.raises(RunError, match=name), locked(tmp_path, name):
                pass
    with locked(tmp_path, "before"), locked(tmp_path, "next"):
        pass
