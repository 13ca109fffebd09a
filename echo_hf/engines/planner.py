"""Order requests for an engine, and estimate their cost and duration beforehand."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean, stdev
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field

from echo_hf._infra.worker_pool import count_processes
from echo_hf.config.checks import Section
from echo_hf.engines.base import Engine, Message, Request, Text
from echo_hf.engines.prices import MILLION, read_price_list

CHARACTERS_PER_TOKEN = 4
TOKENS_PER_IMAGE = 1280


def plan_order(requests: Sequence[Request]) -> list[int]:
    """Return the numbers of the requests in sending order, equal prefixes next to each other."""
    by_message: dict[Message, int] = {}
    by_images: dict[tuple[int, tuple[str, ...]], int] = {}
    sort_keys = []
    for request in requests:
        prefix = by_message.setdefault(request.messages[0], len(by_message))
        digests = tuple(reference.sha256 for reference in request.images)
        images = by_images.setdefault((prefix, digests), len(by_images))
        sort_keys.append((prefix, images))
    return sorted(range(len(requests)), key=sort_keys.__getitem__)


@dataclass(frozen=True, slots=True)
class RequestPlan:
    requests: int = 0
    stored: int = 0
    repeated: int = 0
    prompt_tokens: int = 0
    images: int = 0
    usd_per_million_prompt_tokens: float | None = None
    # Of answers whose length is known: how many there are in all calls, and their tokens.
    answers: int = 0
    answer_tokens: int | None = None

    @property
    def calls(self) -> int:
        """Number of calls still to make, second tries not counted."""
        return self.requests - self.stored - self.repeated

    def __str__(self) -> str:
        if not self.calls:
            return ""
        price = self.usd_per_million_prompt_tokens
        cost = "" if price is None else f", ${self.prompt_tokens * price / 1e6:.2f} and the answers"
        return (
            f"{self.calls:>9,} calls to make, {self.stored:,} answered before; about "
            f"{self.prompt_tokens:,} prompt tokens, {self.images:,} images{cost}"
        )


def extend_plan(
    plan: RequestPlan, requests: Sequence[Request], stored: int, repeated: int = 0
) -> RequestPlan:
    return replace(
        plan,
        requests=plan.requests + len(requests) + stored + repeated,
        stored=plan.stored + stored,
        repeated=plan.repeated + repeated,
        prompt_tokens=plan.prompt_tokens + sum(map(estimate_request, requests)),
        images=plan.images + sum(len(request.images) for request in requests),
    )


def estimate_request(request: Request) -> int:
    parts = (part for message in request.messages for part in message.parts)
    texts = sum(estimate_tokens(part.text) for part in parts if isinstance(part, Text))
    return texts + TOKENS_PER_IMAGE * len(request.images)


def estimate_tokens(text: str) -> int:
    """Estimate a text's tokens: four Latin characters a token, one of most other scripts."""
    wide = sum(character > "\u02ff" for character in text)
    return -(-(len(text) - wide) // CHARACTERS_PER_TOKEN) + wide


TokenKind = Literal["image_in", "text_out", "image_out"]
# A token has three to five letters, by language and model.
TEXT_FACTORS = (0.8, 1.0, 1.25)


class Range(NamedTuple):
    """An estimate: its lower end, its likely value, and its upper end."""

    low: float
    likely: float
    high: float

    @classmethod
    def exactly(cls, number: float) -> Self:
        return cls(number, number, number)

    @classmethod
    def total(cls, ranges: Iterable[Range]) -> Self:
        """Add ranges; the ends assume that all are at their ends together."""
        addends = list(ranges)
        return cls(*(sum(addend[position] for addend in addends) for position in range(3)))

    def scale(self, number: float) -> Self:
        return type(self)(*(bound * number for bound in self))

    def expand(self, factor: float) -> Self:
        return type(self)(self.low / factor, self.likely, self.high * factor)


ZERO = Range.exactly(0)
UNKNOWN = "unknown"
TIME_UNITS = ((7200, 3600, "h"), (120, 60, "min"))


def format_dollars(usd: Range | None) -> str:
    if usd is None:
        return UNKNOWN
    low, likely, high = (f"{bound:,.2f}" for bound in usd)
    return f"${likely}" if low == high else f"${likely} ({low} to {high})"


def format_seconds(seconds: Range | None) -> str:
    """Format seconds as hours, minutes or seconds.

    >>> format_seconds(Range(5400, 9000, 18000))
    '2.5 h (1.5 to 5.0)'
    """
    if seconds is None:
        return UNKNOWN
    units = (unit_row for unit_row in TIME_UNITS if seconds.likely >= unit_row[0])
    _, length, unit = next(units, (0, 1, "s"))
    parts = [bound / length for bound in seconds]
    low, likely, high = (f"{part:,.0f}" if part >= 10 else f"{part:.1f}" for part in parts)
    return f"{likely} {unit}" if low == high else f"{likely} {unit} ({low} to {high})"


@dataclass(frozen=True)
class ExpectedCost:
    """Expected cost and duration of some work; `basis` says in a line what they rest on.

    Null stands for a price or a time that nobody knows; `gpu` is the one of one's own that the
    seconds are of, null where others do the work. `plain_usd` is the price of requests that are
    sent one by one, `batch_usd` that of batches, each null where it is unknown or nobody asks; all
    take up to `batch_hours` where one batch after the other takes as long as its provider states.
    """

    usd: Range | None = None
    seconds: Range | None = None
    gpu: str | None = None
    basis: str = ""
    plain_usd: Range | None = None
    batch_usd: Range | None = None
    batch_hours: float | None = None
    is_batched: bool = False

    @property
    def cost_usd(self) -> float | None:
        return None if self.usd is None else self.usd.likely


NO_WORK = ExpectedCost(ZERO, ZERO)


def add_expected(first: ExpectedCost, second: ExpectedCost) -> ExpectedCost:
    """Add the cost of two pieces of work; null where either is unknown."""
    both = (first, second)
    names = ["usd", "seconds"]
    # What is sent in one way alone costs the same in the other.
    names += [name for name in ("plain_usd", "batch_usd") if any(getattr(c, name) for c in both)]
    sums = dict[str, Range | None]()
    for name in names:
        parts = [getattr(c, name) or (c.usd if name.endswith("_usd") else None) for c in both]
        sums[name] = Range.total(filter(None, parts)) if all(parts) else None
    return ExpectedCost(
        **sums,
        gpu=first.gpu or second.gpu,
        basis="; ".join(filter(None, (first.basis, second.basis))),
        batch_hours=sum(cost.batch_hours or 0 for cost in both) or None,
        is_batched=any(cost.is_batched for cost in both),
    )


def extrapolate(values: Sequence[float], number: int) -> Range | None:
    """Extrapolate measured values to `number` more, within two standard errors.

    Both the mean of those measured and the ones to come vary: the variance of the sum is
    `s^2 (number^2 / n + number)` for n values of the standard deviation s.

    >>> extrapolate([1.0, 2.0, 3.0], 9)
    Range(low=6.0, likely=18.0, high=30.0)
    >>> extrapolate([2.0], 10)  # one alone says nothing about others
    Range(low=10.0, likely=20.0, high=40.0)
    """
    if not values:
        return None
    likely = fmean(values) * number
    if len(values) == 1:
        return Range.exactly(likely).expand(2)
    error = 2 * stdev(values) * math.sqrt(number**2 / len(values) + number)
    return Range(max(likely - error, 0.0), likely, likely + error)


class PriceListRow(Section):
    """A row of the price list, which dry runs estimate by."""

    models: tuple[str, ...]
    seconds: Range
    gpu: str | None = None
    as_of: datetime.date
    basis: str
    sources: tuple[str, ...] = Field(min_length=1)

    @property
    def rests_on(self) -> str:
        machine = f"on {self.gpu}: " if self.gpu else ""
        return f"{machine}{self.basis} ({self.as_of})"


class CallPrices(PriceListRow):
    image_tokens: Range
    answer_tokens: Range
    thought_tokens: Range = ZERO


class ImagePrices(PriceListRow):
    server: str | None = None
    price: Mapping[str, float] = {}
    tokens: Mapping[TokenKind, Range] = {}
    when: Mapping[str, Any] = {}


@cache
def read_call_prices() -> Mapping[str, CallPrices]:
    rows = map(CallPrices.model_validate, read_price_list()["calls"])
    return {model: row for row in rows for model in row.models}


@cache
def read_image_prices() -> tuple[ImagePrices, ...]:
    """Return the image models of the list; of two rows for one model the first fitting counts."""
    return tuple(ImagePrices.model_validate(row) for row in read_price_list()["images"])


# Tokens of an image and of an answer with reasons, of a model that is not in the list.
UNLISTED_TOKENS = Range(255, TOKENS_PER_IMAGE, 2600), Range(150, 400, 1500)
UNLISTED_THOUGHTS = Range(0, 0, 1000)


def find_prices(engine: Engine) -> tuple[float | None, float | None]:
    """Return US dollars per million prompt and completion tokens, null where unknown."""
    names = ("usd_per_million_prompt_tokens", "usd_per_million_completion_tokens")
    prompt, completion = (getattr(engine, name, 0.0) for name in names)
    return prompt, completion


def estimate_calls(engine: Engine, plan: RequestPlan) -> ExpectedCost:
    if not plan.calls:
        return NO_WORK
    options = getattr(engine, "options", None)
    row = read_call_prices().get(getattr(options, "model", ""))
    image, answer = (row.image_tokens, row.answer_tokens) if row else UNLISTED_TOKENS
    text = Range(*TEXT_FACTORS).scale(plan.prompt_tokens - TOKENS_PER_IMAGE * plan.images)
    prompt_tokens = Range.total([text, image.scale(plan.images)])
    answer_tokens = answer.scale(plan.calls)
    if plan.answer_tokens is not None:
        # Whether a model thinks less about several posts at a time is not known.
        thoughts = (row.thought_tokens if row else UNLISTED_THOUGHTS).scale(plan.answers)
        answer_tokens = Range.total([Range(*TEXT_FACTORS).scale(plan.answer_tokens), thoughts])

    def estimate(prompt: float | None, completion: float | None) -> Range | None:
        if prompt is None or completion is None:
            return None
        tokens = prompt_tokens.scale(prompt), answer_tokens.scale(completion)
        return Range.total(tokens).scale(1 / MILLION)

    plain, batch = getattr(engine, "plain_price", None), getattr(engine, "batch_price", None)
    expected = ExpectedCost(
        estimate(*find_prices(engine)),
        basis="a wide estimate: how many tokens its model takes is not known",
        plain_usd=estimate(plain.prompt, plain.completion) if plain else None,
        batch_usd=estimate(batch.prompt, batch.completion) if batch and plain != batch else None,
        batch_hours=getattr(engine, "batch_hours", None),
        is_batched=bool(getattr(options, "batch", None)),
    )
    if row is None:
        return expected
    at_a_time = getattr(options, "concurrency", 1)
    if row.gpu:
        gpus = count_processes(getattr(options, "devices", None) or 1)
        at_a_time = max(1, gpus // getattr(options, "tensor_parallel_size", 1))
    seconds = None if expected.is_batched else row.seconds.scale(plan.calls / at_a_time)
    return replace(expected, seconds=seconds, gpu=row.gpu, basis=row.rests_on)
