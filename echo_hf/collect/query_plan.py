"""The query plan: which terms are searched for in which windows (figure D.1), and what it takes."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from echo_hf.collect.crawl_ledger import LEDGER, CrawlLedger, QuestionState
from echo_hf.collect.platforms.base import (
    Platform,
    Question,
    RateLimitedError,
    StaleCursorError,
    Tariff,
    TimeWindow,
    UnanswerableError,
    make_platform,
)
from echo_hf.config.collection import Search, phase_spans
from echo_hf.config.loading import Config
from echo_hf.errors import EchoError


@dataclass(frozen=True, slots=True)
class Query:
    phase: int
    question: Question
    cut: bool = False


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    platform: str
    query: Query
    done: bool
    posts: int | None
    requests: int
    usd: float | None


def searches(config: Config) -> dict[str, Search]:
    return {entry.source: entry.search for entry in config.posts if entry.search is not None}


def midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time(), datetime.UTC)


def planned(search: Search, released: datetime.date, now: datetime.datetime) -> Iterator[Query]:
    hour = now.astimezone(datetime.UTC).replace(minute=0, second=0, microsecond=0)
    spans = phase_spans(search.phases, released)
    for number, (phase, span) in enumerate(zip(search.phases, spans, strict=True)):
        start = midnight(span.start)
        until = midnight(span.until) if span.until is not None else None
        while start < min(hour, until or hour):
            end = min(start + phase.length, until or start + phase.length)
            window = TimeWindow(start, min(end, hour))
            for term in phase.terms:
                for language in phase.languages or (None,):
                    question = Question("search", (term,), window, language)
                    yield Query(number, question, cut=hour < end)
            start = end


def take_plan(
    ledger: CrawlLedger,
    platform: str,
    search: Search,
    released: datetime.date,
    now: datetime.datetime,
) -> None:
    """Opens the questions that a search asks now, and none of a term or language taken out."""
    wanted = {
        ((term,), language)
        for phase in search.phases
        for term in phase.terms
        for language in phase.languages or (None,)
    }
    ledger.try_again(platform)
    for asked in ledger.open_searches(platform):
        if (asked.question.about, asked.question.language) not in wanted:
            ledger.put_aside(asked, QuestionState.UNPLANNED)
    asks = (query.question for query in planned(search, released, now))
    ledger.add_searches(platform, uncovered(ledger, platform, asks))


def uncovered(ledger: CrawlLedger, platform: str, asks: Iterable[Question]) -> Iterator[Question]:
    """The part of each window that no earlier question has asked for."""
    for ask in asks:
        end = ledger.covered(platform, ask)
        if ask.window is None or end is None:
            yield ask
        elif end < ask.window.end:
            yield Question(ask.kind, ask.about, TimeWindow(end, ask.window.end), ask.language)


def open_questions(config: Config, root: Path, now: datetime.datetime) -> Iterator[tuple[str, int]]:
    """How many questions are not answered yet: of the plan, and about replies."""
    for name, search in searches(config).items():
        asks = [query.question for query in planned(search, config.target.released, now)]
        count = len(asks)
        if (root / LEDGER).exists():
            with CrawlLedger(root / LEDGER) as ledger:
                states = ledger.states(name)
                count = sum(1 for _ in uncovered(ledger, name, asks))
                count += states.get("open", 0) + states.get("troubled", 0)
        if count:
            yield name, count


def planned_queries(
    config: Config,
    root: Path,
    now: datetime.datetime,
    *,
    estimate: bool = False,
    noticed: Callable[[str], None],
    make: Callable[[str], Platform] = make_platform,
) -> Iterator[PlannedQuery]:
    for name, search in searches(config).items():
        with ExitStack() as closing:
            tariff, platform = _counting(name, estimate, noticed, make, closing)
            ledger = None
            if (root / LEDGER).exists():
                ledger = closing.enter_context(CrawlLedger(root / LEDGER))
            for query in planned(search, config.target.released, now):
                if ledger is not None and _is_done(ledger, name, query.question):
                    yield PlannedQuery(name, query, True, 0, 0, 0.0)
                    continue
                posts = None
                try:
                    posts = platform.estimate(query.question) if platform else None
                except (UnanswerableError, StaleCursorError):
                    pass
                except (EchoError, OSError, RateLimitedError) as error:
                    platform = None
                    noticed(f"{name} gives no more numbers of posts: {error}")
                price = tariff.usd_per_post
                usd = 0.0 if price == 0 else None
                if posts is not None and price is not None:
                    usd = posts * price
                requests = max(1, math.ceil((posts or 0) / tariff.posts_per_page))
                yield PlannedQuery(name, query, False, posts, requests, usd)


def _is_done(ledger: CrawlLedger, platform: str, question: Question) -> bool:
    state = ledger.state(platform, question)
    if state is not None:
        return state in (QuestionState.DONE, QuestionState.REFUSED)
    return not list(uncovered(ledger, platform, [question]))


def _counting(
    name: str,
    estimate: bool,
    noticed: Callable[[str], None],
    make: Callable[[str], Platform],
    closing: ExitStack,
) -> tuple[Tariff, Platform | None]:
    """What a platform charges, and itself where it can be asked for numbers of posts."""
    tariff = Tariff()
    try:
        platform = make(name)
        tariff, price = platform.tariff, platform.tariff.usd_per_estimate
        if tariff.usd_per_post:
            noticed(f"{name} charges ${tariff.usd_per_post:g} a post")
        if price and not estimate:
            noticed(f"{name} counts posts beforehand for ${price:g} a query: --estimate asks it to")
        elif price is not None:
            return tariff, closing.enter_context(platform)
    except (EchoError, OSError, RateLimitedError) as error:
        noticed(f"{name} cannot be asked how many posts there are: {error}")
    return tariff, None


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
