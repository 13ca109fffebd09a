"""`eval RELEASE --images`: the config that it writes, and what it does with one that is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import datasets
import pytest
import yaml
from PIL import Image
from typer.testing import CliRunner, Result

from echo_hf.cli import app
from echo_hf.errors import ConfigError, EchoError, EngineError
from echo_hf.systems.benchmark import load_evaluation
from tests.engines.openai.loopback_server import (
    Answer,
    Asked,
    LoopbackServer,
    closed_port,
    completion,
    running,
)
from tests.systems.runs_for_tests import benchmark


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release, and a red and a blue image of each of its three samples."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "ECHO_HF_RUNS", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    benchmark(tmp_path, texts=2, edits=1)
    for name, color in (("red", (200, 30, 30)), ("blue", (30, 30, 200))):
        (tmp_path / name).mkdir()
        for one in ("e0", "t0", "t1"):
            Image.new("RGB", (16, 16), color).save(tmp_path / name / f"{one}.png")


class Models:
    """A server with models, of which each rates everything 7."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __call__(self, asked: Asked) -> Answer:
        if asked.path.endswith("/models"):
            return Answer({"data": [{"id": name} for name in self.names]})
        return completion("Good. [[7]]")


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with running() as loopback:
        loopback.behave = Models("tiny-vl")
        yield loopback


def evaluated(*arguments: str, release: str = "release", images: str = "red blue") -> Result:
    given = [part for name in images.split() for part in ("--images", f"{name}={name}")]
    return CliRunner().invoke(app, ["eval", release, *given, *arguments])


def refused(kind: type[EchoError], *arguments: str, **given: str) -> str:
    done = evaluated(*arguments, **given)
    assert isinstance(done.exception, kind), done.output
    assert "\n" not in str(done.exception)
    return str(done.exception)


def config() -> str:
    (file,) = Path().glob("*-eval.yaml")
    return str(file)


def test_images_and_a_server_are_all_that_is_needed(server: LoopbackServer) -> None:
    done = evaluated("--judge", server.url, "--yes")
    assert done.exit_code == 0, done.output
    assert "red: images of 3 of 3 samples" in done.output
    assert "model: 'tiny-vl', the only one of" in done.output
    written = load_evaluation(config())
    assert f"wrote {config()}" in done.output
    assert [one.name for one in written.systems] == ["red", "blue"]
    (judge,) = written.judges
    assert judge.engine.options == {"model": "tiny-vl", "base_url": server.url}
    assert (judge.developer, judge.status) == ("unknown", "current")
    assert (Path("runs") / Path(config()).stem / "report" / "index.html").exists()
    assert len([one for one in server.asked if "chat" in one.path]) >= 6


def test_the_same_command_goes_on_and_asks_nothing(server: LoopbackServer) -> None:
    evaluated("--judge", server.url, "--yes")
    text, asked = Path(config()).read_bytes(), len(server.asked)
    again = evaluated("--judge", server.url, "--yes")
    assert again.exit_code == 0, again.output
    assert (Path(config()).read_bytes(), len(server.asked)) == (text, asked)
    assert "wrote" not in again.output
    by_file = CliRunner().invoke(app, ["eval", config(), "--yes"])
    assert (by_file.exit_code, len(server.asked)) == (0, asked)


@pytest.mark.parametrize(
    ("images", "more", "what"),
    [
        ("red", [], "other systems"),
        ("red blue", ["--judge", "http://127.0.0.1:9/v1", "--model", "m"], "other judges"),
    ],
)
def test_other_arguments_than_the_file_holds_are_refused(
    images: str, more: list[str], what: str
) -> None:
    assert evaluated("--dry-run").exit_code == 0
    text = Path(config()).read_bytes()
    said = refused(ConfigError, *more, images=images)
    assert what in said
    assert repr(config()) in said
    assert Path(config()).read_bytes() == text


def test_without_a_judge_there_are_metrics_alone() -> None:
    done = evaluated()
    assert done.exit_code == 0, done.output
    assert done.output.count("no judge is named: metrics alone") == 1
    assert load_evaluation(config()).judges == ()


def test_of_several_models_one_is_to_be_chosen(server: LoopbackServer) -> None:
    server.behave = Models("tiny-vl", "big-vl")
    said = refused(ConfigError, "--judge", server.url)
    assert "'tiny-vl', 'big-vl': choose one with --model" in said
    assert not list(Path().glob("*.yaml"))
    assert evaluated("--judge", server.url, "--model", "big-vl", "--yes").exit_code == 0
    assert load_evaluation(config()).judges[0].model == "big-vl"


def test_a_server_that_is_not_there_is_one_line() -> None:
    assert "no server answers at" in refused(EngineError, "--judge", closed_port())
    assert not list(Path().glob("*.yaml"))


@pytest.mark.parametrize(
    ("arguments", "images", "said"),
    [
        (["--model", "m"], "red", "--model goes with --judge"),
        (["--judge", "http://127.0.0.1:9/v1"], "", "--judge and --model go with --images"),
        (["--judge", "http://a:b@127.0.0.1:9/v1", "--model", "m"], "red", "holds no secret"),
        ([], "", "or a release with --images"),
    ],
)
def test_what_does_not_go_together_is_one_line(
    arguments: list[str], images: str, said: str
) -> None:
    assert said in refused(ConfigError, *arguments, images=images)
    assert not list(Path().glob("*.yaml"))


def test_what_is_no_release_is_one_line() -> None:
    assert "there is no benchmark in 'nowhere'" in refused(ConfigError, release="nowhere")
    assert "expected an address such as" in refused(EngineError, "--judge", "qwen", "--model", "m")


def test_the_config_is_one_that_people_can_read_and_change() -> None:
    evaluated("--dry-run")
    data = yaml.safe_load(Path(config()).read_text("utf-8"))
    assert data["benchmark"] == "release"
    assert data["systems"][0]["parameters"] == {"folder": "red", "layout": "flat"}
    assert f"echo-hf eval {config()}" in Path(config()).read_text("utf-8")
