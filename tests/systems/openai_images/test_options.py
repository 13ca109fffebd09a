"""What a config says of such a server: its mistakes, and what of it decides an image."""

from __future__ import annotations

import json
from typing import Any

import pytest

from echo_hf.errors import EchoError, GenerationError
from echo_hf.systems.registry import make_system
from tests.systems.openai_images.images_for_tests import PRICE, config

CHOICES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"model": "other"}, {}),
    ({"size": "match_input"}, {}),
    ({"size": {"width": 512, "height": 512}}, {}),
    ({"seed": 3}, {"send_seed": True}),
    ({}, {"send_seed": True}),
    ({}, {"quality": "low"}),
    ({}, {"background": "opaque"}),
    ({}, {"moderation": "low"}),
    ({}, {"output_format": "jpeg"}),
    ({}, {"input_fidelity": "high"}),
    ({}, {"mode": "chat"}),
    ({"size": "match_input"}, {"sizes": ["1024x1024"]}),
    ({"size": "match_input"}, {"pixels": 262_144}),
    ({}, {"revision": "b"}),
    ({}, {"extra": {"steps": 3}}),
    ({}, {"base_url": "https://draw.example/v1"}),
    ({}, {"base_url": "http://127.0.0.1:8000/other/v1"}),
    ({}, {"base_url": "https://draw.example/other/v1"}),
]


def test_the_signature_changes_with_what_decides_an_image() -> None:
    """Each of the choices gives another one; it can be written as JSON."""
    local = {"base_url": "http://127.0.0.1:8000/v1"}
    signatures = [make_system(config(local)).signature()] + [
        make_system(config({**local, **parameters}, **further)).signature()
        for further, parameters in CHOICES
    ]
    written = {json.dumps(one, sort_keys=True) for one in signatures}
    assert len(written) == len(CHOICES) + 1


@pytest.mark.parametrize(
    ("further", "parameters"),
    [
        ({}, {"base_url": "http://127.0.0.1:9999/v1"}),
        ({}, {"base_url": "http://127.0.0.1:8000/v1/"}),
        ({}, {"most_inputs": 2}),
        ({}, {"fewest_inputs": 1}),
        ({}, {"sizes": ["1024x1024"]}),  # nothing is likened to an input
        ({}, {"pixels": 262_144}),
        ({}, {"quality": None}),  # which is the default
        ({}, {"extra": {}}),
        ({}, {"api_key_env": "MY_VARIABLE"}),
        ({"limits": {"concurrency": 3, "timeout_s": 5}}, {}),
        ({"price": PRICE}, {}),
        ({"name": "renamed"}, {}),
        ({"seed": 9}, {}),  # OpenAI's own models take none
    ],
    ids=str,
)
def test_the_signature_keeps_to_what_decides_an_image(
    further: dict[str, Any], parameters: dict[str, Any]
) -> None:
    """Neither ports nor variables, nor limits, prices, names, defaults, or what is not sent."""
    local = {"base_url": "http://127.0.0.1:8000/v1"}
    plain = make_system(config(local)).signature()
    assert make_system(config({**local, **parameters}, **further)).signature() == plain


def test_the_signature_holds_no_default() -> None:
    """So that an option which comes later changes none; nor does it show a path."""
    signature = make_system(config({"base_url": "https://draw.example/tulip/v1"})).signature()
    assert set(signature) == {"adapter", "wording", "server", "path", "model", "size", "seed"}
    assert "tulip" not in json.dumps(signature)


@pytest.mark.parametrize(
    ("further", "parameters", "message"),
    [
        ({}, {"qualty": "high"}, "unknown key 'qualty'; did you mean 'quality'?"),
        ({"model": None}, {}, "has no model: adapter 'openai_images' needs one"),
        ({}, {"mode": "video"}, "mode is 'video'"),
        ({}, {"output_format": "gif"}, "output_format is 'gif'"),
        ({}, {"send_seed": "yes"}, "send_seed is 'yes'"),
        ({}, {"most_inputs": -1}, "most_inputs is -1"),
        ({}, {"most_inputs": 1, "fewest_inputs": 2}, "fewest_inputs is 2 and most_inputs 1"),
        ({}, {"sizes": ["big"]}, "'big' is not a size: expected width and height"),
        ({}, {"extra": {"n": 4}}, "expected no n, which the adapter sets itself"),
        ({}, {"extra": {"x": float("nan")}}, "expected what JSON can hold"),
        ({}, {"base_url": "draw.example"}, "base_url is 'draw.example': expected an address"),
        ({}, {"base_url": "https://a.example/v1/images/edits"}, "leave out '/images/edits'"),
        ({}, {"mode": "chat", "quality": "low"}, "mode chat takes no quality"),
        ({"size": "match_input"}, {"mode": "chat"}, "size is 'match_input', and mode chat has"),
    ],
)
def test_mistakes_in_a_config_are_told_in_one_line(
    further: dict[str, Any], parameters: dict[str, Any], message: str
) -> None:
    """With the value, what was expected, and the nearest name."""
    with pytest.raises(EchoError) as caught:
        make_system(config(parameters, **further))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_key_in_place_of_its_variable_is_not_shown() -> None:
    """It is easily mistaken for one."""
    with pytest.raises(GenerationError, match="not a name of an environment variable") as caught:
        make_system(config({"api_key_env": "tulip-1234-of-mine"}))
    assert "tulip-1234-of-mine" not in str(caught.value)
