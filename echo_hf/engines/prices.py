"""Tokens and price of a response: from the config, the dated price list, or unknown."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any

import yaml
from pydantic import Field

from echo_hf._infra.http_errors import as_mapping
from echo_hf.config.checks import Section
from echo_hf.engines.base import Usage

if TYPE_CHECKING:
    from echo_hf.engines.server import ServerOptions

MILLION = 1_000_000
MAX_AMOUNT = 10**12  # of tokens or dollars: anything above is no count
# What is sent with it is not billed by the list.
UNLISTED_BILLING_KEY = "prompt_cache_retention"
STANDARD_TIERS = frozenset({None, "auto", "batch", "default", "standard"})

Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class BilledTokens:
    prompt: int
    completion: int
    cached: int = 0
    written: int | None = None


class TokenPrice(Section):
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

    prompt: Dollars
    completion: Dollars
    cached: Dollars | None = None
    cache_write: Dollars | None = None
    most_prompt_tokens: int | None = None
    until: datetime.date | None = None
    as_of: datetime.date | None = None

    @property
    def is_free(self) -> bool:
        """Whether no call costs anything, at any time and for any number of tokens."""
        return self.until is None and not any((self.prompt, self.completion, self.cached))

    def scale(self, share: float, cached_share: float | None = None) -> TokenPrice:
        """Return a share of this price; that of cached tokens is unknown where none is given."""
        cached = None
        if self.cached is not None and cached_share is not None:
            cached = self.cached * cached_share
        write = self.cache_write and self.cache_write * share
        prices = {"prompt": self.prompt * share, "completion": self.completion * share}
        return self.model_copy(update={**prices, "cached": cached, "cache_write": write})

    def compute_cost(self, tokens: BilledTokens, day: datetime.date) -> float | None:
        written = tokens.written if self.cache_write is not None else tokens.written or 0
        max_prompt_tokens = self.most_prompt_tokens
        if (
            written is None
            or tokens.cached + written > tokens.prompt
            or (tokens.cached and self.cached is None)
            or (max_prompt_tokens is not None and tokens.prompt > max_prompt_tokens)
            or (self.until is not None and day > self.until)
        ):
            return None
        write = self.prompt if self.cache_write is None else self.cache_write
        uncached = tokens.prompt - tokens.cached - written
        prompt_cost = uncached * self.prompt + tokens.cached * (self.cached or 0) + written * write
        return (prompt_cost + tokens.completion * self.completion) / MILLION


class BatchPrice(Section):
    """The price of a server's batches, as a share of its standard prices.

    Attributes:
        server: The server, which also stands for the names below it.
        share: Share of every price.
        cached: Share of the price of cached tokens, null when unknown.
        hours: The longest wait that the server states.
        own_form: Whether it takes no files in the form of OpenAI's API.
        as_of: The day on which the list was true.
        basis: Where the shares come from.
        sources: The addresses that say so.
    """

    server: str
    share: Annotated[float, Field(ge=0, le=1)]
    cached: Annotated[float, Field(ge=0, le=1)] | None = None
    hours: Annotated[float, Field(gt=0)]
    own_form: bool = False
    as_of: datetime.date
    basis: str
    sources: tuple[str, ...] = Field(min_length=1)


@cache
def find_batch_price(server: str) -> BatchPrice | None:
    """Return what batches of a server cost, by its name; null where nobody says."""
    rows = map(BatchPrice.model_validate, read_price_list()["batches"])
    return next((row for row in rows if f".{server}".endswith(f".{row.server}")), None)


class PlatformPrice(Section):
    """A platform's prices for reading, in US dollars, and how much may be read."""

    usd_per_post: Dollars
    usd_per_author: Dollars
    usd_per_estimate: Dollars
    most_posts_a_month: int
    as_of: datetime.date
    basis: str
    sources: tuple[str, ...] = Field(min_length=1)


@cache
def read_platform_price(platform: str) -> PlatformPrice:
    return PlatformPrice.model_validate(read_price_list()["platforms"][platform])


def find_price(options: ServerOptions) -> TokenPrice | None:
    prompt, cached = options.usd_per_million_prompt_tokens, options.usd_per_million_cached_tokens
    completion = options.usd_per_million_completion_tokens
    if prompt is not None and completion is not None:
        cached = prompt if cached is None else cached
        return TokenPrice(prompt=prompt, completion=completion, cached=cached)
    if UNLISTED_BILLING_KEY in options.extra_body:
        return None
    prices = read_price_list()
    for row in prices["servers"].get(options.server.label, ()):
        if options.model in row["models"]:
            price = {name: value for name, value in row.items() if name != "models"}
            return TokenPrice(**price, as_of=prices["as_of"])
    return None


@cache
def read_price_list() -> dict[str, Any]:
    prices: dict[str, Any] = yaml.safe_load(files(__package__).joinpath("prices.yaml").read_bytes())
    return prices


def read_billed_tokens(document: Mapping[str, Any]) -> BilledTokens | None:
    usage = as_mapping(document.get("usage"))
    details = as_mapping(usage.get("prompt_tokens_details"))
    prompt, completion = (
        parse_count(usage.get("prompt_tokens")),
        parse_count(usage.get("completion_tokens")),
    )
    if prompt is None or completion is None:
        return None
    # Thinking that only the total counts is part of the answer.
    completion = max(completion, (parse_count(usage.get("total_tokens")) or 0) - prompt)
    cached = parse_count(details.get("cached_tokens")) or 0
    return BilledTokens(prompt, completion, cached, parse_count(details.get("cache_write_tokens")))


def parse_usage(tokens: BilledTokens | None) -> Usage:
    return Usage() if tokens is None else Usage(tokens.prompt, tokens.completion, tokens.cached)


def compute_call_cost(
    document: Mapping[str, Any], price: TokenPrice | None, day: datetime.date | None = None
) -> float | None:
    """Compute the price of a call: as the response says, else from its tokens."""
    usage = as_mapping(document.get("usage"))
    cost = _parse_dollars(usage.get("cost"))
    if cost is not None and usage.get("is_byok"):
        # A router that was given the provider's key charges its own fee alone.
        upstream = _parse_dollars(
            as_mapping(usage.get("cost_details")).get("upstream_inference_cost")
        )
        cost = None if upstream is None else cost + upstream
    tokens = read_billed_tokens(document)
    if cost is not None or tokens is None or price is None:
        return cost
    if document.get("service_tier") not in STANDARD_TIERS:
        return None
    return price.compute_cost(tokens, day or datetime.datetime.now(datetime.UTC).date())


def _parse_dollars(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= MAX_AMOUNT else None


def parse_count(value: Any) -> int | None:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return int(value) if is_integer and 0 <= value <= MAX_AMOUNT else None
