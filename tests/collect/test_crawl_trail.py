"""Questions whose pages lead nowhere."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

import pytest

from echo_hf.collect.crawl import MOST_BEGINNINGS, MOST_IDLE, Crawl
from echo_hf.collect.crawl_ledger import CrawlLedger, CrawlStats
from echo_hf.collect.platforms.base import Answer, Question
from echo_hf.config.collection import Expand, Phase, Search
from echo_hf.reasons import CrawlEnd
from tests.collect.platforms.crawling import HURRIED
from tests.collect.platforms.simulated import FIRST_DAY, NAME, Simulated, SimulatedSource
from tests.progress_for_tests import Heard

SEARCH = Search(phases=(Phase(terms=("lumen",), window="1d", days=1),), expand=Expand(rounds=0))
Page = Callable[[str | None], Answer]


class Paged(Simulated):
    """A platform whose pages a function makes of their cursors."""

    def __init__(self, page: Page) -> None:
        super().__init__()
        self.page = page
        self.asked = 0

    def ask(self, question: Question, cursor: str | None = None) -> Answer:
        """The page; more of them than any question needs are a fault."""
        del question
        self.asked += 1
        assert self.asked < 1000
        return self.page(cursor)


def pages_asked(page: Page, root: Path) -> tuple[int, CrawlStats]:
    """How many pages a crawl of one question asks for."""
    platform = Paged(page)
    with CrawlLedger(root / "collected.sqlite") as ledger:
        crawl = Crawl(platform, SimulatedSource(), SEARCH, ledger, Heard(), HURRIED)
        end = crawl.run(FIRST_DAY.date(), FIRST_DAY + datetime.timedelta(days=3))
        return platform.asked, ledger.stats(NAME, end)


@pytest.mark.parametrize("length", [1, 2, 7])
def test_cursors_that_lead_in_a_circle_are_given_up(length: int, tmp_path: Path) -> None:
    """Each beginning of the question follows the circle once."""

    def page(cursor: str | None) -> Answer:
        return Answer('{"posts": []}', str((int(cursor or 0) + 1) % length), posts=1)

    asked, stats = pages_asked(page, tmp_path)

    assert stats.spent.requests == stats.spent.posts == asked
    assert asked <= MOST_BEGINNINGS * (length + 1)
    assert stats.end is CrawlEnd.NOTHING_LEFT
    assert stats.questions == {"refused": 1}
    assert "its cursors got lost" in next(iter(stats.errors))


def test_a_page_that_comes_again_under_ever_new_cursors_is_given_up(tmp_path: Path) -> None:
    """A server that does not know how to go on gives the first page for ever."""

    def page(cursor: str | None) -> Answer:
        return Answer('{"posts": []}', str(int(cursor or 0) + 40))

    asked, stats = pages_asked(page, tmp_path)

    assert asked == MOST_IDLE
    assert stats.questions == {"refused": 1}
    assert "brought nothing new" in next(iter(stats.errors))


def test_a_few_empty_pages_on_the_way_lose_nothing(tmp_path: Path) -> None:
    """Platforms take out posts after they cut the pages."""

    def page(cursor: str | None) -> Answer:
        number = int(cursor or 0)
        return Answer('{"posts": []}', str(number + 1) if number < MOST_IDLE - 2 else None)

    asked, stats = pages_asked(page, tmp_path)

    assert asked == MOST_IDLE - 1
    assert stats.questions == {"done": 1}
