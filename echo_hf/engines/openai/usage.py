"""What a response says of its tokens and its price."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from echo_hf.engines.base import Usage
from echo_hf.engines.openai.prices import Price, Tokens

MOST = 10**12  # of tokens or dollars: anything above is no count
STANDARD_TIERS = frozenset({None, "auto", "default", "standard"})


def read_usage(document: Mapping[str, Any]) -> Tokens | None:
    """The tokens of a response.

    Some servers leave thinking out of the completion's tokens but count it in the total, and bill
    it like the answer: it is added here.

    Args:
        document: The response.

    Returns:
        The tokens, null when it does not say, or not in a way that can be read.

    Example:
        >>> read_usage({"usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 30}})
        Tokens(prompt=9, completion=21, cached=0, written=None)
    """
    usage = _mapping(document.get("usage"))
    details = _mapping(usage.get("prompt_tokens_details"))
    prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if prompt is None or completion is None:
        return None
    total = _count(usage.get("total_tokens")) or 0
    cached = _count(details.get("cached_tokens")) or 0
    written = _count(details.get("cache_write_tokens"))
    return Tokens(prompt, max(completion, total - prompt), cached, written)


def usage_of(tokens: Tokens | None) -> Usage:
    """The tokens as a completion carries them."""
    return Usage() if tokens is None else Usage(tokens.prompt, tokens.completion, tokens.cached)


def cost_of(
    document: Mapping[str, Any], price: Price | None, day: datetime.date | None = None
) -> float | None:
    """The price of a call: what the response says, else what its tokens cost.

    Args:
        document: The response.
        price: Price of the model's tokens, null when unknown.
        day: The day of the call, null for today.

    Returns:
        US dollars, null when unknown.
    """
    said = _said_cost(_mapping(document.get("usage")))
    if said is not None:
        return said
    tokens = read_usage(document)
    if tokens is None or price is None or document.get("service_tier") not in STANDARD_TIERS:
        return None
    return price.cost_usd(tokens, day or datetime.datetime.now(datetime.UTC).date())


def _said_cost(usage: Mapping[str, Any]) -> float | None:
    cost = _dollars(usage.get("cost"))
    if cost is None or not usage.get("is_byok"):
        return cost
    # A router that was given the provider's key charges its own fee alone; the provider's is apart.
    upstream = _dollars(_mapping(usage.get("cost_details")).get("upstream_inference_cost"))
    return None if upstream is None else cost + upstream


def _dollars(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= MOST else None


def _count(value: Any) -> int | None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return int(value) if is_whole and 0 <= value <= MOST else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
