"""The tokens and the price of a response: from the config, the dated price list, or unknown."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from echo_hf._infra.http_errors import mapping
from echo_hf.engines.base import Usage

if TYPE_CHECKING:
    from echo_hf.engines.server import ServerOptions

MILLION = 1_000_000
MOST = 10**12  # of tokens or dollars: anything above is no count
# What is sent with it is not billed by the list.
BILLED_OTHERWISE = "prompt_cache_retention"
STANDARD_TIERS = frozenset({None, "auto", "default", "standard"})

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
        return self.until is None and not any((self.prompt, self.completion, self.cached))

    def cost_usd(self, tokens: Tokens, day: datetime.date) -> float | None:
        written = tokens.written if self.cache_write is not None else tokens.written or 0
        longest = self.most_prompt_tokens
        if (
            written is None
            or tokens.cached + written > tokens.prompt
            or (tokens.cached and self.cached is None)
            or (longest is not None and tokens.prompt > longest)
            or (self.until is not None and day > self.until)
        ):
            return None
        write = self.prompt if self.cache_write is None else self.cache_write
        fresh = tokens.prompt - tokens.cached - written
        asked = fresh * self.prompt + tokens.cached * (self.cached or 0) + written * write
        return (asked + tokens.completion * self.completion) / MILLION


def price_for(options: ServerOptions) -> Price | None:
    prompt, cached = options.usd_per_million_prompt_tokens, options.usd_per_million_cached_tokens
    completion = options.usd_per_million_completion_tokens
    if prompt is not None and completion is not None:
        cached = prompt if cached is None else cached
        return Price(prompt=prompt, completion=completion, cached=cached)
    if BILLED_OTHERWISE in options.extra_body:
        return None
    listed = price_list()
    for one in listed["servers"].get(options.server.label, ()):
        if options.model in one["models"]:
            price = {name: value for name, value in one.items() if name != "models"}
            return Price(**price, as_of=listed["as_of"])
    return None


@cache
def price_list() -> dict[str, Any]:
    listed: dict[str, Any] = yaml.safe_load(files(__package__).joinpath("prices.yaml").read_bytes())
    return listed


def read_usage(document: Mapping[str, Any]) -> Tokens | None:
    usage = mapping(document.get("usage"))
    details = mapping(usage.get("prompt_tokens_details"))
    prompt, completion = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    if prompt is None or completion is None:
        return None
    # Thinking that only the total counts is part of the answer.
    completion = max(completion, (count(usage.get("total_tokens")) or 0) - prompt)
    cached = count(details.get("cached_tokens")) or 0
    return Tokens(prompt, completion, cached, count(details.get("cache_write_tokens")))


def usage_of(tokens: Tokens | None) -> Usage:
    return Usage() if tokens is None else Usage(tokens.prompt, tokens.completion, tokens.cached)


def cost_of(
    document: Mapping[str, Any], price: Price | None, day: datetime.date | None = None
) -> float | None:
    """The price of a call: what the response says, else what its tokens cost."""
    usage = mapping(document.get("usage"))
    said = _dollars(usage.get("cost"))
    if said is not None and usage.get("is_byok"):
        # A router that was given the provider's key charges its own fee alone.
        upstream = _dollars(mapping(usage.get("cost_details")).get("upstream_inference_cost"))
        said = None if upstream is None else said + upstream
    tokens = read_usage(document)
    if said is not None or tokens is None or price is None:
        return said
    if document.get("service_tier") not in STANDARD_TIERS:
        return None
    return price.cost_usd(tokens, day or datetime.datetime.now(datetime.UTC).date())


def _dollars(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= MOST else None


def count(value: Any) -> int | None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return int(value) if is_whole and 0 <= value <= MOST else None
