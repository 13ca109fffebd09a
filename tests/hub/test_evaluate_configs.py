"""The configs of the module for `evaluate`, without evaluate."""

from __future__ import annotations

import inspect
import json
import math
from dataclasses import dataclass
from typing import Any

import pytest
from PIL import Image

import echo_hf
from echo_hf.errors import ScoreError
from echo_hf.hub.evaluate_configs import CONFIGS, config_named, plain
from echo_hf.metrics import color_shift

PLAIN = [name for name, one in CONFIGS.items() if not one.extra]
GREY = Image.linear_gradient("L")


@pytest.mark.parametrize("name", CONFIGS)
def test_every_parameter_of_a_measure_passes_and_no_other(name: str) -> None:
    """What the function takes beside its data, `compute` takes."""
    config = CONFIGS[name]
    known = list(inspect.signature(getattr(getattr(echo_hf, config.part), name)).parameters)
    taken = 1 if config.columns.features.keys() == {"predictions"} else 2
    config.check_options(known[taken:])
    for data in known[:taken]:
        with pytest.raises(ScoreError, match=f"{name}: unknown parameter '{data}'"):
            config.check_options([data])


def test_every_measure_that_has_a_config_is_there() -> None:
    """And of those that the module is to offer none is missing."""
    assert set(CONFIGS) == {
        "win_rate",
        "color_shift",
        "face_identity",
        "structure_distance",
        "text_rendering",
    }
    for name, config in CONFIGS.items():
        assert callable(getattr(getattr(echo_hf, config.part), name))
    assert set(PLAIN) == {"win_rate", "color_shift", "text_rendering"}


def test_a_name_finds_its_config() -> None:
    """And says itself what it is called."""
    assert [config_named(name).name for name in CONFIGS] == list(CONFIGS)


@pytest.mark.parametrize("name", PLAIN)
def test_the_documented_keys_are_those_of_the_result(name: str) -> None:
    """What `gives` lists, in any order, is what is given."""
    config = CONFIGS[name]
    if config.part == "scores" or name == "text_rendering":
        row = {"sample_id": "s", "system": "a", "judge": "j", "rating": 5}
        result = getattr(getattr(echo_hf, config.part), name)([row])
    else:
        result = getattr(echo_hf.metrics, name)([GREY], [GREY])
    said = config.gives.replace(" (of reasons)", "")
    assert sorted(part.strip() for part in said.split(",")) == sorted(plain(result))


def test_a_plain_result_is_what_its_json_gives() -> None:
    """Lists for tuples, text for reasons, and how many samples have each reason."""
    found = plain(color_shift([GREY, GREY, GREY], [GREY, None, None], n_boot=0))
    assert json.loads(json.dumps(found)) == found
    assert found["per_sample"] == [0.0, None, None]
    assert found["counts"] == {"missing_output": 2}
    assert {type(key) for key in found["counts"]} == {str}
    assert found["reasons"][1]["reason"] == "missing_output"


def test_a_number_that_json_cannot_hold_is_an_error() -> None:
    """It would be written as NaN, which no other reader of JSON takes."""

    @dataclass
    class Odd:
        def as_json(self) -> dict[str, Any]:
            return {"value": math.nan}

    with pytest.raises(ValueError, match="JSON"):
        plain(Odd())
