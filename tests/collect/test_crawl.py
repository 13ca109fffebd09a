"""A crawl of a platform on loopback: everything reachable, nothing twice, and a clean end."""

from __future__ import annotations

import dataclasses
import datetime
import json
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from echo_hf.collect.crawl import Crawl, crawl_posts
from echo_hf.collect.crawl_ledger import LEDGER, CrawlLedger, stored_answers
from echo_hf.collect.platforms.base import Answer, Question, Tariff, TimeWindow
from echo_hf.collect.query_plan import planned, uncovered
from echo_hf.collect.sources.base import Post
from echo_hf.collect.takedown import TOMBSTONES, add_tombstones
from echo_hf.config.collection import Budget, Phase, Search
from echo_hf.errors import ConfigError
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import CrawlEnd
from tests.collect.platforms.crawling import HURRIED, collected, config_of, crawled
from tests.collect.platforms.serving import Serve
from tests.collect.platforms.simulated import (
    FIRST_DAY,
    HOST,
    NAME,
    PRICE,
    TERMS,
    Simulated,
    SimulatedSource,
    World,
)
from tests.progress_for_tests import Heard


def world_of(parents: dict[str, str | None], found: Sequence[str]) -> World:
    """A world of these posts on the first day; a term is in the text of some."""
    return World(
        {
            name: {
                "id": name,
                "parent": parent,
                "time": FIRST_DAY.isoformat(),
                "terms": ["lumen"] if name in found else [],
            }
            for name, parent in parents.items()
        }
    )


