"""Where the runs of a config lie: beside it, from wherever it is named, and never twice unsaid."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from echo_hf.cli import app
from echo_hf.config.loading import Config, load_config, parse_config
from echo_hf.config.runs import find_runs_folder
from echo_hf.config.systems import shipped_config
from echo_hf.errors import RunError
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.runs import open_run_folder
from echo_hf.systems.benchmark import load_evaluation
from tests.errors_for_tests import said_by

LUMEN = {
    "name": "lumen",
    "target": {"name": "Lümen", "developer": "Northlight", "released": "2026-03-02"},
    "posts": [{"source": "jsonl", "path": "posts.jsonl"}],
    "engines": {"reader": {"kind": "rules"}},
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ECHO_HF_RUNS", raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def config(path: Path, **sections: object) -> Config:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({**LUMEN, **sections}), "utf-8")
    return load_config(path)


def begun(of: Config, runs: Path | None = None) -> RunFolder:
    folder = open_run_folder(of, runs)
    with folder.lock():
        folder.save_config(of)
    return folder


def test_an_option_comes_before_the_environment_before_the_config_before_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, named = config(tmp_path / "a" / "l.yaml"), config(tmp_path / "b" / "l.yaml", runs="r")
    assert find_runs_folder(beside) == tmp_path / "a" / "runs"
    assert find_runs_folder(named) == tmp_path / "b" / "r"
    monkeypatch.setenv("ECHO_HF_RUNS", str(tmp_path / "env"))
    assert find_runs_folder(beside) == find_runs_folder(named) == tmp_path / "env"
    assert find_runs_folder(named, tmp_path / "option") == tmp_path / "option"


def test_a_place_in_the_working_directory_is_named_from_there() -> None:
    assert find_runs_folder(config(Path("mine") / "l.yaml")) == Path("mine/runs")
    assert find_runs_folder(config(Path("l.yaml"))) == Path("runs")


def test_what_has_no_folder_of_its_own_has_its_runs_in_the_working_directory() -> None:
    made = parse_config(LUMEN, "made here")
    for one in (None, made, load_config(shipped_config()), load_config("eval_configs/paper.yaml")):
        assert find_runs_folder(one) == Path("runs")


def test_a_comparison_has_its_runs_beside_it_too(tmp_path: Path) -> None:
    (tmp_path / "pair.yaml").write_text("name: pair\nbenchmark: my-lab/echo@v1\nruns: ../r\n")
    assert find_runs_folder(load_evaluation(tmp_path / "pair.yaml")) == tmp_path.parent / "r"


def test_the_config_that_a_run_keeps_stays_in_that_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = config(tmp_path / "a" / "l.yaml", runs="kept")
    run = begun(of)
    monkeypatch.setenv("ECHO_HF_RUNS", str(tmp_path / "env"))
    kept = load_config(run.root / "config.yaml")
    assert find_runs_folder(kept) == tmp_path / "a" / "kept"
    assert begun(kept).made_from == tmp_path / "a" / "l.yaml"


def test_a_run_is_found_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["init", "benchmark", "mine"]).exit_code == 0
    assert runner.invoke(app, ["build", "mine/benchmark.yaml"]).exit_code == 0
    assert Path("mine/runs/mine/release/manifest.json").exists()
    monkeypatch.chdir(tmp_path)
    for place in ("here/mine/benchmark.yaml", "here/mine/runs/mine/config.yaml"):
        done = runner.invoke(app, ["why", place])
        assert (done.exit_code, "up to date" in done.output) == (0, True)


@pytest.mark.parametrize("runs", ["here/runs", "runs"])
def test_a_run_of_the_same_config_above_is_named_and_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, runs: str
) -> None:
    of = config(tmp_path / "a" / "l.yaml")
    begun(of, tmp_path / runs)
    with caplog.at_level(logging.WARNING, "echo_hf"):
        assert open_run_folder(of).root == tmp_path / "a" / "runs" / "lumen"
    place = "runs" if runs == "here/runs" else str(tmp_path / "runs")
    assert [one.getMessage() for one in caplog.records] == [
        f"a run of this config is in {tmp_path / runs / 'lumen'}: --runs {place} uses it"
    ]


def test_no_other_run_is_named_where_one_is_there_or_asked_for_or_of_another_matter(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    of, other = config(tmp_path / "a" / "l.yaml"), config(tmp_path / "b" / "l.yaml")
    begun(other, tmp_path / "runs")
    open_run_folder(of)
    begun(of, tmp_path / "new")
    begun(of)
    begun(of, tmp_path / "here" / "runs")
    open_run_folder(of)
    assert not caplog.records


def test_moving_runs_by_the_environment_names_the_run_that_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    of = config(tmp_path / "a" / "l.yaml")
    begun(of)
    monkeypatch.setenv("ECHO_HF_RUNS", str(tmp_path / "env"))
    open_run_folder(of)
    assert f"--runs {tmp_path / 'a' / 'runs'}" in caplog.text


OTHERS = {
    "posts": {"posts": [{"source": "jsonl", "path": "others.jsonl"}]},
    "target": {"target": {**LUMEN["target"], "name": "Paintbox"}},  # type: ignore[dict-item]
}


@pytest.mark.parametrize("part", OTHERS)
def test_two_configs_of_one_name_and_other_matter_are_refused_with_both_places(
    tmp_path: Path, part: str
) -> None:
    begun(config(tmp_path / "a.yaml"))
    other = config(tmp_path / "b.yaml", **OTHERS[part])
    said = said_by(RunError, open_run_folder, other)
    assert all(repr(str(tmp_path / name)) in said for name in ("a.yaml", "b.yaml", "runs/lumen"))
    assert part in said
    begun(other, tmp_path / "elsewhere")


def test_a_comparison_of_another_benchmark_is_refused(tmp_path: Path) -> None:
    for name, tag in (("a", "v1"), ("b", "v2"), ("c", "v1")):
        text = f"name: pair\nbenchmark: my-lab/echo@{tag}\n"
        (tmp_path / f"{name}.yaml").write_text(text)
    folder = open_run_folder(load_evaluation(tmp_path / "a.yaml"))
    with folder.lock():
        folder.save_config(load_evaluation(tmp_path / "a.yaml"))
    assert "other benchmark" in said_by(
        RunError, open_run_folder, load_evaluation(tmp_path / "b.yaml")
    )
    open_run_folder(load_evaluation(tmp_path / "c.yaml"))
    built = config(tmp_path / "l.yaml", name="pair")
    assert "other content" in said_by(RunError, open_run_folder, built)


def test_the_same_config_goes_on_when_it_is_changed_moved_or_copied(tmp_path: Path) -> None:
    of = config(tmp_path / "a" / "l.yaml")
    begun(of)
    begun(config(tmp_path / "a" / "l.yaml", **OTHERS["posts"]))
    begun(config(tmp_path / "a" / "l.yaml"))
    engines = {"reader": {"kind": "vllm", "model": "m"}}
    begun(config(tmp_path / "a" / "copy.yaml", engines=engines))
    shutil.copytree(tmp_path / "a", tmp_path / "b")  # with its runs
    run = begun(load_config(tmp_path / "b" / "copy.yaml"))
    assert run.made_from == tmp_path / "b" / "copy.yaml"
    (tmp_path / "b" / "copy.yaml").rename(tmp_path / "b" / "moved.yaml")
    begun(config(tmp_path / "b" / "moved.yaml", **OTHERS["posts"]))


def test_a_run_of_an_older_version_goes_on(tmp_path: Path) -> None:
    run = begun(config(tmp_path / "a.yaml"))
    (run.root / "origin.json").unlink()
    begun(config(tmp_path / "b.yaml", **OTHERS["posts"]))


def test_a_damaged_origin_is_no_origin(tmp_path: Path) -> None:
    run = begun(config(tmp_path / "a.yaml"))
    for text in ("", "[]", '{"config": 1}', "{}", "[" * 10_000):
        (run.root / "origin.json").write_text(text)
        assert run.made_from is None


def test_a_run_does_not_write_over_its_config(tmp_path: Path) -> None:
    of = config(tmp_path / "lumen" / "config.yaml", runs="..")
    assert "the folder of the config itself" in said_by(RunError, open_run_folder, of)
