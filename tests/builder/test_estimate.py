"""What a build would ask: counted where the input is there, else by the share of the corpus."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from echo_hf.builder.build import build, run_until
from echo_hf.builder.update import planned_build
from echo_hf.cli import app
from echo_hf.engines.estimate import NO_WORK
from echo_hf.errors import EngineError
from tests.recorded_as_model import KIND, RecordedAsModel, bundled_posts, config_over

ASKED = ("relevance", "extract", "roles", "screenshots", "feedback", "safety")


@pytest.fixture
def engine() -> RecordedAsModel:
    return RecordedAsModel().use()


def test_the_next_stage_is_counted_and_the_rest_are_as_in_the_bundled_corpus(
    tmp_path: Path, engine: RecordedAsModel
) -> None:
    """The shares in the list are those of the corpus, so that here they come to what is asked."""
    config, runs = config_over(tmp_path, bundled_posts(), KIND), tmp_path / "runs"
    posts, before = planned_build(config, runs=runs)
    assert (posts, [one.stage for one in before]) == (len(bundled_posts()), [*ASKED])
    assert not any(one.counted for one in before)
    assert (engine.asked, runs.exists()) == ([], False)

    run_until(config, "collect", runs=runs)
    (first, *rest) = planned_build(config, runs=runs)[1]
    assert (first.counted, [one.counted for one in rest]) == (True, [False] * 5)
    assert engine.asked == []

    build(config, runs=runs)
    asked = Counter(request.task for request in engine.asked)
    assert first.todo == asked["relevance"]
    assert {one.stage: one.todo for one in before} == pytest.approx(asked, rel=0.05)
    assert planned_build(config, runs=runs) == (posts, ())


def test_what_is_stored_is_not_asked_again(tmp_path: Path, engine: RecordedAsModel) -> None:
    config, runs = config_over(tmp_path, bundled_posts()[:20], KIND), tmp_path / "runs"
    run_until(config, "relevance", runs=runs)
    made = len(engine.asked)
    (lost,) = runs.glob("*/stages/relevance")
    shutil.rmtree(lost)
    first = planned_build(config, runs=runs)[1][0]
    assert (first.stage, first.todo, first.stored) == ("relevance", 0, made)
    assert first.expected == NO_WORK


def test_the_command_says_what_it_would_ask_and_makes_nothing(
    tmp_path: Path, engine: RecordedAsModel
) -> None:
    config = config_over(tmp_path, bundled_posts(), KIND)
    told = ["build", str(config), "--runs", str(tmp_path / "runs"), "--dry-run"]
    done = CliRunner().invoke(app, told)
    assert done.exit_code == 0, done.output
    for said in ("121 posts", "relevance", "about 48", "nothing was asked: leave out --dry-run"):
        assert said in done.output
    assert not (tmp_path / "runs").exists()
    refused = CliRunner().invoke(app, [*told, "--until", "threads"])
    assert "--dry-run asks nobody" in str(refused.exception)


def test_a_model_that_does_not_fit_is_refused_with_the_sum(tmp_path: Path) -> None:
    config = config_over(tmp_path, bundled_posts(), "recorded")
    data = yaml.safe_load(config.read_text("utf-8"))
    model = {"kind": "vllm", "model": "Qwen/Qwen2.5-VL-32B-Instruct", "gpu_memory_gib": 24}
    config.write_text(yaml.safe_dump({**data, "engines": {"text": model}}), "utf-8")
    with pytest.raises(EngineError, match=r"engine 'text' does not fit: weights 62\.3 GiB \+ "):
        planned_build(config, runs=tmp_path / "runs")
