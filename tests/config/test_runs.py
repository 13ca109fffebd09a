"""What a config is found by: its file, the folder of its run, or the release in that."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import echo_hf
from echo_hf.cli import app
from echo_hf.config.loading import load_config
from echo_hf.config.runs import find_config_file
from echo_hf.errors import ConfigError, EchoError
from echo_hf.hub.diff import diff
from echo_hf.pipeline.runs import open_run_folder
from echo_hf.systems.benchmark import find_release_folder, load_evaluation
from tests.errors_for_tests import said_by

NAME = "quickstart"
VERBS = ("agree", "analyze", "build", "report", "review", "score", "update", "why")


@pytest.fixture
def run(quickstart_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of the quickstart as seen from the folder above its folder of runs."""
    monkeypatch.delenv("ECHO_HF_RUNS", raising=False)
    shutil.copytree(quickstart_run, tmp_path / "work" / "runs" / NAME)
    monkeypatch.chdir(tmp_path / "work")
    return Path("runs") / NAME


def echo_hf_in(folder: Path, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.chdir(folder)
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize("place", ["", "config.yaml", "release"])
def test_a_run_its_config_and_its_release_are_one_config(run: Path, place: str) -> None:
    for load in (load_config, load_evaluation):
        config = load(run / place)
        assert config.name == NAME
        assert open_run_folder(config).root == run
        assert open_run_folder(config, "elsewhere").root == Path("elsewhere") / NAME


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_takes_the_folder_of_a_run_from_anywhere(
    verb: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a verb then says is of that run, and nothing is written in the other folder."""
    (tmp_path / "other").mkdir()
    place = tmp_path / "work" / run
    done = echo_hf_in(tmp_path / "other", verb, str(place), monkeypatch=monkeypatch)
    assert done.exit_code == 0 or "people ranked nothing" in str(done.exception), done.output
    assert list(Path().iterdir()) == []


def test_a_run_may_be_renamed(run: Path) -> None:
    later = run.rename(run.with_name("later"))
    assert open_run_folder(load_config(later)).root == later
    assert open_run_folder(load_config(later), later.parent).root == later


def test_what_was_there_before_a_release_is_not_taken_for_it(run: Path) -> None:
    shutil.copytree(run / "release", run / "previous")
    assert "is no run: expected a YAML file" in said_by(
        ConfigError, find_config_file, run / "previous"
    )
    shutil.copytree(run / "release", "release")
    assert "is no run" in said_by(ConfigError, find_config_file, "release")
    assert "no config 'nowhere'" in said_by(ConfigError, find_config_file, "nowhere")


def test_a_release_is_found_by_its_run_or_config(run: Path) -> None:
    shutil.copy(run / "config.yaml", "mine.yaml")
    release = run / "release"
    assert (
        find_release_folder(release)
        == find_release_folder(run)
        == find_release_folder("mine.yaml")
        == release
    )
    assert find_release_folder("my-lab/echo@v1") == Path("my-lab/echo@v1")
    assert len(echo_hf.load_benchmark(run, "ratings")) == 156
    assert echo_hf.load_manifest(run).name == NAME
    assert diff(run, release).added == ()
    with pytest.raises(EchoError, match="no release in"):
        diff(run.parent, release)
