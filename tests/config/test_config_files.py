"""A system may have a file of its own, which several configs name."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from echo_hf.config.loading import load_config
from echo_hf.config.systems import (
    config_place,
    read_system,
    shipped_configs,
    shipped_systems,
    with_systems,
)
from echo_hf.errors import ConfigError
from echo_hf.systems.benchmark import load_evaluation
from tests.systems.runs_for_tests import system

MINE = "{name: mine, adapter: files, developer: Northlight, status: replay, parameters: "


def test_a_name_is_looked_for_beside_the_config(tmp_path: Path) -> None:
    """Its content takes its place; a system that stands in the config itself stays."""
    (tmp_path / "systems").mkdir()
    (tmp_path / "systems" / "mine.yaml").write_text(MINE + "{folder: drawn, steps: 2}}")
    (tmp_path / "config.yaml").write_text(
        "name: x\nbenchmark: lab/echo@v1\nsystems:\n  - systems/mine.yaml\n"
        "  - {name: b, adapter: files, developer: N, status: replay, parameters: {folder: f}}\n"
    )
    first, second = load_evaluation(tmp_path / "config.yaml").systems
    assert first.name == "mine"
    assert first.parameters == {"folder": str(tmp_path / "systems" / "drawn"), "steps": 2}
    assert second.parameters == {"folder": str(tmp_path / "f")}


def test_an_absolute_folder_stays(tmp_path: Path) -> None:
    """It is a place already."""
    (tmp_path / "mine.yaml").write_text(MINE + "{folder: /data/drawn}}")
    assert read_system(tmp_path / "mine.yaml").parameters == {"folder": "/data/drawn"}


def test_what_names_no_file_is_left_to_the_config(tmp_path: Path) -> None:
    """Whatever it is: the config says what is wrong with it."""
    for data in (None, [], {}, {"systems": "a.yaml"}, {"systems": None}):
        assert with_systems(data, tmp_path) is data
    mixed = {"systems": [3, None, {"name": "a"}, {"parameters": [1]}]}
    assert with_systems(mixed, tmp_path) == mixed


BAD = {
    "name: mine\n": "adapter is missing",
    MINE + "{folder: x}, stauts: replay}": "unknown key 'stauts'; did you mean 'status'?",
    "[1, 2]": "expected a mapping",
    "a: b: c": "not valid YAML",
    "name: a\nname: b\n": "name",
    "": "expected a mapping",
    MINE + "{api_key: tulip-1234}}": "put the secret into an environment variable",
}


@pytest.mark.parametrize("text", BAD, ids=[text[:20] for text in BAD])
def test_a_bad_file_is_named(tmp_path: Path, text: str) -> None:
    """One line with the file of the system, not with the config that names it."""
    (tmp_path / "mine.yaml").write_text(text)
    (tmp_path / "config.yaml").write_text("name: x\nbenchmark: a/b\nsystems: [mine.yaml]\n")
    with pytest.raises(ConfigError) as raised:
        load_evaluation(tmp_path / "config.yaml")
    said = str(raised.value)
    assert said.startswith(str(tmp_path / "mine.yaml"))
    assert BAD[text] in said
    assert "\n" not in said
    assert "tulip" not in said


def test_ours_are_found_after_those_beside_the_config(tmp_path: Path) -> None:
    """A file that echo-hf brings, here one that is no system, unless there is one of the name."""
    (tmp_path / "config.yaml").write_text("name: x\nbenchmark: a/b\nsystems: [quickstart.yaml]\n")
    with pytest.raises(ConfigError) as raised:
        load_evaluation(tmp_path / "config.yaml")
    assert str(raised.value).startswith(str(shipped_configs() / "quickstart.yaml"))
    (tmp_path / "quickstart.yaml").write_text(MINE + "{}}")
    assert load_evaluation(tmp_path / "config.yaml").systems[0].name == "mine"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """With where it was looked for, and a file that is there."""
    (tmp_path / "config.yaml").write_text("name: x\nbenchmark: a/b\nsystems: [none.yaml]\n")
    with pytest.raises(ConfigError, match=r"no system '.*none\.yaml'.*eval_configs/systems"):
        load_evaluation(tmp_path / "config.yaml")


def test_those_that_echo_hf_brings_can_be_read() -> None:
    """Each file is a system of the same name."""
    assert (shipped_configs() / "quickstart.yaml").is_file()
    for path in shipped_systems():
        assert read_system(path).name.replace("-", "_").replace(".", "_") == path.stem


def test_a_file_is_what_its_config_dumps(tmp_path: Path) -> None:
    """What is read is what was written."""
    config = system(
        price={"usd_per_image": 0.04, "as_of": "2026-05-01"}, size={"width": 64, "height": 32}
    )
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
    assert read_system(tmp_path / "a.yaml") == config


def test_a_brought_config_is_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name in the documentation works where there is no checkout, for both kinds of readers."""
    monkeypatch.chdir(tmp_path)
    assert load_config("eval_configs/gpt4o_release.yaml").name == "gpt-4o-2025-03"
    assert load_evaluation("eval_configs/quickstart.yaml").name == "quickstart"


@pytest.mark.parametrize(
    "named",
    [
        "quickstart.yaml",
        "eval_configs/absent.yaml",
        "eval_configs",
        "eval_configs/../eval_configs/quickstart.yaml",
    ],
)
def test_nothing_else_is_looked_for_among_what_is_brought(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that is no name of a brought config stays what it was."""
    monkeypatch.chdir(tmp_path)
    assert config_place(Path(named)) == Path(named)


def test_a_config_of_ones_own_comes_before_the_brought_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file at the very path that was named is never passed over."""
    monkeypatch.chdir(tmp_path)
    own = Path("eval_configs/quickstart.yaml")
    own.parent.mkdir()
    own.write_text("[]")
    with pytest.raises(ConfigError, match="expected a mapping"):
        load_config(own)
