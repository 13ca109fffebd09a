"""Systems are listed with what is missing to run them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.config.systems import shipped_systems
from echo_hf.systems.generate import SystemListing, list_systems
from echo_hf.systems.registry import register
from tests.systems.runs_for_tests import Acting, system


@pytest.fixture(autouse=True)
def _adapters() -> None:
    register("hosted", extra="openai", packages=("json",), key="LUMEN_API_KEY")(Acting)
    register("local", extra="diffusers", packages=("no_such_package_at_all",))(Acting)


def listed(folder: Path, *systems: dict[str, Any], **environment: str) -> list[SystemListing]:
    """The systems of a config."""
    every = [
        system(f"s{number}", **one).model_dump(mode="json") for number, one in enumerate(systems)
    ]
    data = {"name": "x", "benchmark": "a/b", "systems": every}
    (folder / "config.yaml").write_text(yaml.safe_dump(data))
    return list_systems(folder / "config.yaml", environment)


def test_a_key_is_there_or_not(tmp_path: Path) -> None:
    """The adapter's own variable, or the one that the config names; its value is not told."""
    own, other, none = listed(
        tmp_path,
        {"adapter": "hosted"},
        {"adapter": "hosted", "parameters": {"api_key_env": "OTHER_KEY"}},
        {"adapter": "hosted", "parameters": {"api_key_env": None}},
        LUMEN_API_KEY="tulip-1234",
        OTHER_KEY=" ",
    )
    assert own.keys == {"LUMEN_API_KEY": True}
    assert other.keys == {"OTHER_KEY": False}
    assert none.keys == {}
    assert "tulip" not in repr([own, other, none])


def test_what_is_missing_is_said_of_every_part(tmp_path: Path) -> None:
    """Also of a system inside another one, alone or in a list."""
    local, both, in_list, unheard, made = listed(
        tmp_path,
        {"adapter": "local", "price": {"usd_per_image": 0.5, "as_of": "2026-01-01"}},
        {"adapter": "hosted", "parameters": {"system": {"adapter": "local"}}},
        {"adapter": "local", "parameters": {"writers": [{"adapter": "hosted"}]}},
        {"adapter": "unheard-of"},
        {"adapter": "files", "parameters": {"folder": "drawn"}},
    )
    assert (local.extra, local.keys, local.usd_per_image) == ("diffusers", {}, 0.5)
    assert (both.extra, both.keys) == ("diffusers", {"LUMEN_API_KEY": False})
    assert in_list.keys == {"LUMEN_API_KEY": False}
    assert [one.known for one in (local, both, in_list, unheard)] == [True, True, True, False]
    assert unheard.extra is None
    assert (unheard.usd_per_image, made.usd_per_image) == (None, 0.0)
    assert unheard.file is None


def test_without_a_config_those_that_echo_hf_brings() -> None:
    """Each with its file."""
    assert [one.file for one in list_systems()] == list(shipped_systems())


def test_what_a_seed_gives_is_told_of_what_can_be_made_here(tmp_path: Path) -> None:
    """By the system itself; nothing of one whose packages are missing."""
    made, missing = listed(tmp_path, {"adapter": "hosted"}, {"adapter": "local"})
    assert made.determinism == "the same seed gives the same image"
    assert missing.determinism is None
