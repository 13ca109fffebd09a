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

from echo_hf.config.checks import find_sections
from echo_hf.config.evaluation import EvaluationConfig, JudgeConfig, MetricsOptions
from echo_hf.config.loading import Config
from echo_hf.config.systems import SystemConfig
from echo_hf.engines.recorded import RecordedEngine
from echo_hf.errors import ConfigError
from echo_hf.metrics import registered
from echo_hf.systems.benchmark import load_evaluation
from tests.stages_for_tests import ROOT

CONFIGS = ROOT / "eval_configs"
SCHEMA = Draft202012Validator(json.loads((ROOT / "echo_hf/config/config.schema.json").read_text()))
PAGE = ROOT / "docs" / "reference" / "config.md"


def shipped(name: str) -> Any:
    return yaml.safe_load((CONFIGS / f"{name}.yaml").read_text("utf-8"))


BENCHMARK, SYSTEM, JUDGE = map(shipped, ("quickstart", "systems/bagel", "judges/gpt_4o_2024_11_20"))
COMPARISON = {
    "name": "mine",
    "benchmark": "lab/echo@v1",
    "systems": ["systems/flux_kontext.yaml"],
    "judges": ["judges/gpt_4o_2024_11_20.yaml"],
}


def faults(data: Any) -> list[str]:
    plain = json.loads(json.dumps(data, default=str))
    return [error.message for error in SCHEMA.iter_errors(plain)]


def test_the_schema_is_one() -> None:
    """Of draft 2020-12, with a meaning at every key that a config may have."""
    Draft202012Validator.check_schema(SCHEMA.schema)
    parts = SCHEMA.schema["$defs"].values()
    nodes = (node for part in parts for node in part.get("properties", {}).values() if node)
    assert all(node.get("description") for node in nodes)


@pytest.mark.parametrize(
    "data",
    [
        *(pytest.param(yaml.safe_load(path.read_text("utf-8")), id=path.stem)
          for path in sorted(CONFIGS.rglob("*.yaml"))),
        COMPARISON,
        {**COMPARISON, "systems": [SYSTEM]},
        {**BENCHMARK, "engines": {"reader": {"kind": "theirs", "depth": 3}}},
        {**SYSTEM, "adapter": "theirs", "parameters": {"depth": 3}},
    ],
)  # fmt: skip
def test_what_is_valid_has_no_faults(data: Any) -> None:
    assert faults(data) == []


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
        ({**COMPARISON, "systems": [SYSTEM]}, ("systems", 0, "developer"), "develop"),
        ({**COMPARISON, "judges": [JUDGE]}, ("judges", 0, "status"), "state"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_misspelt_key_is_refused_by_both(
    tmp_path: Path, data: Any, where: tuple[Any, ...], wrong: str
) -> None:
    changed = misspelt(data, where, wrong)
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(changed), "utf-8")
    assert any(wrong in one for one in faults(changed))
    with pytest.raises(ConfigError, match=f"unknown key.*'{wrong}'"):
        load_evaluation(path)


@pytest.mark.parametrize(
    "data",
    [
        {**BENCHMARK, "engines": {"reader": {"kind": "vllm", "model": "m", "max_model_length": 1}}},
        {**BENCHMARK, "engines": {"reader": {"kind": "openai"}}},
        {**BENCHMARK, "engines": {"reader": {"model": "m"}}},
        {**SYSTEM, "adapter": "files", "parameters": {"folder": "drawn", "depth": 3}},
    ],
)
def test_options_of_engines_and_adapters_are_checked(data: Any) -> None:
    assert faults(data)


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}"
        shown = str(field.annotation)
        several = ".*" if shown.startswith(("tuple[", "collections.abc.Mapping[")) else ""
        for inner in find_sections(field.annotation):
            if inner is MetricsOptions:  # its keys are the names of metrics
                for metric in registered().values():
                    yield from keys(metric.Options, f"{prefix}{name}.{metric.name}.")
            elif inner not in (SystemConfig, JudgeConfig):
                yield from keys(inner, f"{prefix}{name}{several}.")


def test_every_key_is_in_the_page() -> None:
    told = set(re.findall(r"^\| `([^`]+)` \|", PAGE.read_text("utf-8"), re.M))
    for model in (Config, EvaluationConfig, SystemConfig, JudgeConfig):
        assert set(keys(model)) <= told


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import config_reference

    module: ModuleType = config_reference
    return module


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
