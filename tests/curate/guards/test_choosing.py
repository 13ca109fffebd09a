"""Telling the form of a guard from its engine."""

from __future__ import annotations

import pytest

from echo_hf.config.loading import Config, parse_config
from echo_hf.config.sections import chosen_form, form_of
from echo_hf.errors import ConfigError

BY_ENGINE = [
    ("vllm", "meta-llama/Llama-Guard-4-12B", "llama_guard"),
    ("openai", "meta-llama/llama-guard-4-12b", "llama_guard"),
    ("transformers", "/models/Llama-Guard-3-11B-Vision", "llama_guard"),
    ("auto", "my-llama-guard", "llama_guard"),
    ("moderation", "omni-moderation-latest", "moderation"),
    ("moderation", None, "moderation"),
    ("vllm", "Qwen/Qwen2.5-VL-32B-Instruct", "instructed"),
    ("vllm", "meta-llama/Llama-4-Scout-17B-16E-Instruct", "instructed"),
    ("rules", None, "instructed"),
]


@pytest.mark.parametrize(("kind", "model", "form"), BY_ENGINE)
def test_a_form_follows_from_kind_and_model(kind: str, model: str | None, form: str) -> None:
    assert chosen_form("auto", kind, model) == form


def test_what_the_config_says_counts() -> None:
    assert chosen_form("llama_guard", "openai", "guard-of-ours") == "llama_guard"
    assert chosen_form("instructed", "vllm", "meta-llama/Llama-Guard-4-12B") == "instructed"
    assert chosen_form("moderation", "ours", None) == "moderation"
    assert chosen_form("llama_guard", "vllm", "meta-llama/Llama-Guard-2-8B") == "llama_guard"


@pytest.mark.parametrize(
    "model", ["meta-llama/Meta-Llama-Guard-2-8B", "meta-llama/LlamaGuard-7b", "org/llama_guard_5"]
)
def test_other_generations_have_other_codes(model: str) -> None:
    """Their S8 may be weapons: they are not taken for what they are called."""
    with pytest.raises(ConfigError, match="Llama Guard 3 and 4") as caught:
        chosen_form("auto", "vllm", model)
    assert repr(model) in str(caught.value)


@pytest.mark.parametrize("wanted", ["llama_guard", "instructed"])
def test_an_endpoint_takes_one_form(wanted: str) -> None:
    with pytest.raises(ConfigError, match=f"form is '{wanted}'.* expected moderation or auto"):
        chosen_form(wanted, "moderation", None)  # type: ignore[arg-type]


def config(engines: dict[str, dict[str, str]], safety: dict[str, str]) -> Config:
    return parse_config(
        {
            "name": "lumen",
            "target": {"name": "Lumen", "developer": "Northlight", "released": "2026-03-02"},
            "posts": [{"source": "quickstart"}],
            "engines": engines,
            "stages": {"safety": safety},
        },
        "c.yaml",
    )


RULES = {"kind": "rules"}
GUARD = {"kind": "vllm", "model": "meta-llama/Llama-Guard-4-12B"}


def test_the_engine_of_the_stage_decides() -> None:
    engines = {"text": RULES, "vision": RULES, "guard": GUARD}

    assert form_of(config(engines, {})) == "llama_guard"
    assert form_of(config(engines, {"engine": "text"})) == "instructed"
    assert form_of(config({"text": GUARD}, {})) == "llama_guard"


def test_a_mistake_is_told_before_anything_runs() -> None:
    engines = {"text": RULES, "vision": RULES, "guard": {"kind": "moderation"}}
    with pytest.raises(ConfigError, match=r"^c\.yaml: stages\.safety\.form is 'instructed'"):
        config(engines, {"form": "instructed"})
