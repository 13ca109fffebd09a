"""Tokens and prices in responses."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.base import Usage
from echo_hf.engines.prices import Price, Tokens, cost_of, read_usage, usage_of

PRICE = Price(prompt=1, completion=10, cached=0.5)
DAY = datetime.date(2026, 11, 21)
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def _cost(price: Price | None = PRICE, **document: Any) -> float | None:
    return cost_of({"usage": USAGE, **document}, price, DAY)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (USAGE, Tokens(100, 20)),
        ({**USAGE, "total_tokens": None}, Tokens(100, 20)),
        ({**USAGE, "total_tokens": 320}, Tokens(100, 220)),
        ({**USAGE, "prompt_tokens_details": None}, Tokens(100, 20)),
        ({**USAGE, "prompt_tokens_details": {"cached_tokens": 64}}, Tokens(100, 20, 64)),
        ({**USAGE, "prompt_tokens_details": {"cache_write_tokens": 5}}, Tokens(100, 20, 0, 5)),
        ({"prompt_tokens": 100}, None),
        ({"prompt_tokens": "100", "completion_tokens": 20}, None),
        ({"prompt_tokens": -1, "completion_tokens": 20}, None),
        ({"prompt_tokens": 10**400, "completion_tokens": 20}, None),
        (None, None),
        ([], None),
    ],
    ids=str,
)
def test_tokens_are_read(usage: Any, expected: Tokens | None) -> None:
    """Thinking that only the total counts is part of the answer; what is no count is unknown."""
    assert read_usage({"usage": usage}) == expected


def test_unknown_tokens_are_none() -> None:
    """A completion carries numbers."""
    assert usage_of(None) == Usage()
    assert usage_of(Tokens(3, 2, 1, 1)) == Usage(3, 2, 1)


def test_the_responses_own_cost_comes_first() -> None:
    """Also when it is 0, and without any price."""
    assert _cost(usage={**USAGE, "cost": 0.25}) == 0.25
    assert _cost(usage={**USAGE, "cost": 0}) == 0.0
    assert _cost(None, usage={**USAGE, "cost": 0.25}) == 0.25


@pytest.mark.parametrize("cost", [None, "0.25", True, -1, float("nan"), 10**400, {"total_cost": 1}])
def test_what_is_no_cost_is_computed(cost: Any) -> None:
    """100 at 1 and 20 at 10 for a million."""
    assert _cost(usage={**USAGE, "cost": cost}) == pytest.approx(300e-6)


def test_a_routers_fee_is_not_the_whole_price() -> None:
    """Where it used the customer's own key, the provider's part is added, or all is unknown."""
    own = {**USAGE, "cost": 0.01, "is_byok": True}
    assert _cost(usage={**own, "cost_details": {"upstream_inference_cost": 0.2}}) == (
        pytest.approx(0.21)
    )
    assert cost_of({"usage": {**own, "cost_details": None}}, None) is None


@pytest.mark.parametrize("tier", ["flex", "priority", 5])
def test_another_tier_has_another_price(tier: Any) -> None:
    """The list is for the standard one."""
    assert _cost(service_tier=tier) is None
    assert _cost(service_tier="default") == pytest.approx(300e-6)


def test_without_price_or_tokens_the_cost_is_unknown() -> None:
    """Never 0."""
    assert _cost(None) is None
    assert _cost(usage=None) is None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*USAGE, "cost"]), inner),
)


@given(ANYTHING)
def test_no_document_breaks_it(usage: Any) -> None:
    """Whatever a server writes; a cost is null or a number that is not negative."""
    cost = cost_of({"usage": usage}, PRICE, DAY)
    assert cost is None or cost >= 0
