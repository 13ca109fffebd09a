"""The order in which requests go to an engine, and what they will take before they do."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean, stdev
from typing import Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field

from echo_hf._infra.worker_pool import process_count
from echo_hf.engines.base import Engine, Message, Request, Text
from echo_hf.engines.prices import MILLION, price_list

CHARACTERS_PER_TOKEN = 4
TOKENS_PER_IMAGE = 1280


def plan_order(requests: Sequence[Request]) -> list[int]:
    """Numbers of the requests in the order to send them: what begins alike stands together."""
    by_message: dict[Message, int] = {}
    by_images: dict[tuple[int, tuple[str, ...]], int] = {}
    places = []
    for request in requests:
        prefix = by_message.setdefault(request.messages[0], len(by_message))
        shown = tuple(reference.sha256 for reference in request.images)
        images = by_images.setdefault((prefix, shown), len(by_images))
        places.append((prefix, images))
    return sorted(range(len(requests)), key=places.__getitem__)


@dataclass(frozen=True, slots=True)
class RequestPlan:
    requests: int = 0
    stored: int = 0
    repeated: int = 0
    prompt_tokens: int = 0
    images: int = 0
    usd_per_million_prompt_tokens: float | None = None

    @property
    def calls(self) -> int:
        """Calls still to make, second tries not counted."""
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


def extended(
    plan: RequestPlan, requests: Sequence[Request], stored: int, repeated: int = 0
) -> RequestPlan:
    return replace(
        plan,
        requests=plan.requests + len(requests) + stored + repeated,
        stored=plan.stored + stored,
        repeated=plan.repeated + repeated,
        prompt_tokens=plan.prompt_tokens + sum(map(request_tokens, requests)),
        images=plan.images + sum(len(request.images) for request in requests),
    )


def request_tokens(request: Request) -> int:
    parts = (part for message in request.messages for part in message.parts)
    texts = sum(estimate_tokens(part.text) for part in parts if isinstance(part, Text))
    return texts + TOKENS_PER_IMAGE * len(request.images)


def estimate_tokens(text: str) -> int:
    """Tokens of a text, roughly: four Latin characters a token, one of most other scripts."""
    wide = sum(character > "\u02ff" for character in text)
    return -(-(len(text) - wide) // CHARACTERS_PER_TOKEN) + wide


TokenKind = Literal["image_in", "text_out", "image_out"]
# A token has three to five letters, by language and model.
OF_TEXT = (0.8, 1.0, 1.25)


class Range(NamedTuple):
    """A number that is not known yet: the least, the likely, and the most."""

    low: float
    likely: float
    high: float

    @classmethod
    def exactly(cls, number: float) -> Self:
        return cls(number, number, number)

    @classmethod
    def total(cls, ranges: Iterable[Range]) -> Self:
        """The sum; its ends are where all are at their ends together."""
        every = list(ranges)
        return cls(*(sum(one[at] for one in every) for at in range(3)))

    def times(self, number: float) -> Self:
        return type(self)(*(one * number for one in self))

    def widened(self, factor: float) -> Self:
        return type(self)(self.low / factor, self.likely, self.high * factor)


NOTHING = Range.exactly(0)
UNKNOWN = "unknown"
UNITS = ((7200, 3600, "h"), (120, 60, "min"))


def shown_dollars(usd: Range | None) -> str:
    if usd is None:
        return UNKNOWN
    low, likely, high = (f"{one:,.2f}" for one in usd)
    return f"${likely}" if low == high else f"${likely} ({low} to {high})"


def shown_time(seconds: Range | None) -> str:
    """A time for people, in hours, minutes or seconds.

    >>> shown_time(Range(5400, 9000, 18000))
    '2.5 h (1.5 to 5.0)'
    """
    if seconds is None:
        return UNKNOWN
    units = (one for one in UNITS if seconds.likely >= one[0])
    _, length, unit = next(units, (0, 1, "s"))
    parts = [one / length for one in seconds]
    low, likely, high = (f"{one:,.0f}" if one >= 10 else f"{one:.1f}" for one in parts)
    return f"{likely} {unit}" if low == high else f"{likely} {unit} ({low} to {high})"


@dataclass(frozen=True)
class Expected:
    """What some work is expected to take; `basis` says in a line what that rests on.

    Null stands for a price or a time that nobody knows; `gpu` is the one of one's own that the
    seconds are of, null where others do the work.
    """

    usd: Range | None = None
    seconds: Range | None = None
    gpu: str | None = None
    basis: str = ""

    @property
    def cost_usd(self) -> float | None:
        return None if self.usd is None else self.usd.likely


NO_WORK = Expected(NOTHING, NOTHING)


def both(one: Expected, other: Expected) -> Expected:
    """What two works take, one after the other; null where either is not known."""
    usd = one.usd and other.usd and Range.total([one.usd, other.usd])
    seconds = one.seconds and other.seconds and Range.total([one.seconds, other.seconds])
    basis = "; ".join(filter(None, (one.basis, other.basis)))
    return Expected(usd, seconds, one.gpu or other.gpu, basis)


def measured(values: Sequence[float], number: int) -> Range | None:
    """What so many more of them are expected to come to, within two standard errors.

    Both the mean of those measured and the ones to come vary: the variance of the sum is
    `s^2 (number^2 / n + number)` for n values of the standard deviation s.

    >>> measured([1.0, 2.0, 3.0], 9)
    Range(low=6.0, likely=18.0, high=30.0)
    >>> measured([2.0], 10)  # one alone says nothing about others
    Range(low=10.0, likely=20.0, high=40.0)
    """
    if not values:
        return None
    likely = fmean(values) * number
    if len(values) == 1:
        return Range.exactly(likely).widened(2)
    error = 2 * stdev(values) * math.sqrt(number**2 / len(values) + number)
    return Range(max(likely - error, 0.0), likely, likely + error)


class Listed(BaseModel):
    """A row of the list of what a dry run counts on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    models: tuple[str, ...]
    seconds: Range
    gpu: str | None = None
    as_of: datetime.date
    basis: str
    sources: tuple[str, ...] = Field(min_length=1)

    @property
    def rests_on(self) -> str:
        on = f"on {self.gpu}: " if self.gpu else ""
        return f"{on}{self.basis} ({self.as_of})"


