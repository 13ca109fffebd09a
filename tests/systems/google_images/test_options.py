"""What a config says about a Gemini model, without the client."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import pytest

from echo_hf.errors import GenerationError, MissingExtraError
from echo_hf.systems.google_images import GoogleImages, read_options
from echo_hf.systems.registry import make_system
from tests.systems.google_images.gemini_for_tests import config


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gemini-2.5-flash-image", 3),
        ("gemini-2.5-flash-image-preview", 3),
        ("gemini-2.0-flash-preview-image-generation", 3),
        ("gemini-3-pro-image", 14),
        ("gemini-nano-banana-2.1", 14),
    ],
)
def test_the_number_of_inputs_is_the_models(model: str, expected: int) -> None:
    """Unless the config says another."""
    assert read_options(config({}, model=model)).most_inputs == expected
    assert read_options(config({"most_inputs": 5}, model=model)).most_inputs == 5


@pytest.mark.parametrize(
    ("further", "parameters", "message"),
    [
        ({}, {"image_sise": "1K"}, "unknown key 'image_sise'; did you mean 'image_size'?"),
        ({"model": None}, {}, "has no model: adapter 'google' needs one"),
        ({}, {"aspect_ratios": ["wide"]}, "'wide' is not a ratio: expected two numbers"),
        ({}, {"aspect_ratios": []}, "aspect_ratios is []"),
        ({}, {"modalities": ["TEXT"]}, "expected IMAGE among them"),
        ({}, {"safety_settings": {"HARASSMENT": "OFF"}}, "'HARASSMENT' is not a category"),
        ({}, {"safety_settings": {"HARM_CATEGORY_HARASSMENT": "LOW"}}, "is 'LOW'"),
        ({}, {"base_url": "https://a.example/?x=1"}, "base_url has more than scheme"),
        ({"size": {"width": 1000, "height": 700}}, {}, "size is 1000 x 700, and the model"),
        ({}, {"fewest_inputs": 20}, "fewest_inputs is 20 and most_inputs 14"),
    ],
)
def test_mistakes_in_a_config_are_told_in_one_line(
    further: dict[str, Any], parameters: dict[str, Any], message: str
) -> None:
    """With the value, what was expected, and the nearest name."""
    with pytest.raises(GenerationError) as caught:
        GoogleImages(config(parameters, **further))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_fixed_size_names_one_of_the_shapes() -> None:
    """Exactly: 1920 x 1080 is 16:9."""
    read_options(config({}, size={"width": 1920, "height": 1080}))


def test_a_key_in_place_of_its_variable_is_not_shown() -> None:
    """It is easily mistaken for one."""
    with pytest.raises(GenerationError, match="not a name of an environment variable") as caught:
        GoogleImages(config({"api_key_env": "tulip-1234-of-mine"}))
    assert "tulip-1234-of-mine" not in str(caught.value)


CHOICES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"model": "other"}, {}),
    ({"size": "match_input"}, {}),
    ({"size": {"width": 512, "height": 512}}, {}),
    ({"seed": 3}, {}),
    ({}, {"send_seed": False}),
    ({}, {"image_size": "2K"}),
    ({}, {"modalities": ["IMAGE"]}),
    ({"size": "match_input"}, {"aspect_ratios": ["1:1", "4:5"]}),
    ({}, {"safety_settings": {"HARM_CATEGORY_HARASSMENT": "OFF"}}),
    ({}, {"revision": "b"}),
    ({}, {"api_version": "v1"}),
    ({}, {"base_url": "https://gateway.example"}),
    ({}, {"base_url": "https://gateway.example/google"}),
]


def test_the_signature_changes_with_what_decides_an_image() -> None:
    """Each of the choices gives another one; it can be written as JSON."""
    signatures = [
        GoogleImages(config(parameters, **further)).signature() for further, parameters in CHOICES
    ]
    assert len({json.dumps(one, sort_keys=True) for one in signatures}) == len(CHOICES)


def test_the_signature_keeps_to_what_decides_an_image() -> None:
    """Neither ports nor variables, nor limits, names, defaults and what is not sent."""
    one, other = (
        GoogleImages(
            config(
                {
                    "base_url": f"http://127.0.0.1:{port}",
                    "api_key_env": variable,
                    "most_inputs": port,
                    "aspect_ratios": [f"{port}:1"],
                    "api_version": "v1beta",
                },
                name=name,
                limits={"concurrency": concurrency},
            )
        ).signature()
        for port, variable, name, concurrency in ((1, "A", "a", 1), (2, "B", "b", 2))
    )
    assert one == other


@pytest.mark.skipif(find_spec("google") is not None, reason="google-genai may be installed")
def test_without_the_client_the_extra_is_named() -> None:
    """Before anything is asked."""
    with pytest.raises(MissingExtraError, match=r"system 'tiny' .*echo-hf\[google\]"):
        make_system(config({}))
