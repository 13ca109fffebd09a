"""What a crawl has found: by search terms, by following replies, and what could not be had."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from echo_hf.collect.crawl_ledger import CrawlLedger
from echo_hf.collect.crawl_spent import Spent
from echo_hf.collect.crawl_tables import explained
from echo_hf.reasons import CrawlEnd

STATS = "crawl.json"
POSTS = """select count(*) filter (where found and missing is null),
    count(*) filter (where not found and missing is null) from seen where platform = ?"""
MISSING = """select missing, count(*) from seen where platform = ? and missing is not null
    group by missing order by missing"""
STATES = "select state, count(*) from questions where platform = ? group by state order by state"
ERRORS = """select error, count(*) from questions where platform = ? and error is not null
    group by error order by count(*) desc, error limit 3"""


@dataclass(frozen=True, slots=True)
class CrawlStats:
    """What all runs have found on a platform, and why the last one ended.

    Attributes:
        platform: Who was asked.
        end: Why it is asked no more for now.
        by_terms: Posts with content that a search term found.
        by_replies: Posts with content that only following replies found.
        missing: Posts without content that others name, by reason.
        questions: Questions by state.
        errors: The most frequent troubles of questions that are not answered, and how often.
        spent: Requests, posts as the platform counts them, and cost.
        waits: How often it wanted to be left alone in the last run.
        waited_s: For how long, in all.
        seconds: How long the last run took.
    """

    platform: str
    end: CrawlEnd
    by_terms: int
    by_replies: int
    missing: Mapping[str, int]
    questions: Mapping[str, int]
    errors: Mapping[str, int]
    spent: Spent
    waits: int = 0
    waited_s: float = 0.0
    seconds: float = 0.0

    @property
    def missed_by_terms(self) -> float | None:
        """The share of posts that search terms alone would have missed; null without posts."""
        every = self.by_terms + self.by_replies
        return self.by_replies / every if every else None


def crawl_stats(
    ledger: CrawlLedger,
    platform: str,
    end: CrawlEnd,
    waits: int = 0,
    waited_s: float = 0.0,
    seconds: float = 0.0,
) -> CrawlStats:
    """Counts what a ledger holds of a platform.

    Args:
        ledger: The ledger.
        platform: The platform.
        end: Why the run ended.
        waits: How often the platform wanted to be left alone in it.
        waited_s: For how long, in all.
        seconds: How long it took.

    Returns:
        The figures.
    """
    with explained(ledger.path):
        by_terms, by_replies = ledger.connection.execute(POSTS, (platform,)).fetchone()
        missing, questions, errors = (
            dict(ledger.connection.execute(query, (platform,)).fetchall())
            for query in (MISSING, STATES, ERRORS)
        )
    found = (by_terms, by_replies, missing, questions, errors, ledger.spent(platform))
    return CrawlStats(platform, end, *found, waits, waited_s, seconds)


def write_stats(path: Path, stats: Iterable[CrawlStats]) -> None:
    """Writes the figures of all platforms down as JSON.

    Args:
        path: The file.
        stats: The figures.
    """
    every = {
        one.platform: {**dataclasses.asdict(one), "missed_by_terms": one.missed_by_terms}
        for one in stats
    }
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(json.dumps(every, indent=1) + "\n", "utf-8")
    partial.replace(path)
