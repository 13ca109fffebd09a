"""Crawls of several platforms, and of a config that changed."""

from __future__ import annotations

import dataclasses
import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from echo_hf.collect.crawl import STATS, Crawl, crawl_posts
from echo_hf.collect.crawl_ledger import LEDGER, CrawlLedger
from echo_hf.collect.platforms.base import Answer, Question, RateLimitedError
from echo_hf.config.collection import Budget, Phase, Search
from echo_hf.config.loading import Config, parse_config
from echo_hf.errors import PlatformError
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import CrawlEnd
from tests.collect.platforms.crawling import HURRIED
from tests.collect.platforms.simulated import FIRST_DAY, NAME, Simulated, SimulatedSource
from tests.progress_for_tests import Heard

PHASE = {"days": 1, "window": "1d", "terms": ["lumen"]}
PAGE = Answer('{"posts": []}')


class Named(Simulated):
    """A platform that connects and answers as it is told to."""

    def __init__(self, name: str, answer: Answer | Exception, door: Exception | None = None):
        super().__init__()
        self.name, self.answer, self.door = name, answer, door
        self.asked: list[Question] = []

    def __enter__(self) -> Named:
        if self.door is not None:
            raise self.door
        return self

    def ask(self, question: Question, cursor: str | None = None) -> Answer:
        """Always the same."""
        del cursor
        self.asked.append(question)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def two_platforms() -> Config:
    """A config that asks Bluesky first, then X."""
    return parse_config(
        {
            "name": "crawled",
            "target": {"name": "A", "developer": "B", "released": FIRST_DAY.date()},
            "posts": [
                {"source": "bluesky", "search": {"phases": [PHASE]}},
                {"source": "x", "search": {"phases": [PHASE], "budget": {"posts": 9}}},
            ],
            "engines": {"text": {"kind": "rules"}},
        },
        "c.yaml",
    )


def crawled(root: Path, *platforms: Named) -> Any:
    """Crawls both, and gives what was told and how each ended, as it is written down."""
    made, watch = {one.name: one for one in platforms}, Heard()
    crawl_posts(two_platforms(), RunFolder(root), watch, patience=HURRIED, make=made.__getitem__)
    written = json.loads((root / STATS).read_text())
    return watch.remarks, {name: stats["end"] for name, stats in written.items()}


def test_a_platform_that_refuses_its_key_costs_no_other(tmp_path: Path) -> None:
    """The others are asked, what came is written down, and then the run ends with the reason."""
    bluesky, x = Named("bluesky", PlatformError("no such key")), Named("x", PAGE)
    with pytest.raises(PlatformError, match="no such key"):
        crawled(tmp_path, bluesky, x)
    written = json.loads((tmp_path / STATS).read_text())

    assert len(x.asked) == 1
    assert {name: stats["end"] for name, stats in written.items()} == {
        "bluesky": "key_refused",
        "x": "nothing_left",
    }
    assert written["bluesky"]["questions"] == {"open": 1}


@pytest.mark.parametrize(
    ("door", "end", "words"),
    [
        (ConnectionError("no route"), "out_of_reach", "bluesky cannot be asked: no route"),
        (RateLimitedError(90_000), "told_to_wait", "bluesky asks to wait 90000 s"),
    ],
    ids=["no route", "a limit"],
)
def test_a_platform_that_lets_nobody_in_costs_no_other(
    door: Exception, end: str, words: str, tmp_path: Path
) -> None:
    """The next run tries again; this one asks the others."""
    x = Named("x", PAGE)
    remarks, ends = crawled(tmp_path, Named("bluesky", PAGE, door), x)

    assert len(x.asked) == 1
    assert ends == {"bluesky": end, "x": "nothing_left"}
    assert words in remarks[0]


def test_a_key_that_is_missing_is_told_before_anybody_is_asked(tmp_path: Path) -> None:
    """Nothing is paid for in a run that cannot succeed."""
    bluesky, x = Named("bluesky", PAGE), Named("x", PAGE, PlatformError("no key"))
    with pytest.raises(PlatformError, match="no key"):
        crawled(tmp_path, bluesky, x)

    assert bluesky.asked == x.asked == []


class TestTermsThatAreTakenOut:
    """Questions of an ended run that the config asks no more."""

    NOW = FIRST_DAY + datetime.timedelta(days=9)

    def crawl(self, root: Path, phase: Phase, posts: int | None = None) -> tuple[set[str], Any]:
        """One run: the terms it asked for, and how it ended."""
        platform = Named(NAME, dataclasses.replace(PAGE, posts=1))
        search = Search(phases=(phase,), budget=Budget(posts=posts))
        with CrawlLedger(root / LEDGER) as ledger:
            crawl = Crawl(platform, SimulatedSource(), search, ledger, Heard(), HURRIED)
            end = crawl.run(FIRST_DAY.date(), self.NOW)
        return {question.about[0] for question in platform.asked}, end

    def test_they_are_not_asked_until_they_come_back(self, tmp_path: Path) -> None:
        """Whoever ends a run since a term costs too much does not pay for the rest of it."""
        both = Phase(terms=("lumen", "fox"), window="1d", days=3)
        one = Phase(terms=("fox",), window="1d", days=3)

        assert self.crawl(tmp_path, both, posts=1) == ({"lumen"}, CrawlEnd.POSTS_SPENT)
        assert self.crawl(tmp_path, one) == ({"fox"}, CrawlEnd.NOTHING_LEFT)
        assert self.crawl(tmp_path, both) == ({"lumen"}, CrawlEnd.NOTHING_LEFT)

    @pytest.mark.parametrize(
        "less",
        [
            Phase(terms=("lumen",), window="1d", days=1),
            Phase(terms=("lumen",), window="1d", days=5, languages=("ja",)),
        ],
        ids=["days", "language"],
    )
    def test_neither_are_days_and_languages(self, less: Phase, tmp_path: Path) -> None:
        """As for terms: five days were begun, and one or another language is left."""
        more = Phase(terms=("lumen",), window="1d", days=5)
        self.crawl(tmp_path, more, posts=1)
        self.crawl(tmp_path, less)
        with CrawlLedger(tmp_path / LEDGER) as ledger:
            (left,) = ledger.execute("select count(*) from questions where state = 'unplanned'")[0]

        assert left == 4
