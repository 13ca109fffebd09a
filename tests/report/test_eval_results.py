"""Win rates for the Hub: what a model's repository can hold."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

from echo_hf.report.report import eval_results
from echo_hf.report.results import Identity
from echo_hf.report.run_data import ReportSample, RunData
from tests.report.hostile import WORDS
from tests.report.run_data_for_tests import ratings_of, results, run_data

SAMPLES = [ReportSample(id=f"s{at:02}", split="text_to_image", prompt="x") for at in range(12)]
COMMIT = "0123456789abcdef" * 2 + "01234567"


def _rated(folder: Path, on_hub: str | None, **values: object) -> RunData:
    """A run in which the first system wins nine samples of twelve and loses three."""
    ratings = {
        one.id: tuple(ratings_of({"anole_two": [3 if at % 4 else 1], "bravo": [2]}))
        for at, one in enumerate(SAMPLES)
    }
    found = results(SAMPLES, ratings).model_copy(update={"benchmark": Identity(on_hub=on_hub)})
    return run_data(folder, SAMPLES, None, ratings, **{"results": found, **values})


@pytest.mark.parametrize(("revision", "kept"), [("v1", None), (COMMIT, COMMIT)])
def test_the_hub_reads_each_system(tmp_path: Path, revision: str, kept: str | None) -> None:
    """Dataset, task and value in the Hub's own terms; only a commit is a revision there."""
    data = _rated(tmp_path, f"my-lab/echo@{revision}", failures={"mira": ("blank",)})
    found = yaml.safe_load(str(eval_results(data)))
    (one,) = parse_eval_result_entries(found["anole_two"])
    assert (one.dataset_id, one.task_id, one.value) == ("my-lab/echo", "text_to_image", 0.75)
    assert one.dataset_revision == kept
    said = str(one.notes)
    assert said.startswith("win rate from 0 to 1 against bravo; judged by mira (failed its audit)")
    assert said.endswith(f"; revision {revision}")


@pytest.mark.parametrize("on_hub", [None, "my-lab/echo"])
def test_what_is_not_on_the_hub_has_none(tmp_path: Path, on_hub: str | None) -> None:
    """Without a dataset and a revision there is nothing to refer to."""
    assert eval_results(_rated(tmp_path, on_hub)) is None


def test_an_unrated_run_has_none(tmp_path: Path) -> None:
    """Where no judge has spoken there is no value."""
    found = results(SAMPLES, {}).model_copy(update={"benchmark": Identity(on_hub="a/b@v1")})
    assert eval_results(run_data(tmp_path, SAMPLES, results=found)) is None


@pytest.mark.parametrize("words", WORDS)
def test_hostile_names_stay_text(tmp_path: Path, words: str) -> None:
    """Whatever a revision holds, the file is plain YAML with one string in its place."""
    told = str(eval_results(_rated(tmp_path, f"my-lab/echo@{words}")))
    told.encode()
    assert set(yaml.safe_load(told)) == {"anole_two", "bravo"}