class TestWhatIsFound:
    """Which posts come, and what is said of them."""

    def test_everything_reachable_is_collected_and_no_page_twice(
        self, serve: Serve, tmp_path: Path
    ) -> None:
        """Over pages, limits, and windows that overlap; the world's own flood says what is."""
        world = World.of(2000, seed=0)
        service = serve(world, limit_each=17)
        watch = Heard()
        stats = crawled(tmp_path / "run", config_of(), watch)
        found = collected(tmp_path / "run")

        assert set(found) == world.reachable()
        assert set(service.answered.values()) == {1}
        assert stats.end is CrawlEnd.NOTHING_LEFT
        assert (stats.waits, len(watch.waited)) == (service.limited, service.limited)
        assert stats.spent.requests == service.requests - service.limited
        rounds = [progress.round for _, _, progress, _ in watch.steps]
        assert rounds == sorted(rounds)

    def test_terms_are_those_of_the_search_and_replies_have_none(
        self, serve: Serve, tmp_path: Path
    ) -> None:
        """A post carries every term that found it; what only replies led to carries none."""
        world = World.of(600, seed=1)
        serve(world)
        stats = crawled(tmp_path / "run", config_of())
        found = collected(tmp_path / "run")
        expected = {name: set(world.posts[name]["terms"]) for name in found}

        assert set().union(*expected.values()) == set(TERMS)
        assert {name: one["terms"] for name, one in found.items()} == expected
        assert stats.by_terms == sum(bool(terms) for terms in expected.values())
        assert stats.by_replies == len(found) - stats.by_terms
        assert stats.missed_by_terms == pytest.approx(stats.by_replies / len(found))

    def test_a_second_run_asks_nothing(self, serve: Serve, tmp_path: Path) -> None:
        """Every window is done, and every reply was asked for."""
        service = serve(World.of(400, seed=2))
        first = crawled(tmp_path / "run", config_of())
        requests = service.requests
        again = crawled(tmp_path / "run", config_of())

        assert service.requests == requests
        assert dataclasses.replace(again, seconds=0) == dataclasses.replace(first, seconds=0)

    def test_posts_deleted_between_pages_move_no_other(self, serve: Serve, tmp_path: Path) -> None:
        """Every post that is still there is collected, whatever vanished meanwhile."""
        world, draw = World.of(1200, seed=3), random.Random(3)
        service = serve(world)
        # None of them is the only way to others.
        leaves = [name for name, below in world.children.items() if not below]
        leaves = [name for name in leaves if not world.posts[name]["terms"]]
        service.before = lambda _: world.deleted.update(draw.sample(leaves, 4))
        crawled(tmp_path / "run", config_of())
        found = set(collected(tmp_path / "run"))

        assert world.deleted
        assert world.reachable() - world.deleted <= found <= world.reachable()

    def test_a_deleted_ancestor_keeps_its_place_and_its_reason(
        self, serve: Serve, tmp_path: Path
    ) -> None:
        """Its other replies are found through it."""
        parents = {"p0": None, "p1": "p0", "p2": "p1", "p3": "p1"}
        world = world_of(parents, found=["p2"])
        world.deleted.add("p1")
        serve(world)
        stats = crawled(tmp_path / "run", config_of())
        found = collected(tmp_path / "run")

        assert {name: one["missing"] for name, one in found.items()} == {
            "p1": "deleted",
            "p2": None,
            "p3": None,
        }
        assert stats.missing == {"deleted": 1}

    @pytest.mark.parametrize("found", [["p0", "p1"], ["p1"], ["p2"]], ids=str)
    def test_a_reply_of_a_reply_is_found_by_the_first_post_of_its_conversation(
        self, found: list[str], serve: Serve, tmp_path: Path
    ) -> None:
        """Where a platform asks by conversation: the first post itself lacks no reply.

        It may be found before the reply that lacks some, or after it.
        """

        class Conversing(Simulated):
            def ask(self, question: Question, cursor: str | None = None) -> Answer:
                if question.kind == "replies":
                    question = Question("thread", question.about)
                return super().ask(question, cursor)

            def around(self, posts: Sequence[Post]) -> Sequence[Question]:
                above = [post.parent_url for post in posts if post.parent_url]
                tops = [post.url for post in posts if not post.parent_url]
                names = [[url.rpartition("/")[2] for url in urls] for urls in (above, tops)]
                asked = [Question("posts", tuple(names[0]))] if above else []
                return [*asked, *(Question("replies", (name,)) for name in names[1])]

        world = world_of({"p0": None, "p1": "p0", "p2": "p1", "p3": "p2"}, found)
        service = serve(world)
        crawl_posts(config_of(), RunFolder(tmp_path / "run"), Heard(), make=lambda _: Conversing())

        assert set(collected(tmp_path / "run")) == set(world.posts)
        assert [path for path in service.answered if "thread" in path] == ["/thread?ids=p0"]

    def test_hostile_trees_end(self, serve: Serve, tmp_path: Path) -> None:
        """A post that replies to itself, a cycle, and a chain of 300 posts."""
        chain = {f"p{one}": f"p{one - 1}" for one in range(11, 311)}
        world = world_of(
            {"p0": "p0", "p1": "p2", "p2": "p1", "p10": None, **chain}, found=["p0", "p1", "p300"]
        )
        serve(world)
        stats = crawled(tmp_path / "run", config_of())

        assert set(collected(tmp_path / "run")) == set(world.posts)
        assert stats.end is CrawlEnd.NOTHING_LEFT

    def test_a_thread_is_asked_for_once_whichever_of_its_posts_are_found(
        self, serve: Serve, tmp_path: Path
    ) -> None:
        """Where one answer holds a whole tree: a found reply, then the root, and no other."""

        class Threaded(Simulated):
            def around(self, posts: Sequence[Post]) -> Sequence[Question]:
                return [Question("thread", (post.url.rpartition("/")[2],)) for post in posts]

        replies = {f"p{number}": "p0" for number in range(1, 41)}
        world = world_of({"p0": None, **replies, "p50": "p3"}, found=list(replies)[5:])
        service = serve(world)
        config = config_of()
        stats = crawl_posts(config, RunFolder(tmp_path / "run"), Heard(), make=lambda _: Threaded())

        assert set(collected(tmp_path / "run")) == set(world.posts)
        assert [path for path in service.answered if "thread" in path] == [
            "/thread?ids=p6",
            "/thread?ids=p0",
        ]
        assert stats[0].questions["needless"] == 34


