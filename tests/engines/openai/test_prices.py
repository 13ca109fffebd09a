"""What calls cost."""

from __future__ import annotations

import datetime

import pytest

from echo_hf.engines.openai_messages import read_options
from echo_hf.engines.prices import Price, Tokens, listed_price, price_for

DAY = datetime.date(2026, 11, 21)
OPENAI = "api.openai.com"


def test_a_call_is_billed_by_kind_of_token() -> None:
    """By hand: 600 fresh at 2, 300 cached at 0.5, 100 written at 2.5, 50 answered at 8."""
    price = Price(prompt=2, cached=0.5, cache_write=2.5, completion=8)
    assert price.cost_usd(Tokens(1000, 50, 300, 100), DAY) == pytest.approx(2000e-6)


def test_tokens_written_to_a_cache_that_costs_nothing_are_fresh_ones() -> None:
    """900 at 2 and 100 cached at 1."""
    price = Price(prompt=2, cached=1, completion=8)
    assert price.cost_usd(Tokens(1000, 0, 100, 400), DAY) == pytest.approx(1900e-6)


@pytest.mark.parametrize(
    ("price", "tokens"),
    [
        ({"cached": None}, Tokens(100, 1, cached=1)),
        ({"cache_write": 3.0}, Tokens(100, 1, written=None)),
        ({"most_prompt_tokens": 99}, Tokens(100, 1)),
        ({"until": DAY - datetime.timedelta(days=1)}, Tokens(100, 1)),
        ({"cached": 1.0}, Tokens(100, 1, cached=101)),
    ],
    ids=str,
)
def test_what_is_not_known_is_not_made_up(price: dict[str, object], tokens: Tokens) -> None:
    """A missing price, a count that is not told or cannot be, a longer prompt, a later day."""
    assert Price.model_validate({"prompt": 2, "completion": 8, **price}).cost_usd(tokens, DAY) is (
        None
    )


def test_the_bounds_of_a_price_belong_to_it() -> None:
    """The last day, and the longest prompt."""
    price = Price(prompt=2, completion=8, most_prompt_tokens=100, until=DAY)
    assert price.cost_usd(Tokens(100, 0), DAY) == pytest.approx(200e-6)


def test_a_free_model_costs_nothing() -> None:
    """Which is not the same as unknown."""
    assert Price(prompt=0, completion=0).cost_usd(Tokens(5, 5), DAY) == 0.0


@pytest.mark.parametrize(
    ("price", "is_free"),
    [
        ({}, True),
        ({"cached": 0, "cache_write": 0}, True),
        ({"prompt": 1}, False),
        ({"completion": 1}, False),
        ({"cached": 1}, False),
        ({"cache_write": 1}, False),
        ({"until": DAY}, False),
    ],
    ids=str,
)
def test_what_is_free_costs_nothing_however_much_it_is(
    price: dict[str, object], is_free: bool
) -> None:
    """No kind of token has a price, and no end of that is announced."""
    assert Price.model_validate({"prompt": 0, "completion": 0, **price}).is_free is is_free


def test_the_list_knows_models_by_server_and_name() -> None:
    """To the letter: another server or snapshot may have another price."""
    price = listed_price(OPENAI, "gpt-4o")
    assert price is not None
    assert (price.prompt, price.cached, price.completion) == (2.5, 1.25, 10.0)
    assert listed_price(OPENAI, "gpt-4o-2024-08-06") == price
    for host, model in [
        (OPENAI, "gpt-4"),
        (OPENAI, "GPT-4o"),
        ("openrouter.ai", "gpt-4o"),
        ("private", "gpt-4o"),
    ]:
        assert listed_price(host, model) is None


def test_a_listed_price_has_its_day() -> None:
    """So that whoever reads a cost knows how old its price is; a price that ends says when."""
    price = listed_price("generativelanguage.googleapis.com", "gemini-3.8-flash")
    assert price is not None
    assert (price.as_of, price.until) == (DAY, datetime.date(2026, 12, 31))


def test_a_configs_price_replaces_the_lists() -> None:
    """Cached tokens cost as much as others unless it says otherwise."""
    own = {
        "model": "gpt-4o",
        "usd_per_million_prompt_tokens": 3,
        "usd_per_million_completion_tokens": 4,
    }
    assert price_for(read_options(own)) == Price(prompt=3, completion=4, cached=3)
    cached = read_options({**own, "usd_per_million_cached_tokens": 0})
    assert price_for(cached) == Price(prompt=3, completion=4, cached=0)
    assert price_for(read_options({"model": "gpt-4o"})) == listed_price(OPENAI, "gpt-4o")
    assert price_for(read_options({"model": "a-new-one"})) is None


def test_what_the_list_does_not_cover_has_no_price() -> None:
    """A cache that keeps prompts for longer is billed apart."""
    options = {"model": "gpt-4o", "extra_body": {"prompt_cache_retention": "24h"}}
    assert price_for(read_options(options)) is None
