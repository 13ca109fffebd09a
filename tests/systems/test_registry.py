"""Adapters: what they take from a config, what is missing for them, and the systems that ship."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ConfigDict

from echo_hf.config.systems import read_system, shipped_systems
from echo_hf.errors import GenerationError, MissingExtraError
from echo_hf.systems.base import System
from echo_hf.systems.generate import SystemListing, list_systems
from echo_hf.systems.registry import described, make_system, options_of, register
from tests.systems.runs_for_tests import ADAPTER, Acting, system


class Options(BaseModel):
    """Parameters of an adapter."""

    model_config = ConfigDict(extra="forbid")

    steps: int = 20


def test_the_parameters_are_those_of_the_adapter() -> None:
    assert options_of(system(parameters={"steps": 4}), Options).steps == 4
    with pytest.raises(GenerationError, match="parameters: unknown key 'step'; did you"):
        options_of(system(parameters={"step": 4}), Options)


INNER = {"inner": {"steps": 2, "api_key_env": "A"}}


@pytest.mark.parametrize(
    ("change", "decides"),
    [
        ({"adapter": "other"}, True),
        ({"model": "n"}, True),
        ({"parameters": {"inner": {"steps": 3, "api_key_env": "A"}}}, True),
        ({"parameters": {"inner": {"steps": 2, "api_key_env": "B"}}}, False),
        ({"parameters": {"inner": {"steps": 2}, "folder": "/elsewhere"}}, False),
        ({"size": "match_input"}, True),
        ({"seed": 1}, True),
        ({"limits": {"concurrency": 7}}, False),
        ({"price": {"usd_per_image": 1, "as_of": "2026-01-01"}}, False),
        ({"note": "as published", "name": "yours"}, False),
    ],
)
def test_what_decides_an_image_changes_the_signature(change: dict[str, Any], decides: bool) -> None:
    before = {"model": "m", "parameters": INNER}
    plain = described(system(**before))
    assert plain == {
        "adapter": ADAPTER,
        "model": "m",
        "parameters": {"inner": {"steps": 2}},
        "size": "auto",
        "seed": 0,
    }
    assert (described(system(**{**before, **change})) != plain) == decides


# What is missing.


@pytest.fixture
def _adapters() -> None:
    register("hosted", extra="openai", packages=("json",), key="LUMEN_API_KEY")(Acting)
    register("local", extra="diffusers", packages=("no_such_package_at_all",))(Acting)


def listed(folder: Path, *systems: dict[str, Any], **environment: str) -> list[SystemListing]:
    every = [
        system(f"s{number}", **one).model_dump(mode="json") for number, one in enumerate(systems)
    ]
    data = {"name": "x", "benchmark": "a/b", "systems": every}
    (folder / "config.yaml").write_text(yaml.safe_dump(data))
    return list_systems(folder / "config.yaml", environment)


@pytest.mark.usefixtures("_adapters")
def test_a_key_is_there_or_not(tmp_path: Path) -> None:
    own, other, none = listed(
        tmp_path,
        {"adapter": "hosted"},
        {"adapter": "hosted", "parameters": {"api_key_env": "OTHER_KEY"}},
        {"adapter": "hosted", "parameters": {"api_key_env": None}},
        LUMEN_API_KEY="tulip-1234",
        OTHER_KEY=" ",
    )
    assert [one.keys for one in (own, other, none)] == [
        {"LUMEN_API_KEY": True},
        {"OTHER_KEY": False},
        {},
    ]
    assert "tulip" not in repr([own, other, none])


@pytest.mark.usefixtures("_adapters")
def test_what_is_missing_is_said_of_every_part(tmp_path: Path) -> None:
    local, both, unheard, made, seeded = listed(
        tmp_path,
        {"adapter": "local", "price": {"usd_per_image": 0.5, "as_of": "2026-01-01"}},
        {"adapter": "hosted", "parameters": {"system": {"adapter": "local"}}},
        {"adapter": "unheard-of"},
        {"adapter": "files", "parameters": {"folder": "drawn"}},
        {"adapter": "hosted"},
    )
    assert (local.extra, local.keys, local.image.cost_usd) == ("diffusers", {}, 0.5)
    assert (both.extra, both.keys) == ("diffusers", {"LUMEN_API_KEY": False})
    assert [one.known for one in (local, both, unheard)] == [True, True, False]
    assert (unheard.extra, unheard.file, unheard.image.cost_usd) == (None, None, None)
    assert (made.image.cost_usd, made.no_folder) == (0.0, "drawn")
    assert (seeded.determinism, local.determinism) == ("the same seed gives the same image", None)


# The systems that echo-hf brings.

FILES = list(shipped_systems())
# As the figures of the paper call them; the second group cannot be had any more.
PUBLISHED = {
    *("Anole", "Bagel", "Bagel-Think", "Flux Kontext", "Nano Banana"),
    *("4o Image Gen", "Gemini 2.0 Flash", "LLM+Diffusion"),
}
GONE = {"4o Image Gen", "Gemini 2.0 Flash", "LLM+Diffusion"}


def test_all_of_the_paper_are_there_and_some_of_today() -> None:
    """Each of the paper's eight is one file's, or what stands in for it; names are unique."""
    systems = [read_system(file) for file in FILES]
    stand_for = [one.stands_for for one in systems if one.status in ("as_published", "substitute")]
    assert sorted(filter(None, {*stand_for})) == sorted(PUBLISHED)
    assert sum(one.status == "current" for one in systems) >= 6
    assert max(Counter(one.name for one in systems).values()) == 1
    assert [one.file for one in list_systems()] == FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_shipped_system_can_be_made_and_says_what_it_stands_for(file: Path) -> None:
    """By the paper's own name; what is gone is never called the paper's own."""
    config = read_system(file)
    assert config.name == file.stem
    if config.stands_for is not None:
        assert config.stands_for in PUBLISHED
        assert config.note
    if config.stands_for in GONE:
        assert config.status in ("substitute", "replay")
    try:
        made = make_system(config)
    except MissingExtraError:  # of its adapter, or of a part of it
        return
    assert isinstance(made, System)
    with made:
        first = json.dumps(made.signature(), sort_keys=True)
        assert first == json.dumps(make_system(config).signature(), sort_keys=True)
        assert made.concurrency >= 1
        assert made.determinism
