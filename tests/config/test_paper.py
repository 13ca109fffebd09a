"""A config that reproduces the paper says of each difference why; the paper's values stand here."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any

import pytest
import yaml

from echo_hf.config.evaluation import load_named_files
from echo_hf.config.loading import Config, parse_config
from echo_hf.config.paper import find_differences
from echo_hf.config.systems import shipped_configs
from echo_hf.errors import ConfigError

PLACE = "paper.yaml"
# Section 5, and the caption of figure E.1.
SYSTEMS = {
    *("4o Image Gen", "Nano Banana", "Gemini 2.0 Flash", "Bagel", "Bagel-Think"),
    *("Flux Kontext", "LLM+Diffusion", "Anole"),
}
JUDGES = {"GPT-4o", "Gemini 2.0 Flash", "Qwen2.5-VL-32B-Instruct"}


@cache
def whole(name: str) -> dict[str, Any]:
    """A config that comes along, with the files that it names."""
    text = (shipped_configs() / f"{name}.yaml").read_text("utf-8")
    data: dict[str, Any] = load_named_files(yaml.safe_load(text), shipped_configs())
    return data


def shipped(name: str = "paper") -> dict[str, Any]:
    return deepcopy(whole(name))


POSTS = shipped()["posts"]
MINI = {"kind": "openai", "model": "gpt-4o-mini"}  # no version of gpt-4o


def changed(key: str, value: Any, why: str | None = None) -> dict[str, Any]:
    data = shipped()
    *parents, last = key.split(".")
    section = data
    for parent in parents:
        section = section.setdefault(parent, {})
    section[last] = value
    if why is not None:
        data["paper"]["differences"][key] = why
    return data


def read(data: dict[str, Any]) -> Config:
    return parse_config(data, PLACE)


def test_the_paper_has_eight_systems_and_three_judges_all_stood_for() -> None:
    config = read(shipped())
    assert {one.stands_for for one in config.systems} == SYSTEMS
    assert {one.stands_for for one in config.judges} == JUDGES
    assert (len(config.systems), len(config.judges)) == (8, 3)
    rated_text = [one.stands_for for one in config.judges if "text_rendering" in one.rubrics]
    assert rated_text == ["GPT-4o"]  # figure E.2


def test_what_stands_in_is_told_with_its_note_and_every_system_and_judge_is_named() -> None:
    config = read(shipped())
    told = {one.what: one.why for one in find_differences(config)}
    for kind, some in (("system", config.systems), ("judge", config.judges)):
        for one in some:
            how = "in place of" if one.status == "substitute" else "the paper's"
            assert told[f"{kind} {one.name}, {how} {one.stands_for}"] == one.note
    assert "prompts" in told


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("stages.relevance.keep", [5], "is '5' and the paper has '4, 5'"),
        ("stages.screenshots.inset", 0, "is '0' and the paper has '10'"),
        ("stages.safety.remove", ["S2", "S1"], "is 'S1, S2' and the paper has 'S1, S2, S3"),
        ("splits.doubts", "analysis", "is 'analysis' and the paper has 'keep'"),
        ("splits.cap", 500, "is '500' and the paper has '1000'"),
        ("protocol", "corrected", "is 'corrected' and the paper has 'published'"),
        ("applicability", None, "is 'none' and the paper has 'gpt-4o'"),
        ("analysis.perplexity", {"model": "gpt2"}, "is 'gpt2' and the paper has 'pythia-12b'"),
        ("stages.relevance.engine", "screens", "and the paper has 'gpt-4o'"),
        ("posts", [{"source": "quickstart"}], "is 'quickstart' and the paper has 'x: 4o, chatgpt"),
        ("posts", [*POSTS, {"source": "quickstart"}], "windows of 7d and quickstart' and the"),
        ("applicability", {"engine": MINI}, "is 'gpt-4o-mini' and the paper has 'gpt-4o'"),
    ],
)
def test_a_value_that_is_not_the_papers_needs_a_reason(key: str, value: Any, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(changed(key, value))
    message = str(refused.value)
    assert message.startswith(f"{PLACE}: {key}: ")
    assert said in message
    assert f"paper.differences, as {key!r}" in message
    (line,) = (
        one
        for one in find_differences(read(changed(key, value, "It is a trial.")))
        if key in one.what
    )
    assert line.why == "It is a trial."


def test_all_that_lacks_a_reason_is_named_at_once() -> None:
    data = changed("splits.cap", 3)
    data["protocol"] = "corrected"
    data["stages"]["screenshots"]["inset"] = 0
    keys = (r"stages\.screenshots\.inset", r"splits\.cap", "protocol")
    with pytest.raises(ConfigError, match="; ".join(f"{key}: is .*, as '{key}'" for key in keys)):
        read(data)


def test_a_system_and_a_judge_that_nothing_stands_for_need_a_reason() -> None:
    for kind, name in (("systems", "Anole"), ("judges", "GPT-4o")):
        data = shipped()
        data[kind] = [one for one in data[kind] if one["stands_for"] != name]
        with pytest.raises(ConfigError, match=rf"{kind}\.{name}: nothing stands for it"):
            read(data)
        data["paper"]["differences"][f"{kind}.{name}"] = "It is not run."
        told = {one.what: one.why for one in find_differences(read(data))}
        assert told[f"{kind}.{name}: nothing stands for it"] == "It is not run."


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("splits.cap", "paper.differences.splits.cap: it is as in the paper, '1000'"),
        ("splits.caps", "unknown difference 'splits.caps'"),
        ("systems.Anolle", "did you mean 'systems.Anole'"),
    ],
)
def test_a_reason_for_what_does_not_differ_is_refused(key: str, said: str) -> None:
    data = shipped()
    data["paper"]["differences"][key] = "So."
    with pytest.raises(ConfigError) as refused:
        read(data)
    assert said in str(refused.value)


def test_a_config_that_does_not_claim_to_be_the_paper_has_no_differences() -> None:
    assert find_differences(read({**shipped("quickstart"), "protocol": "corrected"})) == ()


def test_the_open_config_differs_in_engines_systems_and_judges_alone() -> None:
    paper, free = shipped(), shipped("paper_open")
    differing = {"name", "engines", "stages", "systems", "judges", "applicability", "paper"}
    assert {key for key in paper if paper[key] != free.get(key)} <= differing
    config = read(free)
    kinds = {choice.kind for choice in config.engines.values()}
    assert kinds | {one.engine.kind for one in config.judges} == {"vllm"}
    local = {"anole", "command", "diffusers", "rewrite"}
    assert {one.adapter for one in config.systems} <= local
    assert not any("openai" in str(one.parameters) for one in config.systems)
    assert config.stages.relevance == read(paper).stages.relevance.model_copy(
        update={"engine": config.stages.relevance.engine}
    )
