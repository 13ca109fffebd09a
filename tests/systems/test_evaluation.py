"""A config says which systems are measured, and on what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.config.evaluation import Evaluation
from echo_hf.config.loading import Config, load_config
from echo_hf.config.systems import shipped_config
from echo_hf.errors import ConfigError, RunError
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.systems.benchmark import benchmark_of, load_evaluation

SYSTEM = "{name: a, adapter: files, developer: N, status: replay}"


def saved(folder: Path, text: str) -> Path:
    """A config."""
    (folder / "config.yaml").write_text(text, "utf-8")
    return folder / "config.yaml"


def test_a_benchmark_on_the_hub_stays_a_name(tmp_path: Path) -> None:
    """Nothing of it is read yet."""
    config = load_evaluation(saved(tmp_path, "name: x\nbenchmark: lab/echo@v1\n"))
    assert config == Evaluation(name="x", benchmark="lab/echo@v1")
    assert benchmark_of(config, RunFolder(tmp_path / "runs" / "x")).reference == "lab/echo@v1"


def test_a_folder_is_found_beside_the_config(tmp_path: Path) -> None:
    """Wherever the command is run from."""
    (tmp_path / "release").mkdir()
    config = load_evaluation(saved(tmp_path, "name: x\nbenchmark: release\n"))
    assert isinstance(config, Evaluation)
    assert config.benchmark == str(tmp_path / "release")


def test_a_config_with_posts_is_one_of_a_builder(tmp_path: Path) -> None:
    """The same that `build` reads, and its release is the benchmark once it is built."""
    config = load_evaluation(shipped_config())
    assert isinstance(config, Config)
    assert config == load_config(shipped_config())
    folder = RunFolder(tmp_path)
    with pytest.raises(RunError, match="run `echo-hf build` first"):
        benchmark_of(config, folder)
    folder.release.mkdir()
    assert benchmark_of(config, folder).reference == str(folder.release)


BAD = {
    "name: x\nbenchmark: a/b\nposts: []\n": "has both benchmark and posts",
    "name: x\nsystems: []\n": "has neither benchmark nor posts",
    "name: x\nbenchmark: ''\n": "benchmark is ''",
    "name: x\nbenchmark: [a]\n": "benchmark is ['a']",
    "name: x y\nbenchmark: a/b\n": "name is 'x y'",
    "benchmark: a/b\n": "name is missing",
    "name: x\nbenchmark: a/b\nsystem: []\n": "unknown key 'system'; did you mean 'systems'?",
    "name: x\nbenchmark: a/b\nsystems: a.yaml\n": "systems is 'a.yaml': input should be",
    f"name: x\nbenchmark: a/b\nsystems: [{SYSTEM}, {SYSTEM}]\n": "two are called 'a'",
    "name: x\nbenchmark: a/b\nprotocol: mine\n": "protocol is 'mine'",
    "[]": "expected",
    "": "expected",
}


@pytest.mark.parametrize("text", BAD, ids=[text[-40:] for text in BAD])
def test_a_mistake_is_one_line(tmp_path: Path, text: str) -> None:
    """The file, the key, and what was expected."""
    path = saved(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        load_evaluation(path)
    said = str(raised.value)
    assert said.startswith(str(path))
    assert BAD[text] in said
    assert "\n" not in said


def test_a_missing_config_is_named(tmp_path: Path) -> None:
    """With one that is there."""
    with pytest.raises(ConfigError, match=r"no config '.*none\.yaml'.*eval_configs/quickstart"):
        load_evaluation(tmp_path / "none.yaml")


def test_the_systems_of_a_builder_have_files_too(tmp_path: Path) -> None:
    """What a config with posts says of its systems is read in the same way."""
    (tmp_path / "a.yaml").write_text(SYSTEM)
    text = shipped_config().read_text("utf-8") + "\nsystems: [a.yaml]\n"
    for load in (load_evaluation, load_config):
        assert [one.name for one in load(saved(tmp_path, text)).systems] == ["a"]


@pytest.mark.parametrize("name", ["nope", "./nope", "a/b/c", "https://ana:key@hub.example/a/b"])
def test_a_benchmark_that_is_nowhere_is_named(tmp_path: Path, name: str) -> None:
    """What is no folder and cannot be a name on the Hub is never looked for there."""
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({"name": "x", "benchmark": name}), "utf-8")
    with pytest.raises(ConfigError, match="no such folder next to the config") as error:
        load_evaluation(file)
    assert "key" not in str(error.value)


LEAKED = "sk-" + "tulip1234567890"


@pytest.mark.parametrize(
    "system",
    [
        {"adapter": "command", "parameters": {"command": ["python", f"--token={LEAKED}"]}},
        {"adapter": "command", "parameters": {"command": ["python", "worker.py", LEAKED]}},
        {"adapter": "command", "parameters": {"command": ["x"], "pass_environment": [LEAKED]}},
        {"adapter": "openai_images", "model": LEAKED},
        {"adapter": "openai_images", "parameters": {"api_key_env": [LEAKED]}},
        {"adapter": "openai_images", "parameters": LEAKED},
        {"adapter": "openai_images", "note": f"my key is {LEAKED}"},
    ],
)
def test_what_has_the_form_of_a_key_is_refused_and_not_shown(
    tmp_path: Path, system: dict[str, Any]
) -> None:
    """Wherever somebody put it: a config is kept beside its results, and results are published."""
    file = tmp_path / "config.yaml"
    known = {"name": "mine", "developer": "Northlight", "status": "current"}
    data = {"name": "x", "benchmark": "org/name", "systems": [{**known, **system}]}
    file.write_text(yaml.safe_dump(data), "utf-8")
    with pytest.raises(ConfigError) as error:
        load_evaluation(file)
    assert "tulip" not in str(error.value)
    assert "\n" not in str(error.value)
