"""Boards on sealed samples beside the public ones, and tests of training in results."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from echo_hf.judging.score import score
from echo_hf.scores import contamination, win_rate
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.tables import OUTPUTS, RATINGS
from tests.sealed_for_tests import built, set_key

SYSTEMS = ("ash", "birch", "cedar")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> EvaluationRun:
    """A run with sealed samples, on all of which three systems were rated by chance."""
    folder = tmp_path_factory.mktemp("sealed")
    set_key(folder)
    built(folder)
    opened = EvaluationRun.from_config(folder / "config.yaml", folder / "runs")
    rng = np.random.default_rng(1)
    assert opened.sealed is not None
    for part in (opened, opened.sealed):
        rows = [
            {
                "sample_id": task.sample_id,
                "system": system,
                "judge": "jay",
                "rubric": "overall",
                "repeat": 0,
                "rating": float(rng.integers(1, 11)),
                "outcome": "ok",
            }
            for task in part.read_tasks().tasks
            for system in SYSTEMS
        ]
        part.folder.root.mkdir(exist_ok=True)
        pq.write_table(
            pa.Table.from_pylist(rows, RATINGS.schema), part.folder.root / "ratings.parquet"
        )
        pq.write_table(
            pa.Table.from_pylist([{**row, "image": "0" * 64} for row in rows], OUTPUTS.schema),
            part.folder.root / "outputs.parquet",
        )
    return opened


def read_rows(run: EvaluationRun, split: str) -> tuple[list[dict], list[dict]]:
    """The ratings of a split, of public and of sealed samples."""
    parts = []
    for part in filter(None, (run, run.sealed)):
        ids = {task.sample_id for task in part.read_tasks().tasks if task.split == split}
        rows = pq.read_table(part.folder.root / "ratings.parquet").to_pylist()
        parts.append([row for row in rows if row["sample_id"] in ids])
    return parts[0], parts[1]


def test_boards_are_those_of_public_sealed_and_all_ratings(run: EvaluationRun) -> None:
    scored = {split.split: split for split in score(run, n_boot=50).splits}
    for name in ("image_to_image", "text_to_image"):
        public, sealed = read_rows(run, name)
        saved = scored[name].sealed
        assert sealed
        assert saved is not None
        assert saved.samples == len(sealed) // len(SYSTEMS)
        assert saved.sealed.win_rate == win_rate(sealed, n_boot=0).win_rate
        assert saved.both.win_rate == win_rate([*public, *sealed], n_boot=0).win_rate
        ids = {row["sample_id"] for row in sealed}
        tested = contamination([*public, *sealed], sealed=ids)
        assert saved.contamination.counts == tested.counts


def test_results_have_aggregates_and_no_sample(run: EvaluationRun) -> None:
    score(run, n_boot=0)
    text = (run.folder.root / "results.json").read_text()
    assert run.sealed is not None
    for task in run.sealed.read_tasks().tasks:
        assert task.sample_id not in text
        assert json.dumps(task.prompt)[1:-1] not in text
    metrics = {row["metric"] for row in json.loads(text)["results"]}
    assert metrics >= {"win_rate_sealed", "win_rate_public_and_sealed", "public_over_sealed"}


def test_few_sealed_samples_say_what_they_could_have_seen_and_no_more(run: EvaluationRun) -> None:
    for split in score(run, n_boot=0).splits:
        assert split.sealed is not None
        assert split.sealed.contamination.alarm == ()
        assert {*split.sealed.contamination.p.values()} == {None}
        assert split.sealed.contamination.summary.startswith("not tested: fewer than 50 sealed")


def test_a_sealed_part_that_nobody_rated_is_no_board(run: EvaluationRun, tmp_path: Path) -> None:
    assert run.sealed is not None
    ratings = run.sealed.folder.root / "ratings.parquet"
    aside = ratings.rename(tmp_path / "aside.parquet")
    try:
        assert [split.sealed for split in score(run, n_boot=0).splits] == [None, None]
    finally:
        aside.rename(ratings)
