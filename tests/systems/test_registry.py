"""Adapters are found by name, and say what is missing for them."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from echo_hf.errors import GenerationError, MissingExtraError
from echo_hf.systems import registry
from echo_hf.systems.base import System
from echo_hf.systems.registry import adapter_names, adapter_needs, make_system, register
from tests.systems.runs_for_tests import ADAPTER, Acting, known, system


def test_an_adapter_is_found_by_its_name() -> None:
    """While it is registered; what it makes is a system."""
    acting = Acting()
    with known(acting):
        assert make_system(system()) is acting
        assert isinstance(acting, System)
        assert ADAPTER in adapter_names()
        assert adapter_needs()[ADAPTER].about == "acts for tests"
    with pytest.raises(
        GenerationError, match=r"system 'mine': unknown adapter 'acting'; .*known: "
    ):
        make_system(system())


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is imported, and only where one is missing."""
    for name, package in (("lacks", "no_such_package_at_all"), ("has", "json")):
        register(name, extra="diffusers", packages=(package,))(Acting)
    try:
        with pytest.raises(MissingExtraError, match=r"'mine' .*echo-hf\[diffusers\]"):
            make_system(system(adapter="lacks"))
        assert adapter_needs()["lacks"].missing == ("no_such_package_at_all",)
        assert isinstance(make_system(system(adapter="has")), Acting)
    finally:
        for name in ("lacks", "has"):
            monkeypatch.delitem(registry._FACTORIES, name)
            monkeypatch.delitem(registry._NEEDS, name)


def test_another_package_brings_an_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an entry point; one that cannot be loaded is named."""
    points = [
        EntryPoint("theirs", "tests.systems.runs_for_tests:Acting", registry.ENTRY_POINTS),
        EntryPoint("broken", "no_such_package_at_all:System", registry.ENTRY_POINTS),
        EntryPoint("absent", "json:NoSystem", registry.ENTRY_POINTS),
    ]
    monkeypatch.setattr(
        registry, "entry_points", lambda group: EntryPoints(points).select(group=group)
    )
    assert type(make_system(system(adapter="theirs"))).__name__ == "Acting"
    assert {"theirs", "broken"} <= set(adapter_names())
    assert adapter_needs()["theirs"].about == "from another package"
    for name in ("broken", "absent"):
        with pytest.raises(GenerationError, match=rf"adapter '{name}' comes from .* mend"):
            make_system(system(adapter=name))
