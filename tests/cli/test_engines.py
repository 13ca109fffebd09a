"""`echo-hf engines --fit`: what each engine of a config takes of a GPU, and which cannot fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from echo_hf.cli import app
from echo_hf.errors import ConfigError, EchoError, EngineError, GenerationError
from tests.samples_for_tests import CONFIG_DATA

READER = {"kind": "vllm", "model": "Qwen/Qwen2.5-VL-7B-Instruct", "max_model_len": 32_768}
JUDGE = {"name": "mira", "developer": "Northlight", "status": "current"}
EVALUATION = {"target": None, "posts": None, "engines": None, "benchmark": "release"}


@pytest.fixture(autouse=True)
def _no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)


def written(**changed: Any) -> str:
    config = {
        **CONFIG_DATA,
        "name": "fitted",
        "engines": {"reader": READER, "guard": {"kind": "rules"}},
    }
    kept = {name: value for name, value in {**config, **changed}.items() if value is not None}
    Path("fitted.yaml").write_text(yaml.safe_dump(kept), "utf-8")
    return "fitted.yaml"


def fitted(*options: str, error: type[EchoError] | None = None, **changed: Any) -> Any:
    done = CliRunner().invoke(app, ["engines", "--fit", written(**changed), *options])
    assert type(done.exception) is (error or type(None)), done.output
    return done


def test_every_engine_of_a_config_is_told_with_its_sum() -> None:
    engine = {**READER, "max_model_len": 4096}
    artist = {"adapter": "diffusers", "model": "m"}
    known = {"name": "pair", "developer": "Northlight", "status": "current"}
    parameters = {"writer": engine, "artist": artist}
    done = fitted(
        *("--gpu", "79.1"),
        judges=[{**JUDGE, "engine": engine}],
        applicability={"engine": engine},
        analysis={"task_engine": engine},
        systems=[{**known, "adapter": "rewrite", "parameters": parameters}],
    )
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        *("guard", "reader", "judge mira", "applicability", "analysis.task_engine"),
        "writer of pair",
    ]
    # 28 layers x 2 x 4 heads x 128 x 2 bytes for 32,768 tokens: 1.75 GiB.
    assert lines[3:6] == [
        "  weights 15.4 GiB + 1 request of 32,768 tokens 1.8 GiB + working memory about 3.1 GiB = "
        "20.3 GiB, of 71.2 GiB (0.9 of 79.1)",
        "  20,480 of the tokens may be images",
        "  30.1 such requests fit at once",
    ]
    assert "  kind 'rules': only what 'vllm' takes is worked out" in lines


def test_a_config_of_an_evaluation_has_judges_alone(tmp_path: Path) -> None:
    (tmp_path / "release").mkdir()
    judges = [{**JUDGE, "engine": {**READER, "gpu_memory_gib": 24}}]
    done = fitted("--json", **EVALUATION, judges=judges)
    told = json.loads(done.stdout)
    assert told["verb"] == "engines"
    (one,) = told["engines"]
    assert (one["name"], one["fits"]) == ("judge mira", True)
    assert (one["weights"], one["gpu_gib"]) == (2 * 8_292_166_656, 24)


def test_what_cannot_fit_is_an_error_with_the_sum_and_the_rest_is_told() -> None:
    done = CliRunner().invoke(app, ["engines", "--fit", written(), "--gpu", "16", "--json"])
    said = str(done.exception)
    assert isinstance(done.exception, EchoError)
    assert said == "no room for one request in 'reader': see above"
    assert "of 14.4 GiB (0.9 of 16.0)" in done.stderr
    assert "  no room: raise gpu_memory_utilization" in done.stderr
    fits = {one["name"]: one["fits"] for one in json.loads(done.stdout)["engines"]}
    assert fits == {"reader": False, "guard": None}


def test_without_a_gpu_the_sum_stands_alone() -> None:
    lines = fitted().stdout.splitlines()
    assert lines[3].endswith(" = 20.3 GiB")
    assert "  no GPU is known here: --gpu 79.1 asks about one of 80 GB" in lines


def test_a_mistake_is_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["engines", "--gpu", "80"])
    assert "--gpu goes with --fit" in str(done.exception)
    fitted(error=EngineError, engines={"reader": {**READER, "max_model_len": "many"}})
    pair = {"name": "pair", "developer": "Northlight", "status": "current", "adapter": "rewrite"}
    done = fitted(error=GenerationError, systems=[{**pair, "parameters": {"writer": {}}}])
    assert "system 'pair': parameters: writer.kind and artist are missing" in str(done.exception)
    (tmp_path / "release").mkdir()
    done = fitted(error=ConfigError, **EVALUATION)
    assert "names no engine and no judge" in str(done.exception)
