"""Options of the engine: what is taken, and how a mistake is told."""

from __future__ import annotations

from typing import Any

import pytest

from echo_hf.engines.base import make_engine
from echo_hf.engines.openai_messages import Options, read_options
from echo_hf.errors import EngineError

SECRET = "sk-0123456789abcdef"  # noqa: S105 - an invented one


def _told(**options: Any) -> str:
    with pytest.raises(EngineError) as caught:
        make_engine("openai", **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_model_is_enough() -> None:
    """The rest has defaults: OpenAI's own server, its usual variable, temperature 0."""
    options = read_options({"model": "gpt-4o"})
    assert options.base_url == "https://api.openai.com/v1"
    assert options.api_key_env == "OPENAI_API_KEY"
    assert (options.temperature, options.seed, options.structured) == (0.0, None, "auto")
    assert options.concurrency == 32


def test_whole_numbers_stand_for_fractions() -> None:
    """YAML writes `timeout_s: 60`."""
    options = read_options({"model": "m", "timeout_s": 60, "temperature": 1, "top_p": 1})
    assert (options.timeout_s, options.temperature, options.top_p) == (60.0, 1.0, 1.0)


def test_an_unknown_option_is_told_with_the_nearest() -> None:
    """One line with the names that are known."""
    known = ", ".join(sorted(Options.model_fields))
    assert _told(model="m", modle="m") == (
        f"engine 'openai': unknown key 'modle'; did you mean 'model'? known: {known}"
    )


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("model", "", "at least 1 character"),
        ("model", 5, "string"),
        ("concurrency", 0, "greater than or equal to 1"),
        ("concurrency", 1001, "less than or equal to 1000"),
        ("concurrency", "8", "integer"),
        ("concurrency", True, "integer"),
        ("requests_per_minute", 0, "greater than 0"),
        ("timeout_s", float("inf"), "finite"),
        ("timeout_s", -1, "greater than 0"),
        ("max_attempts", 21, "less than or equal to 20"),
        ("temperature", 3, "less than or equal to 2"),
        ("top_p", 0, "greater than 0"),
        ("seed", 1.5, "integer"),
        ("structured", "yaml", "'auto', 'json_schema', 'json_object' or 'text'"),
        ("max_tokens_field", "tokens", "'max_tokens'"),
        ("min_pixels", 0, "greater than or equal to 1"),
        ("extra_body", {"stream": True}, "expected no stream, which the engine sets itself"),
        ("extra_body", {"day": object()}, "expected what JSON can hold"),
        ("extra_body", {"bias": float("nan")}, "expected what JSON can hold"),
        ("usd_per_million_prompt_tokens", -1, "greater than or equal to 0"),
    ],
)
def test_a_bad_value_is_told(option: str, value: Any, expected: str) -> None:
    """The engine, the option, its value, what was expected."""
    told = _told(**{"model": "m", option: value})
    assert told.startswith(f"engine 'openai': {option} is {value!r}"[:60])
    assert expected in told


@pytest.mark.parametrize(
    "options",
    [
        {"usd_per_million_prompt_tokens": 1.0},
        {"usd_per_million_completion_tokens": 1.0},
        {"usd_per_million_cached_tokens": 1.0},
        {"usd_per_million_prompt_tokens": 1.0, "usd_per_million_cached_tokens": 1.0},
    ],
)
def test_half_a_price_is_no_price(options: dict[str, float]) -> None:
    """A cost computed from half of the prices would be made up."""
    assert "together, or neither" in _told(model="m", **options)


@pytest.mark.parametrize(
    "options",
    [
        {"api_key": SECRET},
        {"api_key_env": SECRET},
        {"extra_body": {"user": {"access_token": SECRET}}},
        {"base_url": f"https://mira:{SECRET}@models.example.org/v1"},
        {"base_url": f"mira:{SECRET}@models.example.org"},
        {"base_url": f"https://models.example.org/v1?key={SECRET}"},
        {"base_url": f"https://models.example.org/v1#{SECRET}"},
    ],
    ids=str,
)
def test_a_secret_is_refused_and_not_shown(options: dict[str, Any]) -> None:
    """Keys come from the environment; a config is kept beside its results."""
    told = _told(model="m", **options)
    assert SECRET not in told
    assert "environment variable" in told


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"family": "qwen9"}, "unknown family 'qwen9'"),
        ({"min_pixels": 5000, "max_pixels": 100}, "min_pixels 5000"),
    ],
)
def test_a_pixel_budget_is_checked_before_anything_is_asked(
    options: dict[str, Any], expected: str
) -> None:
    """A family that nobody knows, and a budget that no image meets."""
    assert expected in _told(model="m", **options)
