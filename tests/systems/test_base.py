"""Adapters are found by name, and say what is missing for them."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from echo_hf.errors import GenerationError, MissingExtraError
from echo_hf.systems import base
from echo_hf.systems.base import (
    System,
    adapter_names,
    adapter_needs,
    described,
    make_system,
    model_of,
    options_of,
    register,
)
from tests.systems.runs_for_tests import ADAPTER, Acting, known, system


class Options(BaseModel):
    """Parameters of an adapter."""

    model_config = ConfigDict(extra="forbid")

    steps: int = 20


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
            monkeypatch.delitem(base._FACTORIES, name)
            monkeypatch.delitem(base._NEEDS, name)


def test_another_package_brings_an_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an entry point; one that cannot be loaded is named."""
    points = [
        EntryPoint("theirs", "tests.systems.runs_for_tests:Acting", base.ENTRY_POINTS),
        EntryPoint("broken", "no_such_package_at_all:System", base.ENTRY_POINTS),
        EntryPoint("absent", "json:NoSystem", base.ENTRY_POINTS),
    ]
    monkeypatch.setattr(base, "entry_points", lambda group: EntryPoints(points).select(group=group))
    assert type(make_system(system(adapter="theirs"))).__name__ == "Acting"
    assert {"theirs", "broken"} <= set(adapter_names())
    assert adapter_needs()["theirs"].about == "from another package"
    for name in ("broken", "absent"):
        with pytest.raises(GenerationError, match=rf"adapter '{name}' comes from .* mend"):
            make_system(system(adapter=name))


def test_the_parameters_are_those_of_the_adapter() -> None:
    """An unknown one, or a bad value, is one line with the system's name."""
    assert options_of(system(parameters={"steps": 4}), Options).steps == 4
    for parameters, words in (
        ({"step": 4}, "system 'mine': parameters: unknown key 'step'; did you mean 'steps'?"),
        ({"steps": "x"}, "system 'mine': parameters: steps is 'x': "),
    ):
        with pytest.raises(GenerationError) as raised:
            options_of(system(parameters=parameters), Options)
        assert str(raised.value).startswith(words)


def test_a_model_is_asked_for() -> None:
    """Where an adapter needs one."""
    assert model_of(system(model="lab/lumen")) == "lab/lumen"
    with pytest.raises(GenerationError, match="system 'mine' has no model"):
        model_of(system())


SIZE = {"width": 64, "height": 32}


def test_a_signature_begins_with_what_decides_a_picture() -> None:
    """Adapter, model, parameters, size and seed, as plain data."""
    config = system(model="m", parameters={"steps": 2}, size=SIZE, seed=3)
    assert described(config) == {
        "adapter": ADAPTER,
        "model": "m",
        "parameters": {"steps": 2},
        "size": SIZE,
        "seed": 3,
    }


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
        ({"note": "as published"}, False),
        ({"name": "yours"}, False),
    ],
)
def test_what_decides_a_picture_changes_the_signature(
    change: dict[str, Any], decides: bool
) -> None:
    """And nothing else does: places, keys, limits, prices and words about it."""
    before = {"model": "m", "parameters": {"inner": {"steps": 2, "api_key_env": "A"}}}
    after = described(system(**{**before, **change}))
    assert (after != described(system(**before))) == decides
