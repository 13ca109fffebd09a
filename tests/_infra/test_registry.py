"""Engines, systems, sources and platforms are found by name, each in the same way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from echo_hf._infra.registry import Registry, Requirements
from echo_hf.collect.platforms.base import PLATFORMS
from echo_hf.collect.sources.base import SOURCES
from echo_hf.engines.base import ENGINES
from echo_hf.errors import MissingExtraError
from echo_hf.systems.registry import SYSTEMS

EVERY: list[Registry[Any, Any]] = [ENGINES, SYSTEMS, SOURCES, PLATFORMS]


@pytest.fixture(params=EVERY, ids=lambda one: one.kind)
def registry(request: pytest.FixtureRequest) -> Registry[Any, Any]:
    found: Registry[Any, Any] = request.param
    return found


def test_our_own_are_loaded_by_their_names(registry: Registry[Any, Any]) -> None:
    assert all(callable(registry.find(name)) for name in registry.built_in)
    assert registry.list_names() == sorted(set(registry.list_names()))


def test_what_is_registered_is_found(registry: Registry[Any, Any]) -> None:
    made = registry.register("ours", "facts")(dict)
    assert made is dict
    assert (registry.find("ours"), registry.facts("ours")) == (dict, "facts")
    assert "ours" in registry.list_names()


def test_an_unknown_name_gets_the_nearest(registry: Registry[Any, Any]) -> None:
    registry.register("northlight")(dict)
    for ask in (registry.find, registry.check):
        with pytest.raises(registry.error) as caught:
            ask("nortlight", "here")
        assert str(caught.value) == (
            f"here: unknown {registry.kind} 'nortlight'; did you mean 'northlight'? "
            f"known: {', '.join(registry.list_names())}"
        )


def test_another_package_brings_a_member(
    registry: Registry[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    points = "theirs = json:loads\nbroken = no_such_package_at_all:A\nabsent = json:NoSuchName\n"
    (about / "entry_points.txt").write_text(f"[{registry.group}]\n{points}")
    monkeypatch.syspath_prepend(tmp_path)
    assert registry.find("theirs").__name__ == "loads"
    assert registry.facts("theirs") is None
    assert {"theirs", "broken", "absent"} <= set(registry.list_names())
    for name in ("broken", "absent"):
        with pytest.raises(registry.error, match=rf"{registry.kind} '{name}' comes from .* fix"):
            registry.find(name)


@pytest.mark.parametrize("package", ["no_such_package_at_all", "no_such_package_at_all.part"])
def test_a_missing_package_says_what_to_install(package: str) -> None:
    lacks = Requirements("draws", "diffusers", ("json", package))
    assert lacks.missing == (package,)
    with pytest.raises(MissingExtraError, match=r"^here .*echo-hf\[diffusers\]"):
        lacks.check_installed("here")
    Requirements("draws", "diffusers", ("json",)).check_installed("here")
