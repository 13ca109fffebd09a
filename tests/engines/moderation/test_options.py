"""Options of the engine: what is taken, and how a mistake is told."""

from __future__ import annotations

from typing import Any

import pytest

from echo_hf.engines.base import make_engine
from echo_hf.engines.moderation import ModerationOptions, read_options
from echo_hf.errors import EngineError

SECRET = "sk-0123456789abcdef"  # noqa: S105 - an invented one


def _told(**options: Any) -> str:
    with pytest.raises(EngineError) as caught:
        make_engine("moderation", **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_nothing_is_required() -> None:
    """OpenAI's own server, its usual variable, its current model."""
    options = read_options({})
    assert options.model == "omni-moderation-latest"
    assert options.base_url == "https://api.openai.com/v1"
    assert options.api_key_env == "OPENAI_API_KEY"


def test_an_option_of_other_engines_is_told() -> None:
    """A moderation has no temperature; one line with the names that are known."""
    known = ", ".join(sorted(ModerationOptions.model_fields))
    told = _told(temperature=0)
    assert told.startswith("engine 'moderation': unknown key 'temperature'; ")
    assert told.endswith(f"known: {known}")


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("model", "", "at least 1 character"),
        ("concurrency", 0, "greater than or equal to 1"),
        ("max_pixels", 0, "greater than or equal to 1"),
        ("extra_body", {"input": []}, "expected no input, which the engine sets itself"),
        (
            "base_url",
            "https://api.openai.com/v1/moderations",
            "leave out '/moderations', which is added to it",
        ),
    ],
)
def test_a_bad_value_is_told(option: str, value: Any, expected: str) -> None:
    """The option, its value, what was expected."""
    told = _told(**{option: value})
    assert f"{option} is {value!r}" in told
    assert expected in told


@pytest.mark.parametrize("options", [{"api_key": SECRET}, {"api_key_env": SECRET}], ids=str)
def test_a_secret_is_refused_and_not_shown(options: dict[str, Any]) -> None:
    """Keys come from the environment; a config is kept beside its results."""
    told = _told(**options)
    assert told.startswith("engine 'moderation'")
    assert SECRET not in told
