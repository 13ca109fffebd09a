"""What a query plan will take: posts, requests and dollars, as far as they are known beforehand."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from echo_hf.collect.crawl import searches
from echo_hf.collect.crawl_ledger import LEDGER, CrawlLedger, QuestionState
from echo_hf.collect.platforms.base import (
    Platform,
    RateLimitedError,
    Tariff,
    UnanswerableError,
    make_platform,
)
from echo_hf.collect.query_plan import Query, planned
from echo_hf.config.loading import Config
from echo_hf.errors import EchoError

Noticed = Callable[[str], None]
Estimate = Callable[[Query], int | None]


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    platform: str
    query: Query
    done: bool
    posts: int | None
    requests: int
    usd: float | None


def planned_queries(
    config: Config,
    root: Path,
    now: datetime.datetime,
    *,
    estimate: bool = False,
    noticed: Noticed,
    make: Callable[[str], Platform] = make_platform,
) -> Iterator[PlannedQuery]:
    """The whole plan of a config; no post is asked for."""
    for name, search in searches(config).items():
        with ExitStack() as closing:
            tariff, counts = _asked_beforehand(name, estimate, noticed, make, closing)
            ledger = None
            if (root / LEDGER).exists():
                ledger = closing.enter_context(CrawlLedger(root / LEDGER))
            for query in planned(search, config.target.released, now):
                done = ledger is not None and _is_done(ledger, name, query)
                yield _taking(name, query, done, None if done else counts(query), tariff)


def _taking(
    platform: str, query: Query, done: bool, posts: int | None, tariff: Tariff
) -> PlannedQuery:
    if done:
        return PlannedQuery(platform, query, True, 0, 0, 0.0)
    requests = max(1, math.ceil((posts or 0) / tariff.posts_per_page))
    price = 0.0 if tariff.usd_per_post == 0 else None
    if posts is not None and tariff.usd_per_post is not None:
        price = posts * tariff.usd_per_post
    return PlannedQuery(platform, query, False, posts, requests, price)


def _is_done(ledger: CrawlLedger, platform: str, query: Query) -> bool:
    state = ledger.state(platform, query.question)
    if state is not None:
        return state in (QuestionState.DONE, QuestionState.REFUSED)
    window, until = query.question.window, ledger.covered(platform, query.question)
    return window is not None and until is not None and until >= window.end


def _asked_beforehand(
    name: str,
    estimate: bool,
    noticed: Noticed,
    make: Callable[[str], Platform],
    closing: ExitStack,
) -> tuple[Tariff, Estimate]:
    """What a platform charges, and how to ask it for numbers of posts."""
    try:
        platform = make(name)
    except EchoError as error:
        noticed(f"what {name} charges is not known: {error}")
        return Tariff(), _unknown
    price = platform.tariff.usd_per_estimate
    if platform.tariff.usd_per_post:
        noticed(f"{name} charges ${platform.tariff.usd_per_post:g} a post")
    if price and not estimate:
        noticed(f"{name} counts posts beforehand for ${price:g} a query: --estimate asks it to")
    if price is None or (price and not estimate):
        return platform.tariff, _unknown
    try:
        connected = closing.enter_context(platform)
    except (EchoError, OSError, RateLimitedError) as error:
        noticed(f"{name} cannot be asked how many posts there are: {error}")
        return platform.tariff, _unknown
    return platform.tariff, _Estimates(connected, noticed)


def _unknown(query: Query) -> None:
    del query


@dataclass
class _Estimates:
    """Asks for numbers of posts until the platform does not give them any more."""

    platform: Platform
    noticed: Noticed
    ended: bool = False

    def __call__(self, query: Query) -> int | None:
        if self.ended:
            return None
        try:
            return self.platform.estimate(query.question)
        except UnanswerableError:
            return None
        except (EchoError, OSError, RateLimitedError) as error:
            self.ended = True
            self.noticed(f"{self.platform.name} gives no more numbers of posts: {error}")
            return None


def as_json(one: PlannedQuery) -> dict[str, object]:
    question, window = one.query.question, one.query.question.window
    return {
        "platform": one.platform,
        "phase": one.query.phase + 1,
        "term": question.about[0],
        "language": question.language,
        "start": window.start.isoformat() if window else None,
        "end": window.end.isoformat() if window else None,
        "cut": one.query.cut,
        "done": one.done,
        "posts": one.posts,
        "requests": one.requests,
        "usd": one.usd,
    }
