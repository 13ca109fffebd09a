"""What of a run's tables is scored: nothing about older samples, images or outcomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from echo_hf.errors import ScoreError
from echo_hf.judging.run_tables import RunTables, read_run
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import IgnoredRating
from echo_hf.systems.benchmark import Benchmark
from echo_hf.tables import OUTPUTS, RATINGS
from tests.judging.run_for_tests import output, rating, root, run, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of three prompts."""
    run(tmp_path, {}, ("boat", "fox", "tree"))
    return tmp_path


def read(folder: Path) -> RunTables:
    """Its tables."""
    return read_run(Benchmark(str(folder / "benchmark")), RunFolder(root(folder)))


def test_a_rating_of_no_image_does_not_count(folder: Path) -> None:
    """By the outcome of its output, or where there is no output at all."""
    outputs = [
        output("boat", "a", image="f" * 64),
        output("fox", "a", outcome="refused"),
        output("tree", "b", image="e" * 64),
    ]
    write(folder, OUTPUTS, outputs)
    write(folder, RATINGS, [rating(name, "a", 9) for name in ("boat", "fox", "tree")])
    tables = read(folder)
    assert tables.ratings is not None
    assert tables.ratings["sample_id"].to_pylist() == ["boat"]
    assert tables.left_out == {"ratings": {IgnoredRating.NO_IMAGE: 1, IgnoredRating.NO_OUTPUT: 1}}


def test_ratings_alone_are_taken_at_their_word(folder: Path) -> None:
    """Without a table of outputs nobody knows of any that are missing."""
    write(folder, RATINGS, [rating("boat", "a", 9)])
    tables = read(folder)
    assert tables.ratings is not None
    assert tables.ratings.num_rows == 1
    assert tables.left_out == {}


def test_two_outputs_for_one_sample_are_refused(folder: Path) -> None:
    """Which of them counts would hang on the order of rows."""
    write(folder, OUTPUTS, [output("boat", "a", image=digit * 64) for digit in "ef"])
    with pytest.raises(ScoreError, match="system 'a' has 2 outputs for sample 'boat'"):
        read(folder)
