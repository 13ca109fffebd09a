"""The tokens and the price of a response: from the config, the dated price list, or unknown."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from echo_hf._infra.http_errors import mapping
from echo_hf.engines.base import Usage
from echo_hf.engines.server import ServerOptions

PRICE_LIST = "prices.yaml"
MILLION = 1_000_000
# What is sent with it is not billed by the list.
BILLED_OTHERWISE = "prompt_cache_retention"

Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Tokens:
    prompt: int
    completion: int
    cached: int = 0
    written: int | None = None


class Price(BaseModel):
    """US dollars for a million tokens of one model.

    Attributes:
        prompt: Of the prompt.
        completion: Of the answer.
        cached: Of the prompt, read from the server's cache; null when unknown.
        cache_write: Of the prompt, written to the cache; null where that costs no more.
        most_prompt_tokens: A longer prompt has another price, null where none has.
        until: The last day of this price, null when none is announced.
        as_of: The day on which the list was true; null for a price from a config.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    prompt: Dollars
    completion: Dollars
    cached: Dollars | None = None
    cache_write: Dollars | None = None
    most_prompt_tokens: int | None = None
    until: datetime.date | None = None
    as_of: datetime.date | None = None

    @property
    def is_free(self) -> bool:
        """Whether no call costs anything, however many tokens it takes and whenever it is made."""
        some = (self.prompt, self.completion, self.cached, self.cache_write)
        return self.until is None and not any(some)

    def cost_usd(self, tokens: Tokens, day: datetime.date) -> float | None:
        cached = self._cached(tokens)
        written = self._written(tokens)
        if cached is None or written is None or not self._holds(tokens, day):
            return None
        fresh = tokens.prompt - tokens.cached - (tokens.written or 0)
        if fresh < 0:
            return None
        return (fresh * self.prompt + cached + written + tokens.completion * self.completion) / (
            MILLION
        )

    def _holds(self, tokens: Tokens, day: datetime.date) -> bool:
        longest, last = self.most_prompt_tokens, self.until
        return (longest is None or tokens.prompt <= longest) and (last is None or day <= last)

    def _cached(self, tokens: Tokens) -> float | None:
        if not tokens.cached:
            return 0.0
        return None if self.cached is None else tokens.cached * self.cached

    def _written(self, tokens: Tokens) -> float | None:
        if self.cache_write is None:
            return (tokens.written or 0) * self.prompt
        return None if tokens.written is None else tokens.written * self.cache_write


class _Listed(Price):
    models: tuple[str, ...]


class _PriceList(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    as_of: datetime.date
    servers: dict[str, tuple[_Listed, ...]]


def price_for(options: ServerOptions) -> Price | None:
    """The price of a model: the config's, else the list's."""
    prompt, completion = (
        options.usd_per_million_prompt_tokens,
        options.usd_per_million_completion_tokens,
    )
    if prompt is None or completion is None:
        if BILLED_OTHERWISE in options.extra_body:
            return None
        return listed_price(options.server.label, options.model)
    cached = options.usd_per_million_cached_tokens
    return Price(prompt=prompt, completion=completion, cached=prompt if cached is None else cached)


def listed_price(host: str, model: str) -> Price | None:
    text = files(__package__).joinpath(PRICE_LIST).read_text("utf-8")
    listed = _PriceList.model_validate(yaml.safe_load(text))
    found = (one for one in listed.servers.get(host, ()) if model in one.models)
    price = next(found, None)
    if price is None:
        return None
    return Price(**{**price.model_dump(exclude={"models"}), "as_of": listed.as_of})


MOST = 10**12  # of tokens or dollars: anything above is no count
STANDARD_TIERS = frozenset({None, "auto", "default", "standard"})


def read_usage(document: Mapping[str, Any]) -> Tokens | None:
    usage = mapping(document.get("usage"))
    details = mapping(usage.get("prompt_tokens_details"))
    prompt, completion = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    if prompt is None or completion is None:
        return None
    total = count(usage.get("total_tokens")) or 0
    cached = count(details.get("cached_tokens")) or 0
    written = count(details.get("cache_write_tokens"))
    return Tokens(prompt, max(completion, total - prompt), cached, written)


def usage_of(tokens: Tokens | None) -> Usage:
    return Usage() if tokens is None else Usage(tokens.prompt, tokens.completion, tokens.cached)


def cost_of(
    document: Mapping[str, Any], price: Price | None, day: datetime.date | None = None
) -> float | None:
    """The price of a call: what the response says, else what its tokens cost."""
    said = _said_cost(mapping(document.get("usage")))
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
    upstream = _dollars(mapping(usage.get("cost_details")).get("upstream_inference_cost"))
    return None if upstream is None else cost + upstream


def _dollars(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= MOST else None


def count(value: Any) -> int | None:
    """A number of tokens; null for what is none."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return int(value) if is_whole and 0 <= value <= MOST else None
