"""What a platform is: it answers questions about posts a page at a time, and is found by name."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from echo_hf.collect.sources.base import Post
from echo_hf.config.collection import PLATFORMS as PLATFORMS
from echo_hf.reasons import Missing

Kind = Literal["search", "posts", "replies", "thread"]


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A stretch of time in UTC, from `start` until just before `end`."""

    start: datetime.datetime
    end: datetime.datetime


@dataclass(frozen=True, slots=True)
class Question:
    """What a platform is asked; its pages are all answers to the same question.

    Attributes:
        kind: `search`: posts that a term finds; `posts`: these posts; `replies`: what answers
            them; `thread`: everything around them.
        about: The term of a search, else identifiers as the platform knows them.
        window: When the posts of a search were written.
        language: ISO 639-1 code that a search is limited to, null for all.
    """

    kind: Kind
    about: tuple[str, ...]
    window: TimeWindow | None = None
    language: str | None = None

    @property
    def key(self) -> str:
        """What tells this question from all others, the same in every run."""
        window = self.window
        times = [window.start.isoformat(), window.end.isoformat()] if window else None
        return json.dumps([self.kind, self.about, times, self.language], ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """One page, as it came.

    Attributes:
        body: The JSON text of the platform's answer; strangers wrote it.
        cursor: What to ask the next page with, null at the last one.
        posts: How many posts it holds, as the platform counts them for its bill.
        cost_usd: What it cost in US dollars, null where that is unknown.
    """

    body: str
    cursor: str | None = None
    posts: int = 0
    cost_usd: float | None = None


class RateLimitedError(Exception):
    """The platform wants to be left alone for as many `seconds`, by its own words."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"asks to wait {seconds:.0f} s")
        self.seconds = seconds


class StaleCursorError(Exception):
    """The platform no longer knows a cursor: the question has to be asked again whole."""


class UnanswerableError(Exception):
    """The platform will never answer this question; it answers others.

    The message is one line for the user, without content of posts; the crawl puts the question
    aside with it and goes on.
    """


@dataclass(frozen=True, slots=True)
class Tariff:
    """What a platform charges, for the plan that is shown before anything is asked.

    Attributes:
        usd_per_post: Price of a post in US dollars, 0 where it is free, null where it is unknown.
        usd_per_estimate: Price of `estimate`; null where the platform counts nothing beforehand.
        posts_per_page: Most posts of a page of a search.
    """

    usd_per_post: float | None = None
    usd_per_estimate: float | None = None
    posts_per_page: int = 100


class Platform(Protocol):
    """A platform: a context manager that holds a connection; its class takes no arguments.

    What goes wrong is an `EchoError`, which ends the crawl (a key that is missing or refused),
    `UnanswerableError`, `RateLimitedError`, `StaleCursorError`, or, for a trouble that may pass,
    an `OSError`; the crawl tries those again.
    """

    name: str  # also of the source that reads its answers
    tariff: Tariff

    def __enter__(self) -> Platform: ...

    def __exit__(self, *trouble: object) -> None: ...

    def ask(self, question: Question, cursor: str | None = None) -> Answer:
        """Asks for one page.

        Args:
            question: The question.
            cursor: Of the page before, null for the first one.

        Returns:
            The page.
        """
        ...

    def around(self, posts: Sequence[Post]) -> Sequence[Question]:
        """What to ask to have the reply trees of posts: their ancestors and their replies.

        Args:
            posts: Posts that an answer held, as the source read them, missing ones included.

        Returns:
            Questions; equal posts give equal ones, so that none is asked twice.
        """
        ...

    def estimate(self, question: Question) -> int | None:
        """How many posts a search would find, where that can be asked for; null where not."""
        ...


class Refreshing(Protocol):
    """A platform that says which posts are no longer there to be read; one may be both.

    One that cannot tell of some addresses has a `can_tell(url)`, which says whether it can, while
    it is connected: the others are not counted as asked about.
    """

    name: str
    most_refreshed: int  # posts that one call, which is one request, may ask about

    def gone(self, urls: Sequence[str]) -> Mapping[str, Missing]:
        """Which posts were deleted, or hidden from the public, since they were collected.

        Args:
            urls: Canonical addresses, at most `most_refreshed`.

        Returns:
            Why each of those is gone that are; of the others nothing is said, be it that they are
            there, or that this platform cannot tell. What goes wrong is as in `Platform`.
        """
        ...


def make_platform(name: str) -> Platform:
    """The platform of a name, not yet connected."""
    made: Platform = PLATFORMS.find(name)()
    return made
