"""The query plan: which terms are searched for in which windows of time (figure D.1)."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass

from echo_hf.collect.crawl_ledger import CrawlLedger, QuestionState
from echo_hf.collect.platforms.base import Question, TimeWindow
from echo_hf.config.collection import Phase, Search, Span, phase_spans


@dataclass(frozen=True, slots=True)
class Query:
    phase: int
    question: Question
    cut: bool = False


def planned(search: Search, released: datetime.date, now: datetime.datetime) -> Iterator[Query]:
    until = now.astimezone(datetime.UTC).replace(minute=0, second=0, microsecond=0)
    for number, (phase, span) in enumerate(
        zip(search.phases, phase_spans(search.phases, released), strict=True)
    ):
        for window, cut in _windows(phase, span, until):
            for term in phase.terms:
                for language in phase.languages or (None,):
                    yield Query(number, Question("search", (term,), window, language), cut)


def is_planned(question: Question, search: Search, released: datetime.date) -> bool:
    """Whether a search still asks for what a question of an earlier run does."""
    return any(
        question.about in [(term,) for term in phase.terms]
        and question.language in (phase.languages or (None,))
        and _holds(span, question.window)
        for phase, span in zip(search.phases, phase_spans(search.phases, released), strict=True)
    )


def _holds(span: Span, window: TimeWindow | None) -> bool:
    if window is None:
        return True
    ends = None if span.until is None else midnight(span.until)
    return midnight(span.start) <= window.start and (ends is None or window.end <= ends)


def _windows(phase: Phase, span: Span, now: datetime.datetime) -> Iterator[tuple[TimeWindow, bool]]:
    """The windows of a phase, and whether each is cut at now."""
    start = midnight(span.start)
    until = midnight(span.until) if span.until is not None else None
    while start < now and (until is None or start < until):
        end = start + phase.length if until is None else min(start + phase.length, until)
        yield TimeWindow(start, min(end, now)), now < end
        start = end


def midnight(day: datetime.date) -> datetime.datetime:
    """The first moment of a day, in UTC."""
    return datetime.datetime.combine(day, datetime.time(), datetime.UTC)


def take_plan(
    ledger: CrawlLedger,
    platform: str,
    search: Search,
    released: datetime.date,
    now: datetime.datetime,
) -> None:
    """Opens the questions that a search asks now, and no other search."""
    ledger.try_again(platform)
    for asked in ledger.open_searches(platform):
        if not is_planned(asked.question, search, released):
            ledger.put_aside(asked, QuestionState.UNPLANNED)
    searches = (query.question for query in planned(search, released, now))
    ledger.add_searches(platform, uncovered(ledger, platform, searches))


def uncovered(
    ledger: CrawlLedger, platform: str, searches: Iterator[Question]
) -> Iterator[Question]:
    """The part of each window that no earlier question has asked for."""
    for search in searches:
        end = ledger.covered(platform, search)
        if search.window is None or end is None:
            yield search
        elif end < search.window.end:
            rest = TimeWindow(end, search.window.end)
            yield Question(search.kind, search.about, rest, search.language)
