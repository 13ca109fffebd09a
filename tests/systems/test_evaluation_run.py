"""The run of an evaluation: how often its files are hashed, and when they are read again."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ConfigError, RunError, ScoreError
from echo_hf.judging.score import score
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.systems.generate import generate
from tests.errors_for_tests import said_by
from tests.systems.runs_for_tests import Acting, benchmark, evaluation, known, sample, written


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the standard library hashed each content of a file."""
    counts, digest = Counter[str](), hashlib.file_digest

    def count(file: Any, algorithm: Any) -> Any:
        result = digest(file, algorithm)
        counts[result.hexdigest()] += 1
        return result

    monkeypatch.setattr(hashlib, "file_digest", count)
    return counts


@pytest.fixture
def run(tmp_path: Path) -> EvaluationRun:
    return EvaluationRun.from_config(evaluation(benchmark(tmp_path)), tmp_path / "runs")


def digests(run: EvaluationRun) -> list[str]:
    """The contents of the Parquet files of both splits."""
    files = (Path(run.benchmark.reference) / split for split in BENCHMARKS)
    paths = [path for folder in files for path in folder.glob("*.parquet")]
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]


def test_a_benchmark_is_hashed_once_for_all_verbs(run: EvaluationRun, hashed: Counter[str]) -> None:
    with known(mine=Acting()):
        generate(run, dry_run=True)
        generate(run, limit=1)
        generate(run)
    score(run)
    score(run, protocol="published")
    assert [hashed[digest] for digest in digests(run)] == [1, 1]


def test_a_changed_benchmark_is_read_again(
    tmp_path: Path, run: EvaluationRun, hashed: Counter[str]
) -> None:
    old = digests(run)
    assert len(run.read_tasks().tasks) == 5
    assert [hashed[digest] for digest in old] == [1, 1]
    written(tmp_path, [sample("other")], [sample("edit", input_images=["in"])])
    hashed.clear()  # writing hashes as well
    for _ in range(2):
        assert [task.sample_id for task in run.read_tasks().tasks] == ["edit", "other"]
    assert [hashed[digest] for digest in (*old, *digests(run))] == [0, 0, 1, 1]


def test_tables_are_read_again_once_a_verb_wrote_them(run: EvaluationRun) -> None:
    with known(mine=Acting()):
        generate(run, limit=1)
        first = run.read_tables()
        assert run.read_tables() is first
        generate(run)
    assert (first.outputs.num_rows, run.read_tables().outputs.num_rows) == (2, 5)


def test_a_limit_reads_the_first_samples_alone(run: EvaluationRun) -> None:
    """What was read is not read again, and what a limit left out comes later."""
    few = run.read_tasks(1).tasks
    stored = [path for path in run.place.images.root.rglob("*") if path.is_file()]
    assert ([task.sample_id for task in few], len(stored)) == (["e0", "t0"], 1)
    assert [task.sample_id for task in run.read_tasks().tasks] == ["e0", "e1", "t0", "t1", "t2"]
    assert run.read_tasks(1).tasks == few


def test_opening_writes_nothing(tmp_path: Path, run: EvaluationRun) -> None:
    run.read_tasks()
    assert not (tmp_path / "runs").exists()
    assert not run.place.root.is_relative_to(tmp_path)
    run.prepare()
    assert run.place.root == tmp_path / "runs" / "measured"
    (task, *_) = run.read_tasks().tasks
    assert task.inputs[0].file.is_relative_to(run.folder.root)


def test_an_open_run_is_not_opened_elsewhere(tmp_path: Path, run: EvaluationRun) -> None:
    assert EvaluationRun.from_config(run) is run
    assert EvaluationRun.from_config(run, tmp_path / "runs") is run
    said = said_by(ConfigError, EvaluationRun.from_config, run, tmp_path / "other")
    assert "leave it out" in said


def test_another_protocol_shares_the_benchmark(run: EvaluationRun) -> None:
    other = EvaluationRun.from_config(run, protocol="published")
    assert (other.config.protocol, run.config.protocol) == ("published", "corrected")
    assert other.benchmark is run.benchmark
    assert "publshed" in said_by(ScoreError, EvaluationRun.from_config, run, protocol="publshed")


def test_without_outputs_a_verb_says_what_to_run(run: EvaluationRun) -> None:
    assert "run `echo-hf generate` first" in said_by(RunError, run.read_outputs)
    run.prepare()
    with known(mine=Acting()):
        path = generate(run).path
    assert run.read_outputs().num_rows == pq.read_metadata(path).num_rows == 5
