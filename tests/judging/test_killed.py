"""A judge that is killed at work: nothing is lost, nothing is asked twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.judging.judges_for_tests import SAMPLES, SYSTEMS, config_of, drawn, rows_of
from tests.judging.run_for_tests import root
from tests.stages_for_tests import ROOT


def started(folder: Path, seconds: float) -> subprocess.Popen[str]:
    """A process that rates the outputs of a run."""
    command = [sys.executable, "-m", "tests.judging.slow_judge", str(folder), str(seconds)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("before", [1, 7])
def test_a_killed_judge_goes_on_where_it_was(tmp_path: Path, before: int) -> None:
    """After kill -9 the same call gives the table of a whole run; one question is put again."""
    for name in ("killed", "whole"):
        (tmp_path / name).mkdir()
        drawn(tmp_path / name)
        config_of(tmp_path / name)

    with started(tmp_path / "killed", 0.2) as process:
        assert process.stdout is not None
        first = [process.stdout.readline().strip() for _ in range(before)]
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not (root(tmp_path / "killed") / "ratings.parquet").exists()

    second = started(tmp_path / "killed", 0).communicate()[0].split()
    whole = started(tmp_path / "whole", 0).communicate()[0].split()
    assert len(whole) == len(SAMPLES) * len(SYSTEMS)
    # The last one was under way when the process died; all before it were kept.
    assert second == [one for one in whole if one not in first[:-1]]
    assert rows_of(tmp_path / "killed") == rows_of(tmp_path / "whole")
