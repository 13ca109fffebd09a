"""The page of config keys and the schema for editors say what the loader says."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from echo_hf.config.checks import sections_of
from echo_hf.config.evaluation import Evaluation
from echo_hf.config.judges import JudgeConfig, read_judge
from echo_hf.config.loading import Config
from echo_hf.config.systems import SystemConfig, read_system
from echo_hf.engines.recorded import RecordedEngine
from echo_hf.errors import ConfigError
from echo_hf.systems.benchmark import load_evaluation

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "eval_configs"
SCHEMA = ROOT / "echo_hf" / "config" / "config.schema.json"
PAGE = ROOT / "docs" / "reference" / "config.md"
COMPARISON = {
    "name": "mine",
    "benchmark": "lab/echo@v1",
    "systems": ["systems/flux_kontext.yaml"],
    "judges": ["judges/gpt_4o.yaml"],
}
BENCHMARK = yaml.safe_load((CONFIGS / "quickstart.yaml").read_text("utf-8"))


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import config_reference

    module: ModuleType = config_reference
    return module


def faults(data: Any) -> list[str]:
    schema = Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))
    plain = json.loads(json.dumps(data, default=str))
    return [error.message for error in schema.iter_errors(plain)]


def test_the_schema_is_one() -> None:
    """Of draft 2020-12, with a meaning at every key that a config may have."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    keys = [
        (part, key)
        for part, one in schema["$defs"].items()
        for key, node in one.get("properties", {}).items()
        if node and not node.get("description")
    ]
    assert keys == []


@pytest.mark.parametrize("path", sorted(CONFIGS.rglob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_files_are_valid(path: Path) -> None:
    assert faults(yaml.safe_load(path.read_text("utf-8"))) == []


def test_a_comparison_is_valid() -> None:
    system = yaml.safe_load((CONFIGS / "systems" / "bagel.yaml").read_text("utf-8"))
    assert faults(COMPARISON) == faults({**COMPARISON, "systems": [system]}) == []


def misspelt(data: Any, where: tuple[Any, ...], wrong: str) -> Any:
    if len(where) > 1:
        data = list(data) if isinstance(data, list) else dict(data)
        data[where[0]] = misspelt(data[where[0]], where[1:], wrong)
        return data
    return {wrong if key == where[0] else key: value for key, value in data.items()}


@pytest.mark.parametrize(
    ("data", "where", "wrong"),
    [
        (BENCHMARK, ("protocol",), "protokol"),
        (BENCHMARK, ("stages", "relevance", "keep"), "kept"),
        (BENCHMARK, ("splits", "cap"), "caps"),
        (BENCHMARK, ("target", "aliases"), "alias"),
        (COMPARISON, ("judges",), "judge"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_misspelt_key_is_refused_by_both(
    tmp_path: Path, data: Any, where: tuple[Any, ...], wrong: str
) -> None:
    changed = misspelt(data, where, wrong)
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(changed), "utf-8")

    assert faults(data) == []
    assert any(wrong in one for one in faults(changed))
    with pytest.raises(ConfigError, match=f"unknown key.*'{wrong}'"):
        load_evaluation(path)


@pytest.mark.parametrize(
    ("folder", "read", "key"),
    [("systems", read_system, "developer"), ("judges", read_judge, "status")],
)
def test_a_misspelt_key_of_a_shared_file_is_refused_by_both(
    tmp_path: Path, folder: str, read: Any, key: str
) -> None:
    data = yaml.safe_load(next((CONFIGS / folder).glob("g*.yaml")).read_text("utf-8"))
    changed = misspelt(data, (key,), f"{key}_")
    path = tmp_path / "one.yaml"
    path.write_text(yaml.safe_dump(changed), "utf-8")

    assert faults(changed)
    with pytest.raises(ConfigError, match=f"unknown key '{key}_'"):
        read(path)


@pytest.mark.parametrize(
    "engine",
    [
        {"kind": "vllm", "model": "m", "max_model_length": 10},
        {"kind": "openai"},
        {"kind": "rules", "model": "m"},
        {"kind": "recorded", "source": "others"},
        {"model": "m"},
    ],
    ids=["unknown option", "no model", "an option of none", "unknown answers", "no kind"],
)
def test_options_of_engines_are_checked(engine: dict[str, Any]) -> None:
    assert faults({**BENCHMARK, "engines": {"reader": engine}})
    assert faults({**BENCHMARK, "engines": {"reader": {"kind": "theirs", "depth": 3}}}) == []


def test_parameters_of_adapters_are_checked() -> None:
    system = {"name": "a", "adapter": "files", "developer": "b", "status": "replay"}
    assert faults({**system, "parameters": {"folder": "drawn"}}) == []
    assert faults({**system, "parameters": {"folder": "drawn", "depth": 3}})
    assert faults({**system, "adapter": "theirs", "parameters": {"depth": 3}}) == []


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}"
        shown = str(field.annotation)
        several = ".*" if shown.startswith(("tuple[", "collections.abc.Mapping[")) else ""
        for inner in sections_of(field.annotation):
            if inner not in (SystemConfig, JudgeConfig):
                yield from keys(inner, f"{prefix}{name}{several}.")


@pytest.mark.parametrize("model", [Config, Evaluation, SystemConfig, JudgeConfig])
def test_every_key_is_in_the_page(model: type[BaseModel]) -> None:
    told = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text("utf-8"), re.M)
    assert set(keys(model)) <= set(told)


def test_a_key_without_a_meaning_is_refused(reference: ModuleType) -> None:

    class Options(BaseModel):
        """Of a test.

        Attributes:
            told: What it means.
        """

        told: int = 0
        untold: int = 0

    with pytest.raises(LookupError, match=r"Options\.untold"):
        Options.model_json_schema(schema_generator=reference.Explained)


def test_the_recorded_engine_takes_what_the_page_says(reference: ModuleType) -> None:
    taken = list(inspect.signature(RecordedEngine).parameters)
    assert list(reference.RecordedOptions.model_fields) == taken