class ListedCalls(Listed):
    image_tokens: Range
    answer_tokens: Range


class ListedImages(Listed):
    server: str | None = None
    price: Mapping[str, float] = {}
    tokens: Mapping[TokenKind, Range] = {}
    when: Mapping[str, Any] = {}


@cache
def listed_calls() -> Mapping[str, ListedCalls]:
    rows = map(ListedCalls.model_validate, price_list()["calls"])
    return {model: row for row in rows for model in row.models}


@cache
def listed_images() -> tuple[ListedImages, ...]:
    """The image models of the list; of two rows for one model, the first that fits holds."""
    return tuple(ListedImages.model_validate(row) for row in price_list()["images"])


# Tokens of an image and of an answer with reasons, of a model that is not in the list.
UNLISTED = Range(255, TOKENS_PER_IMAGE, 2600), Range(150, 400, 1500)


def prices_of(engine: Engine) -> tuple[float | None, float | None]:
    """US dollars for a million tokens of prompt and answer, null where nobody knows."""
    names = ("usd_per_million_prompt_tokens", "usd_per_million_completion_tokens")
    prompt, completion = (getattr(engine, name, 0.0) for name in names)
    return prompt, completion


def expected_calls(engine: Engine, plan: RequestPlan) -> Expected:
    if not plan.calls:
        return NO_WORK
    options, usd = getattr(engine, "options", None), None
    row = listed_calls().get(getattr(options, "model", ""))
    prompt, completion = prices_of(engine)
    image, answer = (row.image_tokens, row.answer_tokens) if row else UNLISTED
    if prompt is not None and completion is not None:
        text = Range(*OF_TEXT).times(plan.prompt_tokens - TOKENS_PER_IMAGE * plan.images)
        asked = Range.total([text, image.times(plan.images)]).times(prompt / MILLION)
        usd = Range.total([asked, answer.times(plan.calls).times(completion / MILLION)])
    if row is None:
        return Expected(usd, basis="a wide estimate: how many tokens its model takes is not known")
    at_a_time = getattr(options, "concurrency", 1)
    if row.gpu:
        gpus = process_count(getattr(options, "devices", None) or 1)
        at_a_time = max(1, gpus // getattr(options, "tensor_parallel_size", 1))
    seconds = row.seconds.times(plan.calls / at_a_time)
    return Expected(usd, seconds, row.gpu, row.rests_on)
