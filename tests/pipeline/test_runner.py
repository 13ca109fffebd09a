"""Stages in several processes of one machine: the rows of one process, whatever becomes of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import echo_hf
from echo_hf.config.loading import parse_config
from echo_hf.config.sections import RunnerOptions
from echo_hf.errors import RunError, StageError
from echo_hf.pipeline import runner as runners
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.progress import NullProgress, ProgressListener
from echo_hf.pipeline.runner import LOCAL, LocalRunner, make_runner
from echo_hf.pipeline.stage_runner import run_stage
from tests.pipeline.conftest import tables
from tests.stages_for_tests import ROOT, Echo, Guess, Scripted, posts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has several processes")
SIZE = 16
TWO = LocalRunner(2, least_rows=0)
LONGEST_S = 30.0


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "BATCH_ROWS", SIZE)


class Told(ProgressListener):
    def __init__(self) -> None:
        self.said = list[tuple[str, int, int | None]]()

    def report_progress(
        self, part: str, done: int, stats: object, total: int | None = None
    ) -> None:
        del stats
        self.said.append((part, done, total))


@dataclass(frozen=True)
class Troubled(Echo):
    """Ends where a text says so, unless it is called in this process."""

    here: int = 0

    def __call__(self, table: pa.Table) -> pa.Table:
        words = {word for text in table["text"].to_pylist() for word in text.split()}
        if os.getpid() != self.here and "die" in words:
            os.kill(os.getpid(), signal.SIGKILL)
        if "fail" in words:
            raise StageError("no text may say 'fail'")
        return super().__call__(table)


@pytest.mark.parametrize(
    "engine",
    [
        {"kind": "recorded", "source": "quickstart"},
        pytest.param({"kind": "rules"}, marks=pytest.mark.slow),
    ],
)
def test_a_build_is_the_same_byte_for_byte(
    engine: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = {"name": "Lumen Image", "developer": "Northlight", "released": "2026-03-02"}
    data = {"name": "run", "target": target, "posts": [{"source": "quickstart"}]}
    config, told = parse_config({**data, "engines": {"reader": engine}}, "here"), Told()
    first, watch, _ = LocalRunner.__init__.__defaults__ or ()
    monkeypatch.setattr(LocalRunner.__init__, "__defaults__", (first, watch, 0))
    for number in (1, 3):
        own = config.model_copy(update={"runner": RunnerOptions(processes=number)})
        echo_hf.build(own, runs=tmp_path / str(number), watch=told if number > 1 else None)
    assert tables(tmp_path / "1" / "run") == tables(tmp_path / "3" / "run")
    assert {what for what, *_ in told.said} >= {"collect", "extract", "privacy"}


def test_answers_are_read_from_the_store_in_each_process(store: Store, tmp_path: Path) -> None:
    rows = posts(*(f"{'error' if at % 9 == 7 else 'colour'} x{at}" for at in range(5 * SIZE + 3)))
    told = Told()
    made = [
        run_stage(Guess(), rows, engine=Scripted(), store=store, cache_dir=folder, runner=runner)
        for folder, runner in ((tmp_path / "1", LOCAL), (tmp_path / "2", replace(TWO, watch=told)))
    ]
    for name in ("dataset", "rejects", "quarantine", "notices"):
        one, two = (getattr(result, name) for result in made)
        assert one[:] == two[:]
        assert one._fingerprint == two._fingerprint
    ends = [min(at + SIZE, len(rows)) for at in range(0, len(rows), SIZE)]
    assert told.said == [("guess", end, len(rows)) for end in ends]


def test_a_store_in_memory_is_read_here() -> None:
    rows, store = posts("colour x1", "colour x2"), Store(":memory:")
    result = run_stage(Guess(), rows, engine=Scripted(), store=store, runner=TWO)
    assert result.stats.kept == 2


def test_an_error_of_a_stage_comes_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(StageError, match=r"^no text may say 'fail'$"):
        run_stage(Troubled(), posts("a", "fail"), cache_dir=tmp_path, runner=TWO)
    assert not list(tmp_path.iterdir())


def test_a_killed_process_is_an_error_and_the_same_call_goes_on(tmp_path: Path) -> None:
    stage, rows = Troubled(here=os.getpid()), posts(*"ab" * SIZE, "die", *"cd" * SIZE)
    with pytest.raises(RunError, match=r"^stage 'echo': a process was killed .* `processes: 1`"):
        run_stage(stage, rows, cache_dir=tmp_path, runner=TWO)
    assert not list(tmp_path.iterdir())
    assert run_stage(stage, rows, cache_dir=tmp_path, runner=LOCAL).stats.kept == len(rows)


SLOW = """
import os, time
from echo_hf.pipeline.runner import LocalRunner
from echo_hf.pipeline.stage_runner import run_stage
from tests.stages_for_tests import Echo, posts

class Slow(Echo):
    def __call__(self, table):
        os.write(1, f"{os.getpid()}\\n".encode())  # whole: two write at the same time
        time.sleep(60)

run_stage(Slow(), posts(*"a" * 5000), runner=LocalRunner(2, least_rows=0))
"""


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_processes_end_with_the_run(number: signal.Signals) -> None:
    """A script without `if __name__ == "__main__":`, which they do not run again."""
    command = [sys.executable, "-c", SLOW]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        found = {int(run.stdout.readline()) for _ in range(2)}
        assert len(found) == 2
        assert run.pid not in found
        run.send_signal(number)
        run.wait(LONGEST_S)
    until = time.monotonic() + LONGEST_S
    while any(map(is_alive, found)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(is_alive, found))


def is_alive(process: int) -> bool:
    file = Path(f"/proc/{process}/stat")
    return file.exists() and file.read_text().rpartition(")")[2].split()[0] != "Z"


def test_there_are_as_many_as_are_asked_for_or_as_cores() -> None:
    def count(options: RunnerOptions) -> Any:
        return getattr(make_runner(options, Path(), NullProgress()), "processes", None)

    assert count(RunnerOptions(processes=5)) == 5
    assert count(RunnerOptions()) == min(len(os.sched_getaffinity(0)), 16)
