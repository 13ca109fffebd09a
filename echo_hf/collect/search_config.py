"""How a config says that a platform is asked for posts: search terms that change with time."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from echo_hf.config_fields import Section, Whole, Words
from echo_hf.errors import ConfigError

DAYS = re.compile(r"([1-9][0-9]{0,2})d")


def _length(text: str) -> str:
    if not DAYS.fullmatch(text):
        raise ValueError("expected a number of days from 1d to 999d, such as 1d or 7d")
    return text


def _language(code: str) -> str:
    if not re.fullmatch(r"[a-z]{2}", code):
        raise ValueError("expected two letters of ISO 639-1, such as ja")
    return code


def _different(words: tuple[str, ...]) -> tuple[str, ...]:
    twice = next((word for at, word in enumerate(words) if word in words[:at]), None)
    if twice is not None:
        raise ValueError(f"expected each once, {twice!r} stands there twice")
    return words


Terms = Annotated[tuple[Words, ...], Field(min_length=1), AfterValidator(_different)]
Language = Annotated[str, AfterValidator(_language)]


class Phase(Section):
    """A stretch of time in which the same terms are searched for.

    Attributes:
        terms: What is searched for, each by itself.
        languages: ISO 639-1 codes that each term is limited to in turn; empty for all at once.
        window: How much time one query covers, such as `1d` or `7d`.
        start: First day (UTC); null for the end of the phase before, or the day of the release.
        days: How long it lasts.
        until: The day after its last one; with neither, it lasts until now.
    """

    terms: Terms
    languages: Annotated[tuple[Language, ...], AfterValidator(_different)] = ()
    window: Annotated[str, AfterValidator(_length)]
    start: datetime.date | None = None
    days: Annotated[Whole, Field(ge=1)] | None = None
    until: datetime.date | None = None

    @property
    def length(self) -> datetime.timedelta:
        """How much time one query covers."""
        return datetime.timedelta(days=int(self.window.removesuffix("d")))

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if self.days is not None and self.until is not None:
            raise ValueError("has days and until: expected one of them")
        return self


class Budget(Section):
    """Where asking stops; the page that reaches it is the last one.

    Attributes:
        posts: Most posts, as the platform counts them for its bill.
        usd: Most US dollars.
    """

    posts: Annotated[Whole, Field(ge=1)] | None = None
    usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


class Expand(Section):
    """How far reply trees are followed; without limits until nothing new comes.

    Attributes:
        rounds: How often the newly found posts are asked about; 0 keeps to the search.
        posts: Most posts that come by it, counted as for the budget.
    """

    rounds: Annotated[Whole, Field(ge=0)] | None = None
    posts: Annotated[Whole, Field(ge=1)] | None = None


class Search(Section):
    """What a platform is asked.

    Attributes:
        phases: One after the other, or each with a `start` of its own.
        budget: Where asking stops.
        expand: How far reply trees are followed.
    """

    phases: Annotated[tuple[Phase, ...], Field(min_length=1)]
    budget: Budget = Budget()
    expand: Expand = Expand()


@dataclass(frozen=True, slots=True)
class Span:
    """When a phase is.

    Attributes:
        start: Its first day.
        until: The day after its last one, null for one that goes on.
    """

    start: datetime.date
    until: datetime.date | None


def phase_spans(phases: Sequence[Phase], released: datetime.date, place: str = "") -> list[Span]:
    """When each phase is.

    Args:
        phases: The phases of a search.
        released: The day on which the target was released.
        place: Where they stand, for messages.

    Returns:
        A span for each.

    Raises:
        ConfigError: A phase begins where one without an end would have ended, or ends before it
            begins.

    Example:
        >>> import datetime
        >>> two_weeks = Phase(terms=("gpt",), window="1d", days=14)
        >>> phase_spans([two_weeks], datetime.date(2025, 3, 25))[0].until
        datetime.date(2025, 4, 8)
    """
    return list(_spans(phases, released, place))


def _after(start: datetime.date, days: int, where: str) -> datetime.date:
    try:
        return start + datetime.timedelta(days)
    except OverflowError:
        raise ConfigError(
            f"{where}.days is {days}: expected a number that ends before the year 10000; leave it "
            "out for a phase that goes on until now"
        ) from None


def _spans(phases: Sequence[Phase], released: datetime.date, place: str) -> Iterator[Span]:
    before: datetime.date | None = released
    for number, phase in enumerate(phases):
        where = f"{place}.phases.{number}" if place else f"phases.{number}"
        start = phase.start or before
        if start is None:
            raise ConfigError(
                f"{where} begins where the phase before ends, and that one has no end: give it "
                "days or until, or this one a start"
            )
        until = phase.until if phase.days is None else _after(start, phase.days, where)
        if until is not None and until <= start:
            raise ConfigError(
                f"{where}.until is {until.isoformat()}: expected a day after its start, "
                f"{start.isoformat()}"
            )
        yield Span(start, until)
        before = until