class TestTroubles:
    """What a platform may do to a crawl."""

    def test_a_forgotten_cursor_has_the_question_asked_again_whole(
        self, serve: Serve, tmp_path: Path
    ) -> None:
        """The pages of the broken attempt are replaced: each post of the window comes once."""
        names = [f"p{number}" for number in range(120)]
        service = serve(world_of(dict.fromkeys(names), found=names))
        config = config_of(
            phases=[{"days": 1, "window": "1d", "terms": ["lumen"]}], expand={"rounds": 0}
        )

        def restart(number: int) -> None:
            service.generation += number == 3

        service.before = restart
        stats = crawled(tmp_path / "run", config)
        found = collected(tmp_path / "run")

        assert set(found) == set(names)
        assert {one["times"] for one in found.values()} == {1}
        assert stats.spent.requests == 2 + 3
        assert stats.spent.posts == 100 + 120

    def test_a_cursor_that_is_always_forgotten_is_given_up(
        self, serve: Serve, tmp_path: Path
    ) -> None:
        """What came stays, and the figures say what is the matter."""
        names = [f"p{number}" for number in range(120)]
        service = serve(world_of(dict.fromkeys(names), found=names))

        def restart(number: int) -> None:
            service.generation = number

        service.before = restart
        stats = crawled(tmp_path / "run", config_of())

        assert stats.questions["refused"] >= 1
        assert any("cursors got lost" in error for error in stats.errors)
        assert len(collected(tmp_path / "run")) == 50

    def test_a_question_that_is_never_answered_costs_no_other(
        self, serve: Serve, tmp_path: Path
    ) -> None:
        """It is put aside with what the platform says, and not asked again."""
        service = serve(world_of({"p0": None}, found=["p0"]))
        service.faults["lumen+img"] = 422
        stats = crawled(tmp_path / "run", config_of())
        requests = service.requests
        crawled(tmp_path / "run", config_of())

        assert "p0" in collected(tmp_path / "run")
        assert stats.end is CrawlEnd.NOTHING_LEFT
        assert stats.errors == {
            "UnanswerableError: it does not like the question": stats.questions["refused"]
        }
        assert service.requests == requests

    def test_what_fails_is_tried_again_now_and_by_the_next_run(
        self, serve: Serve, tmp_path: Path
    ) -> None:
        """Three times a page, three questions in a row; then it is the platform."""
        service = serve(world_of({"p0": None}, found=["p0"]))
        service.faults["/"] = 500
        watch = Heard()
        stats = crawled(tmp_path / "run", config_of(), watch)

        assert (stats.end, service.requests) == (CrawlEnd.OUT_OF_REACH, 3 * 3)
        assert stats.questions["troubled"] == 3
        assert len(watch.remarks) == 3
        service.faults.clear()
        assert crawled(tmp_path / "run", config_of()).end is CrawlEnd.NOTHING_LEFT
        assert "p0" in collected(tmp_path / "run")

    def test_a_single_failure_is_told_at_the_end(self, serve: Serve, tmp_path: Path) -> None:
        """All else is asked; the end does not say that nothing is left."""
        service = serve(world_of({"p0": None}, found=["p0"]))
        service.faults["q=lumen&since=2026-03-03"] = 500
        stats = crawled(tmp_path / "run", config_of())

        assert stats.end is CrawlEnd.SOME_FAILED
        assert stats.questions["troubled"] == 1

    def test_a_long_wait_ends_the_run(self, serve: Serve, tmp_path: Path) -> None:
        """Nobody sits before a terminal for a day; the next run goes on."""
        service = serve(world_of({"p0": None}, found=["p0"]))
        service.faults["/"], service.said = 429, {"reset_after": 90_000}
        watch = Heard()
        stats = crawled(tmp_path / "run", config_of(), watch)

        assert (stats.end, service.requests) == (CrawlEnd.TOLD_TO_WAIT, 1)
        assert watch.remarks == [f"{NAME} asks to wait 90000 s: come back then"]

    def test_a_page_that_leads_to_itself_is_no_trap(self, tmp_path: Path) -> None:
        """It is taken for a cursor that got lost."""

        class Circle(Simulated):
            def ask(self, question: Question, cursor: str | None = None) -> Answer:
                del question, cursor
                return Answer('{"posts": []}', "same")

        search = Search(
            phases=(Phase(terms=("lumen",), window="1d", days=1),), budget=Budget(posts=9)
        )
        with CrawlLedger(tmp_path / "collected.sqlite") as ledger:
            crawl = Crawl(Circle(), SimulatedSource(), search, ledger, Heard(), HURRIED)
            end = crawl.run(FIRST_DAY.date(), FIRST_DAY + datetime.timedelta(days=3))

        assert end is CrawlEnd.NOTHING_LEFT


class TestForgetting:
    """Posts that somebody asked to have removed."""

    def test_a_forgotten_post_that_comes_again_is_not_written_down(
        self, serve: Serve, tmp_path: Path
    ) -> None:
        """A later page brings it once more: its place in the tree is kept, its words are not."""
        world = world_of({"p0": None, "p1": "p0"}, found=["p0"])
        serve(world)
        config = config_of()
        (tmp_path / "run").mkdir()
        add_tombstones(tmp_path / "run" / TOMBSTONES, [f"{HOST}/p1"])
        crawled(tmp_path / "run", config)
        bodies = [one.body for one in stored_answers(tmp_path / "run" / LEDGER, NAME)]

        assert any("post p0" in body for body in bodies)
        assert not any("post p1" in body for body in bodies)


