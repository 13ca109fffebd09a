"""Addresses of servers, their keys, and what their calls cost."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from pydantic import SecretStr

from echo_hf.engines.base import Usage
from echo_hf.engines.openai import OpenAIOptions
from echo_hf.engines.prices import (
    BilledTokens,
    TokenPrice,
    compute_call_cost,
    find_batch_price,
    find_price,
    parse_usage,
    read_billed_tokens,
)
from echo_hf.engines.server import ApiKey, Server
from echo_hf.errors import EngineError
from tests.errors_for_tests import said_by

KEY = "sk-0123456789abcdef"
PUBLIC = Server("https://api.openai.com/v1")
LOCAL = Server("http://127.0.0.1:8000/v1")
DAY = datetime.date(2026, 11, 21)


@pytest.mark.parametrize(
    ("address", "label"),
    [
        ("http://localhost:1/v1", "private"),
        ("http://[::1]:80/v1", "private"),
        ("http://192.168.1.9:8000/v1", "private"),
        ("http://gpu-node-17:9/v1", "private"),
        ("http://vllm.svc.INTERNAL/v1", "private"),
        ("https://172.32.0.1/v1", "172.32.0.1"),
        ("https://API.openai.com/v1", "api.openai.com"),
        ("https://localhost.example.org:8443/v1", "localhost.example.org:8443"),
        *((address, None) for address in ("", "models.example.org", "ftp://a.example")),
        *(
            (f"http://127.0.0.1:8000/v1{end}", None)
            for end in ("/chat/completions", "/moderations/")
        ),
        ("http://h:port/v1", None),
        ("https://mira:secret@models.example.org/v1", None),
        ("https://models.example.org/v1?key=secret", None),
    ],
)
def test_a_label_tells_servers_apart_but_for_private_ones(address: str, label: str | None) -> None:
    if label:
        Server(address).check()
        assert Server(address).label == label
    else:
        said = said_by(EngineError, Server(address).check)
        assert "expected an address such as" in said
        assert "secret" not in said


def test_a_key_comes_from_its_variable_and_is_hidden_wherever_it_stands() -> None:
    for server in (PUBLIC, LOCAL):
        assert server.read_key("K", {"K": f" {KEY}\n"}).secret.get_secret_value() == KEY
    assert not LOCAL.read_key("K", {})
    for server in (PUBLIC, Server("http://models.example.org/v1")):
        assert not server.read_key(None, {"K": KEY})
    key = ApiKey(SecretStr(KEY))
    assert key.mask_in(f"a {KEY}, b{KEY}b") == "a (key), b(key)b"
    assert KEY not in repr(key)
    assert ApiKey(SecretStr("")).mask_in("as it was") == "as it was"


@pytest.mark.parametrize(
    ("server", "value", "said"),
    [
        (PUBLIC, " \n", "environment variable 'K' holds no key for 'api.openai.com': set it"),
        (PUBLIC, f"{KEY}\x00", "environment variable 'K' holds no key"),
        (LOCAL, f"{KEY} {KEY}", "environment variable 'K' holds no key"),
        (PUBLIC, f"{KEY}é", "environment variable 'K' holds no key"),
        (Server("http://models.example.org/v1"), KEY, "would send the key unencrypted"),
    ],
)
def test_what_cannot_be_a_key_is_told_without_it(server: Server, value: str, said: str) -> None:
    with pytest.raises(EngineError) as caught:
        server.read_key("K", {"K": value})
    assert said in str(caught.value)
    assert KEY not in str(caught.value)


# --- prices ---


@pytest.mark.parametrize(
    ("price", "tokens", "usd"),
    [
        # 600 fresh at 2, 300 cached at 0.5, 100 written at 2.5, 50 answered at 8.
        ({"cached": 0.5, "cache_write": 2.5}, BilledTokens(1000, 50, 300, 100), 2000e-6),
        # 900 at 2, for what is written costs nothing more, and 100 cached at 1.
        ({"cached": 1}, BilledTokens(1000, 0, 100, 400), 1900e-6),
        ({"most_prompt_tokens": 100, "until": DAY}, BilledTokens(100, 0), 200e-6),
        ({"cached": None}, BilledTokens(100, 1, cached=1), None),
        ({"cache_write": 3.0}, BilledTokens(100, 1, written=None), None),
        ({"most_prompt_tokens": 99}, BilledTokens(100, 1), None),
        ({"until": DAY - datetime.timedelta(days=1)}, BilledTokens(100, 1), None),
        ({"cached": 1.0}, BilledTokens(100, 1, cached=101), None),
    ],
    ids=str,
)
def test_a_call_is_billed_by_kind_of_token(
    price: Any, tokens: BilledTokens, usd: float | None
) -> None:
    """By hand; what is not known is not made up."""
    made = TokenPrice.model_validate({"prompt": 2, "completion": 8, **price})
    assert made.compute_cost(tokens, DAY) == pytest.approx(usd)


OWN = {"usd_per_million_prompt_tokens": 3, "usd_per_million_completion_tokens": 4}
LISTED = {"prompt": 2.5, "cached": 1.25, "completion": 10.0, "as_of": DAY}
GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"
ENDING = {"prompt": 0.75, "cached": 0.075, "completion": 3.75, "as_of": DAY}
ENDING |= {"until": datetime.date(2026, 12, 31)}
RETAINED = {"extra_body": {"prompt_cache_retention": "24h"}}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"model": "gpt-4o"}, LISTED),
        ({"model": "gpt-4o-2024-08-06"}, LISTED),
        ({"model": "gpt-4o", **OWN}, {"prompt": 3, "completion": 4, "cached": 3}),
        (
            {"model": "gpt-4o", **OWN, "usd_per_million_cached_tokens": 0},
            {"prompt": 3, "completion": 4, "cached": 0},
        ),
        ({"model": "gpt-4o", **RETAINED}, None),
        ({"model": "gemini-3.8-flash", "base_url": GEMINI}, ENDING),
        *(({"model": name}, None) for name in ("gpt-4", "GPT-4o", "a-new-one")),
        ({"model": "gpt-4o", "base_url": "https://openrouter.ai/api/v1"}, None),
        ({"model": "gpt-4o", "base_url": LOCAL.base_url}, None),
    ],
    ids=str,
)
def test_the_list_knows_models_by_server_and_name(options: dict[str, Any], expected: Any) -> None:
    price = find_price(OpenAIOptions.model_validate(options))
    assert price == (expected and TokenPrice.model_validate(expected))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # By hand: half of everything at OpenAI.
        ({"model": "gpt-6-sol"}, {"prompt": 1.0, "cached": 0.1, "completion": 5.0}),
        # Gemini bills what its cache holds as it does elsewhere.
        (
            {"model": "gemini-2.5-flash", "base_url": GEMINI},
            {"prompt": 0.15, "cached": 0.03, "completion": 1.25},
        ),
        ({"model": "m", "base_url": "https://api.groq.com/openai/v1", **OWN}, {"prompt": 1.5}),
        ({"model": "m", "base_url": "https://mine.openai.azure.com/v1", **OWN}, {"prompt": 1.5}),
        ({"model": "m", "base_url": "https://notopenai.azure.com/v1", **OWN}, None),
        ({"model": "m", "base_url": "https://openrouter.ai/api/v1", **OWN}, None),
        ({"model": "m", "base_url": LOCAL.base_url, **OWN}, None),
    ],
    ids=str,
)
def test_a_batch_costs_the_listed_share_of_its_server(
    options: dict[str, Any], expected: Any
) -> None:
    checked = OpenAIOptions.model_validate(options)
    price, batch = find_price(checked), find_batch_price(checked.server.label)
    assert (batch is None) == (expected is None)
    if batch is not None and price is not None:
        made = price.scale(batch.share, batch.cached)
        assert {name: getattr(made, name) for name in expected} == pytest.approx(expected)
        assert (made.most_prompt_tokens, made.until) == (price.most_prompt_tokens, price.until)


def test_what_nobody_says_of_cached_tokens_in_a_batch_stays_unknown() -> None:
    price = TokenPrice(prompt=2, completion=8, cached=1, cache_write=4)
    batch = find_batch_price("api.groq.com")
    assert batch is not None
    made = price.scale(batch.share, batch.cached)
    assert (made.cached, made.cache_write) == (None, 2)
    assert made.compute_cost(BilledTokens(100, 10, cached=5, written=0), DAY) is None
    assert made.compute_cost(BilledTokens(100, 10, written=50), DAY) == pytest.approx(190e-6)


PRICE = TokenPrice(prompt=1, completion=10, cached=0.5)
USAGE: dict[str, Any] = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (USAGE, BilledTokens(100, 20)),
        ({**USAGE, "total_tokens": 320}, BilledTokens(100, 220)),
        ({**USAGE, "prompt_tokens_details": {"cached_tokens": 64}}, BilledTokens(100, 20, 64)),
        (
            {**USAGE, "prompt_tokens_details": {"cache_write_tokens": 5}},
            BilledTokens(100, 20, 0, 5),
        ),
        ({"prompt_tokens": 100}, None),
        ({"prompt_tokens": 10**400, "completion_tokens": 20}, None),
        ([], None),
    ],
    ids=str,
)
def test_tokens_are_read(usage: Any, expected: BilledTokens | None) -> None:
    assert read_billed_tokens({"usage": usage}) == expected
    assert parse_usage(None) == Usage()
    assert parse_usage(BilledTokens(3, 2, 1, 1)) == Usage(3, 2, 1)


COMPUTED = (100 * 1 + 20 * 10) / 1e6
ROUTED = {**USAGE, "cost": 0.01, "is_byok": True}


@pytest.mark.parametrize(
    ("usage", "price", "tier", "usd"),
    [
        ({**USAGE, "cost": 0.25}, PRICE, None, 0.25),
        ({**USAGE, "cost": 0}, PRICE, None, 0.0),
        *(({**USAGE, "cost": no}, PRICE, None, COMPUTED) for no in (None, "0.25", True, -1, {})),
        ({**USAGE, "cost": float("nan")}, PRICE, None, COMPUTED),
        ({**USAGE, "cost": 10**400}, PRICE, None, COMPUTED),
        ({**ROUTED, "cost_details": {"upstream_inference_cost": 0.2}}, None, None, 0.21),
        ({**ROUTED, "cost_details": None}, None, None, None),
        (USAGE, PRICE, "default", COMPUTED),
        *((USAGE, PRICE, tier, None) for tier in ("flex", "priority", 5)),
        (None, PRICE, None, None),
    ],
    ids=str,
)
def test_a_cost_is_said_or_computed_or_unknown(usage: Any, price: Any, tier: Any, usd: Any) -> None:
    assert compute_call_cost({"usage": usage, "service_tier": tier}, price, DAY) == pytest.approx(
        usd
    )
