"""A system is configuration, whose mistakes are one line without anything secret."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from echo_hf.config.checks import first_error
from echo_hf.config.systems import FixedSize, SystemConfig

LEAST: dict[str, Any] = {
    "name": "mine",
    "adapter": "command",
    "developer": "Northlight",
    "status": "current",
}


def said(**values: Any) -> str:
    """What is said of a bad system."""
    with pytest.raises(ValidationError) as raised:
        SystemConfig.model_validate({**LEAST, **values})
    text = first_error(raised.value, "mine.yaml", SystemConfig)
    assert "\n" not in text
    return text


def test_four_keys_are_enough() -> None:
    """The rest has the defaults that the guide tells."""
    config = SystemConfig.model_validate(LEAST)
    assert (config.model, config.stands_for, config.note, config.price) == (None,) * 4
    assert (config.parameters, config.size, config.seed) == ({}, "auto", 0)
    limits = config.limits
    assert (limits.concurrency, limits.per_minute) == (None, None)
    assert (limits.attempts, limits.timeout_s) == (5, 600)


def test_a_size_is_chosen_or_given() -> None:
    """Two words, or two sides."""
    for size in ("auto", "match_input"):
        assert SystemConfig.model_validate({**LEAST, "size": size}).size == size
    given = SystemConfig.model_validate({**LEAST, "size": {"width": 1024, "height": 768}})
    assert given.size == FixedSize(width=1024, height=768)
    assert SystemConfig.model_validate(given.model_dump(mode="json")) == given


BAD: list[tuple[dict[str, Any], str]] = [
    ({"size": "big"}, "size is 'big': expected auto, match_input, or {width: 1024, height: 1024}"),
    ({"size": 1024}, "size is 1024: expected auto, match_input, or {width: 1024, height: 1024}"),
    ({"size": None}, "size is None: expected auto"),
    ({"size": {"width": 64, "hieght": 64}}, "unknown key in size 'hieght'; did you mean 'height'?"),
    ({"size": {"width": 15, "height": 64}}, "size.width is 15: input should be greater"),
    ({"size": {"width": 64, "height": 8193}}, "size.height is 8193: input should be less"),
    ({"size": {"width": 64.0, "height": 64}}, "size.width is 64.0: input should be a valid int"),
    ({"size": {"width": 64}}, "size.height is missing"),
    ({"seed": -1}, "seed is -1"),
    ({"seed": 2**31}, "seed is 2147483648"),
    ({"limits": {"concurrency": 0}}, "limits.concurrency is 0"),
    ({"limits": {"per_minute": 0}}, "limits.per_minute is 0"),
    ({"limits": {"per_minute": float("inf")}}, "limits.per_minute is inf"),
    ({"limits": {"attempts": 21}}, "limits.attempts is 21"),
    ({"limits": {"timeout_s": float("nan")}}, "limits.timeout_s is nan"),
    ({"limits": {"concurency": 2}}, "unknown key in limits 'concurency'; did you mean"),
    ({"price": {"usd_per_image": 1}}, "price.as_of is missing"),
    ({"price": {"usd_per_image": -1, "as_of": "2026-01-01"}}, "price.usd_per_image is -1"),
    ({"status": "gone"}, "status is 'gone'"),
    ({"name": "../mine"}, "name is '../mine': expected at most 96"),
    ({"name": "a b"}, "name is 'a b'"),
    ({"adaptor": "x"}, "unknown key 'adaptor'; did you mean 'adapter'?"),
    ({"stands_for": "GPT-4o"}, "stands_for is 'GPT-4o' and status is 'current'"),
    ({"status": "substitute", "note": "n"}, "expected stands_for and a note"),
    ({"status": "substitute", "stands_for": "x"}, "expected stands_for and a note"),
]


@pytest.mark.parametrize(("values", "words"), BAD, ids=[words[:30] for _, words in BAD])
def test_a_mistake_is_one_line(values: dict[str, Any], words: str) -> None:
    """The key, its value, and what was expected."""
    assert f"mine.yaml: {words}" in said(**values)


SECRETS: list[dict[str, Any]] = [
    {"api_key": "tulip-1234"},
    {"client": {"headers": {"Authorization": "tulip-1234"}}},
    {"inner": [{"hf_token": "tulip-1234"}]},
    {"base_url": "https://mira:tulip-1234@example.org/v1"},
    {"base_urls": ["https://mira:tulip-1234@example.org/v1"]},
]


@pytest.mark.parametrize("parameters", SECRETS, ids=str)
def test_a_secret_is_refused_and_not_repeated(parameters: dict[str, Any]) -> None:
    """A config is kept beside its results, and what is printed may be kept, too."""
    text = said(parameters=parameters)
    assert "tulip" not in text
    assert text.endswith("put the secret into an environment variable")


def test_a_place_of_a_secret_is_none() -> None:
    """The name of a variable, and a number of tokens, may stand there."""
    parameters = {"api_key_env": "LUMEN_API_KEY", "max_tokens": 512, "key_frames": 3}
    assert SystemConfig.model_validate({**LEAST, "parameters": parameters}).parameters == parameters


@given(st.dates(), st.floats(0, 1e6))
def test_a_config_is_what_its_dump_says(day: datetime.date, price: float) -> None:
    """It goes into the run's folder as plain data, and comes back as it was."""
    config = SystemConfig.model_validate(
        {**LEAST, "price": {"usd_per_image": price, "as_of": day}, "parameters": {"a": [1]}}
    )
    assert SystemConfig.model_validate(config.model_dump(mode="json")) == config