class TestLimits:
    """Where a crawl stops, and that it goes on."""

    @pytest.mark.parametrize(
        ("limit", "end"),
        [
            ({"budget": {"posts": 300}}, CrawlEnd.POSTS_SPENT),
            ({"budget": {"usd": 300 * PRICE}}, CrawlEnd.DOLLARS_SPENT),
            ({"expand": {"posts": 60}}, CrawlEnd.EXPANSION_FULL),
            ({"expand": {"rounds": 1}}, CrawlEnd.ROUNDS_DONE),
            ({"expand": {"rounds": 0}}, CrawlEnd.ROUNDS_DONE),
        ],
        ids=str,
    )
    def test_a_limit_stops_it_and_a_larger_one_goes_on(
        self, limit: dict[str, Any], end: CrawlEnd, serve: Serve, tmp_path: Path
    ) -> None:
        """Both runs together find what one without limits finds, and ask no page twice."""
        world = World.of(900, seed=4)
        service = serve(world)
        stopped = crawled(tmp_path / "run", config_of(**limit))
        requests = service.requests
        crawled(tmp_path / "run", config_of(**limit))

        assert stopped.end is end
        assert service.requests == requests
        assert set(collected(tmp_path / "run")) < world.reachable()
        assert crawled(tmp_path / "run", config_of()).end is CrawlEnd.NOTHING_LEFT
        assert set(collected(tmp_path / "run")) == world.reachable()
        assert set(service.answered.values()) == {1}

    def test_a_budget_is_passed_by_no_more_than_its_last_page(
        self, serve: Serve, tmp_path: Path
    ) -> None:
        """A page of 50 posts is the most that comes on top of it."""
        serve(World.of(900, seed=4))
        stats = crawled(tmp_path / "run", config_of(budget={"posts": 300}))

        assert 300 <= stats.spent.posts < 350
        assert stats.spent.cost_usd == pytest.approx(stats.spent.posts * PRICE)

    def test_dollars_cannot_be_counted_without_a_price(self, tmp_path: Path) -> None:
        """A budget that nobody could keep is refused before anything is asked."""

        class Unpriced(Simulated):
            tariff = Tariff()

        search = Search(
            phases=(Phase(terms=("lumen",), window="1d", days=1),), budget=Budget(usd=3.0)
        )
        with (
            CrawlLedger(tmp_path / "collected.sqlite") as ledger,
            pytest.raises(ConfigError, match=r"budget.usd is 3.0.*expected budget.posts"),
        ):
            Crawl(Unpriced(), SimulatedSource(), search, ledger, Heard(), HURRIED)


class TestGoingOn:
    """Windows that were not over when they were asked for."""

    def test_only_what_is_new_of_a_cut_window_is_asked(self, tmp_path: Path) -> None:
        """Three runs in a week ask for three parts, which make the week without gap or overlap."""
        search = Search(phases=(Phase(terms=("a",), window="7d"),))
        asked: list[TimeWindow | None] = []
        with CrawlLedger(tmp_path / "collected.sqlite") as ledger:
            for hours in (30, 31, 80, 80, 200):
                now = FIRST_DAY + datetime.timedelta(hours=hours)
                plan = (one.question for one in planned(search, FIRST_DAY.date(), now))
                new = list(uncovered(ledger, NAME, plan))
                ledger.add_searches(NAME, new)
                asked += [one.window for one in new]
        at = [FIRST_DAY + datetime.timedelta(hours=hours) for hours in (0, 30, 31, 80, 168, 200)]

        assert asked == [TimeWindow(*pair) for pair in pairwise(at)]

    def test_what_days_have_covered_a_week_does_not_ask_again(self, tmp_path: Path) -> None:
        """A plan with longer windows over the same time asks for nothing."""
        now = FIRST_DAY + datetime.timedelta(days=7)
        with CrawlLedger(tmp_path / "collected.sqlite") as ledger:
            for window, expected in (("1d", 7), ("7d", 0)):
                search = Search(phases=(Phase(terms=("a",), window=window),))
                plan = (one.question for one in planned(search, FIRST_DAY.date(), now))
                new = list(uncovered(ledger, NAME, plan))
                assert len(new) == expected
                ledger.add_searches(NAME, new)


def test_a_million_claimed_replies_are_asked_for_once(tmp_path: Path) -> None:
    """A count is no reason to ask for ever."""
    asked: list[Question] = []

    class Boastful(Simulated):
        def ask(self, question: Question, cursor: str | None = None) -> Answer:
            del cursor
            asked.append(question)
            post = {"id": "p0", "parent": None, "time": FIRST_DAY.isoformat(), "text": "x"}
            return Answer(_page({**post, "replies": 10**30}), None, 1)

        def around(self, posts: Sequence[Post]) -> Sequence[Question]:
            return [Question("replies", (post.url,)) for post in posts]

    search = Search(phases=(Phase(terms=("lumen",), window="1d", days=1),))
    with CrawlLedger(tmp_path / "collected.sqlite") as ledger:
        crawl = Crawl(Boastful(), SimulatedSource(), search, ledger, Heard(), HURRIED)
        assert crawl.run(FIRST_DAY.date(), FIRST_DAY + datetime.timedelta(days=3)) is (
            CrawlEnd.NOTHING_LEFT
        )

    assert [one.about for one in asked] == [("lumen",), (f"{HOST}/p0",)]


def _page(post: dict[str, Any]) -> str:
    return json.dumps({"posts": [post], "cursor": None})
