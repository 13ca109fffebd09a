"""What an adapter takes from a config, and what of it decides an image."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from echo_hf.errors import GenerationError
from echo_hf.systems.registry import described, model_of, options_of
from tests.systems.runs_for_tests import ADAPTER, system


class Options(BaseModel):
    """Parameters of an adapter."""

    model_config = ConfigDict(extra="forbid")

    steps: int = 20


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


def test_a_signature_begins_with_what_decides_an_image() -> None:
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
def test_what_decides_an_image_changes_the_signature(change: dict[str, Any], decides: bool) -> None:
    """And nothing else does: places, keys, limits, prices and words about it."""
    before = {"model": "m", "parameters": {"inner": {"steps": 2, "api_key_env": "A"}}}
    after = described(system(**{**before, **change}))
    assert (after != described(system(**before))) == decides
