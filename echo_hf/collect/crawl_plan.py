"""The query plan in the crawl's ledger: what is new in it, and what is planned no more."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from echo_hf.collect.crawl_ledger import CrawlLedger
from echo_hf.collect.crawl_question import QuestionState
from echo_hf.collect.plan import is_planned, planned
from echo_hf.collect.platforms.base import Question, Window
from echo_hf.collect.search_config import Search


def take_plan(
    ledger: CrawlLedger,
    platform: str,
    search: Search,
    released: datetime.date,
    now: datetime.datetime,
) -> None:
    """Opens the questions that a search asks now, and no other search.

    Args:
        ledger: Of the crawl.
        platform: Who is asked.
        search: What is asked.
        released: The day on which the target was released.
        now: The time, with a zone.

    Raises:
        ConfigError: As for `phase_spans`.
        StoreError: The ledger cannot be used.
    """
    ledger.try_again(platform)
    for asked in ledger.open_searches(platform):
        if not is_planned(asked.question, search, released):
            ledger.put_aside(asked, QuestionState.UNPLANNED)
    searches = (query.question for query in planned(search, released, now))
    ledger.add_searches(platform, uncovered(ledger, platform, searches))


def uncovered(
    ledger: CrawlLedger, platform: str, searches: Iterator[Question]
) -> Iterator[Question]:
    """The part of each window that no earlier question has asked for.

    A window that was cut at the time of an earlier run is not asked again: only what is new in it.

    Args:
        ledger: Of the crawl.
        platform: Who is asked.
        searches: Questions of the plan.

    Yields:
        Questions about what is left of their windows.
    """
    for search in searches:
        end = ledger.covered(platform, search)
        if search.window is None or end is None:
            yield search
        elif end < search.window.end:
            rest = Window(end, search.window.end)
            yield Question(search.kind, search.about, rest, search.language)
