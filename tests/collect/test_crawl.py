"""A crawl of a platform on loopback: everything reachable, nothing twice, and a clean end."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from echo_hf.collect.crawl import (
    MOST_BEGINNINGS,
    MOST_IDLE,
    STATS,
    Crawl,
    LongWaitError,
    Patience,
    crawl_posts,
)
from echo_hf.collect.crawl_ledger import LEDGER, CrawlLedger, CrawlStats, stored_answers
from echo_hf.collect.platforms.base import Answer, Question, RateLimitedError, Tariff, TimeWindow
from echo_hf.collect.query_plan import planned, uncovered
from echo_hf.collect.sources.base import Post
from echo_hf.collect.takedown import TOMBSTONES, add_tombstones
from echo_hf.config.collection import Budget, Expand, Phase, Search
from echo_hf.config.loading import Config, parse_config
from echo_hf.errors import ConfigError, PlatformError
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import CrawlEnd
from tests.collect.platforms.crawling import HURRIED, Serve, collected, config_of, crawled
from tests.collect.platforms.simulated import (
    FIRST_DAY,
    HOST,
    NAME,
    PRICE,
    Simulated,
    SimulatedSource,
    World,
)
from tests.progress_for_tests import Heard


def world_of(parents: dict[str, str | None], found: Sequence[str]) -> World:
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
    def test_everything_reachable_is_collected_and_no_page_twice(
        self, serve: Serve, tmp_path: Path
    ) -> None:
        world = World.of(800, seed=0)
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

    def test_a_second_run_asks_nothing(self, serve: Serve, tmp_path: Path) -> None:
        service = serve(World.of(400, seed=2))
        first = crawled(tmp_path / "run", config_of())
        requests = service.requests
        again = crawled(tmp_path / "run", config_of())

        assert service.requests == requests
        assert dataclasses.replace(again, seconds=0) == dataclasses.replace(first, seconds=0)

    def test_posts_deleted_between_pages_move_no_other(self, serve: Serve, tmp_path: Path) -> None:
        world, draw = World.of(600, seed=3), random.Random(3)
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
        chain = {f"p{one}": f"p{one - 1}" for one in range(11, 111)}
        world = world_of(
            {"p0": "p0", "p1": "p2", "p2": "p1", "p10": None, **chain}, found=["p0", "p1", "p100"]
        )
        serve(world)
        stats = crawled(tmp_path / "run", config_of())

        assert set(collected(tmp_path / "run")) == set(world.posts)
        assert stats.end is CrawlEnd.NOTHING_LEFT

    def test_a_thread_is_asked_for_once_whichever_of_its_posts_are_found(
        self, serve: Serve, tmp_path: Path
    ) -> None:
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
    def test_a_forgotten_cursor_has_the_question_asked_again_whole(
        self, serve: Serve, tmp_path: Path
    ) -> None:
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

    def test_a_question_that_is_never_answered_costs_no_other(
        self, serve: Serve, tmp_path: Path
    ) -> None:
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
        service = serve(world_of({"p0": None}, found=["p0"]))
        service.faults["q=lumen&since=2026-03-03"] = 500
        stats = crawled(tmp_path / "run", config_of())

        assert stats.end is CrawlEnd.SOME_FAILED
        assert stats.questions["troubled"] == 1

    def test_a_long_wait_ends_the_run(self, serve: Serve, tmp_path: Path) -> None:
        service = serve(world_of({"p0": None}, found=["p0"]))
        service.faults["/"], service.said = 429, {"reset_after": 90_000}
        watch = Heard()
        stats = crawled(tmp_path / "run", config_of(), watch)

        assert (stats.end, service.requests) == (CrawlEnd.TOLD_TO_WAIT, 1)
        assert watch.remarks == [f"{NAME} asks to wait 90000 s: come back then"]


class TestForgetting:
    def test_a_forgotten_post_that_comes_again_is_not_written_down(
        self, serve: Serve, tmp_path: Path
    ) -> None:
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
        world = World.of(700, seed=4)
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

    def test_dollars_cannot_be_counted_without_a_price(self, tmp_path: Path) -> None:
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
    def test_only_what_is_new_of_a_cut_window_is_asked(self, tmp_path: Path) -> None:
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
        now = FIRST_DAY + datetime.timedelta(days=7)
        with CrawlLedger(tmp_path / "collected.sqlite") as ledger:
            for window, expected in (("1d", 7), ("7d", 0)):
                search = Search(phases=(Phase(terms=("a",), window=window),))
                plan = (one.question for one in planned(search, FIRST_DAY.date(), now))
                new = list(uncovered(ledger, NAME, plan))
                assert len(new) == expected
                ledger.add_searches(NAME, new)


def test_a_million_claimed_replies_are_asked_for_once(tmp_path: Path) -> None:
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


PHASE = {"days": 1, "window": "1d", "terms": ["lumen"]}
PAGE = Answer('{"posts": []}')


class Named(Simulated):
    def __init__(self, name: str, answer: Answer | Exception, door: Exception | None = None):
        super().__init__()
        self.name, self.answer, self.door = name, answer, door
        self.asked: list[Question] = []

    def __enter__(self) -> Named:
        if self.door is not None:
            raise self.door
        return self

    def ask(self, question: Question, cursor: str | None = None) -> Answer:
        del cursor
        self.asked.append(question)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def two_platforms() -> Config:
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


def crawled_both(root: Path, *platforms: Named) -> Any:
    made, watch = {one.name: one for one in platforms}, Heard()
    crawl_posts(two_platforms(), RunFolder(root), watch, patience=HURRIED, make=made.__getitem__)
    written = json.loads((root / STATS).read_text())
    return watch.remarks, {name: stats["end"] for name, stats in written.items()}


def test_a_platform_that_refuses_its_key_costs_no_other(tmp_path: Path) -> None:
    bluesky, x = Named("bluesky", PlatformError("no such key")), Named("x", PAGE)
    with pytest.raises(PlatformError, match="no such key"):
        crawled_both(tmp_path, bluesky, x)
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
    x = Named("x", PAGE)
    remarks, ends = crawled_both(tmp_path, Named("bluesky", PAGE, door), x)

    assert len(x.asked) == 1
    assert ends == {"bluesky": end, "x": "nothing_left"}
    assert words in remarks[0]


def test_a_key_that_is_missing_is_told_before_anybody_is_asked(tmp_path: Path) -> None:
    bluesky, x = Named("bluesky", PAGE), Named("x", PAGE, PlatformError("no key"))
    with pytest.raises(PlatformError, match="no key"):
        crawled_both(tmp_path, bluesky, x)

    assert bluesky.asked == x.asked == []


class TestTermsThatAreTakenOut:
    NOW = FIRST_DAY + datetime.timedelta(days=9)

    def crawl(self, root: Path, phase: Phase, posts: int | None = None) -> tuple[set[str], Any]:
        platform = Named(NAME, dataclasses.replace(PAGE, posts=1))
        search = Search(phases=(phase,), budget=Budget(posts=posts))
        with CrawlLedger(root / LEDGER) as ledger:
            crawl = Crawl(platform, SimulatedSource(), search, ledger, Heard(), HURRIED)
            end = crawl.run(FIRST_DAY.date(), self.NOW)
        return {question.about[0] for question in platform.asked}, end

    def test_they_are_not_asked_until_they_come_back(self, tmp_path: Path) -> None:
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
        more = Phase(terms=("lumen",), window="1d", days=5)
        self.crawl(tmp_path, more, posts=1)
        self.crawl(tmp_path, less)
        with CrawlLedger(tmp_path / LEDGER) as ledger:
            (left,) = ledger.execute("select count(*) from questions where state = 'unplanned'")[0]

        assert left == 4


SEARCH = Search(phases=(Phase(terms=("lumen",), window="1d", days=1),), expand=Expand(rounds=0))
Page = Callable[[str | None], Answer]


class Paged(Simulated):
    def __init__(self, page: Page) -> None:
        super().__init__()
        self.page = page
        self.asked = 0

    def ask(self, question: Question, cursor: str | None = None) -> Answer:
        del question
        self.asked += 1
        assert self.asked < 1000
        return self.page(cursor)


def pages_asked(page: Page, root: Path) -> tuple[int, CrawlStats]:
    platform = Paged(page)
    with CrawlLedger(root / "collected.sqlite") as ledger:
        crawl = Crawl(platform, SimulatedSource(), SEARCH, ledger, Heard(), HURRIED)
        end = crawl.run(FIRST_DAY.date(), FIRST_DAY + datetime.timedelta(days=3))
        return platform.asked, ledger.stats(NAME, end)


@pytest.mark.parametrize("length", [1, 2, 7])
def test_cursors_that_lead_in_a_circle_are_given_up(length: int, tmp_path: Path) -> None:
    def page(cursor: str | None) -> Answer:
        return Answer('{"posts": []}', str((int(cursor or 0) + 1) % length), posts=1)

    asked, stats = pages_asked(page, tmp_path)

    assert stats.spent.requests == stats.spent.posts == asked
    assert asked <= MOST_BEGINNINGS * (length + 1)
    assert stats.end is CrawlEnd.NOTHING_LEFT
    assert stats.questions == {"refused": 1}
    assert "its cursors got lost" in next(iter(stats.errors))


def test_a_page_that_comes_again_under_ever_new_cursors_is_given_up(tmp_path: Path) -> None:
    def page(cursor: str | None) -> Answer:
        return Answer('{"posts": []}', str(int(cursor or 0) + 40))

    asked, stats = pages_asked(page, tmp_path)

    assert asked == MOST_IDLE
    assert stats.questions == {"refused": 1}
    assert "brought nothing new" in next(iter(stats.errors))


def test_a_few_empty_pages_on_the_way_lose_nothing(tmp_path: Path) -> None:
    def page(cursor: str | None) -> Answer:
        number = int(cursor or 0)
        return Answer('{"posts": []}', str(number + 1) if number < MOST_IDLE - 2 else None)

    asked, stats = pages_asked(page, tmp_path)

    assert asked == MOST_IDLE - 1
    assert stats.questions == {"done": 1}


ASKED = Question("posts", ("p0",))


class Scripted(Simulated):
    def __init__(self, *script: Exception | Answer) -> None:
        super().__init__()
        self.script: Iterator[Exception | Answer] = iter(script)

    def ask(self, question: Question, cursor: str | None = None) -> Answer:
        del question, cursor
        step = next(self.script)
        if isinstance(step, Exception):
            raise step
        return step


def asked(*script: Exception | Answer, **options: float) -> tuple[list[float], list[float]]:
    slept: list[float] = []
    told: list[float] = []
    patience = Patience(backoff_s=1.0, sleep=slept.append, **options)  # type: ignore[arg-type]
    platform = Scripted(*script)
    assert patience.until_done(lambda: platform.ask(ASKED), told.append) == Answer("{}")
    return slept, told


def test_it_waits_as_long_as_it_is_told() -> None:
    slept, told = asked(
        RateLimitedError(7.5), RateLimitedError(0), RateLimitedError(-3), Answer("{}")
    )

    assert slept == told == [7.5, 1.0, 2.0]


def test_it_tries_again_what_may_pass_and_tells_nobody() -> None:
    slept, told = asked(OSError("reset"), OSError("reset"), OSError("reset"), Answer("{}"))

    assert told == []
    assert len(slept) == 3
    assert all(0 <= wait <= longest for wait, longest in zip(slept, (1, 2, 4), strict=True))


@pytest.mark.parametrize("seconds", [7201.0, math.inf, math.nan])
def test_it_does_not_wait_for_ever(seconds: float) -> None:
    with pytest.raises(LongWaitError) as caught:
        asked(RateLimitedError(seconds))

    assert str(caught.value.seconds) == str(seconds)


def test_a_limit_that_does_not_end_is_for_the_next_run() -> None:
    with pytest.raises(LongWaitError):
        asked(*[RateLimitedError(2.0)] * 1000, longest_wait_s=100.0)


class Guarded(Simulated):
    def __init__(self, *script: Exception) -> None:
        super().__init__()
        self.script = list(script)
        self.left = 0

    def __enter__(self) -> Guarded:
        if self.script:
            raise self.script.pop(0)
        return self

    def __exit__(self, *_: object) -> None:
        self.left += 1


def test_signing_in_is_as_patient_as_asking() -> None:
    told: list[float] = []
    platform = Guarded(RateLimitedError(7.0), OSError("reset"))
    with Patience(backoff_s=0.001, sleep=lambda _: None).connected(platform, told.append) as given:
        assert (given, platform.left) == (platform, 0)

    assert (told, platform.left) == ([7.0], 1)
