"""A crawl: every moment of its plan in one window, everything reachable, nothing twice."""

from __future__ import annotations

import datetime
import io
import json
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from echo_hf.cli.build_view import format_crawl, show_crawls, show_plan
from echo_hf.collect.crawl import (
    MAX_IDLE_PAGES,
    STATS_FILE,
    Crawl,
    LongWaitError,
    Patience,
    PlannedQuery,
    Query,
    crawl_posts,
    find_uncovered,
    list_queries,
    plan_queries,
    planned_query_to_json,
)
from echo_hf.collect.crawl_ledger import (
    CRAWL_LEDGER_FILE,
    CrawlEnd,
    CrawlLedger,
    CrawlStats,
    read_stored_pages,
)
from echo_hf.collect.platforms.base import (
    Page,
    Platform,
    Question,
    RateLimitedError,
    Tariff,
    TimeWindow,
)
from echo_hf.collect.sources.base import Post
from echo_hf.collect.takedown import TOMBSTONES_FILE, add_tombstones, hash_url
from echo_hf.config.collection import CrawlBudget, ExpandLimits, Phase, Search
from echo_hf.config.loading import Config
from echo_hf.engines.prices import read_platform_price
from echo_hf.errors import ConfigError, PlatformError
from echo_hf.pipeline.run_folder import RunFolder
from tests.collect.platforms.crawling import (
    HURRIED,
    Serve,
    collected,
    config_of,
    config_with,
    crawled,
)
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

RELEASED = datetime.date(2025, 3, 25)
HOUR = datetime.timedelta(hours=1)


def at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)


def windows(*phases: Phase, now: str = "2026-01-01") -> list[tuple[str, str, bool]]:
    found = list_queries(Search(phases=phases), RELEASED, at(now))
    return [(*_times(query), query.cut) for query in found]


def _times(query: Query) -> tuple[str, str]:
    window = query.question.window
    assert window is not None
    return tuple(f"{one:%m-%d %H}" for one in (window.start, window.end))  # type: ignore[return-value]


def test_the_figure_of_the_paper() -> None:
    broad = Phase(terms=tuple("abcde"), window="1d", days=14)
    narrow = Phase(terms=tuple("abcdefghij"), window="7d", until=datetime.date(2025, 6, 30))
    queries = list(list_queries(Search(phases=(broad, narrow)), RELEASED, at("2026-01-01")))
    lengths = [one.question.window.end - one.question.window.start for one in queries]  # type: ignore[union-attr]
    assert [one.phase for one in queries] == [0] * 14 * 5 + [1] * 12 * 10
    assert [length.days for length in lengths] == [1] * 70 + [7] * 110 + [6] * 10
    assert not any(one.cut for one in queries)


def test_windows_are_asked_in_order_each_with_all_terms_and_languages() -> None:
    phase = Phase(terms=("a", "b"), languages=("en", "ja"), window="1d", days=2)
    queries = list(list_queries(Search(phases=(phase,)), RELEASED, at("2026-01-01")))
    told = [(_times(one)[0], one.question.about, one.question.language) for one in queries]
    assert told == list(product(("03-25 00", "03-26 00"), (("a",), ("b",)), ("en", "ja")))


def test_a_window_that_is_not_over_ends_at_the_last_full_hour() -> None:
    week = Phase(terms=("a",), window="7d")
    assert windows(week, now="2025-04-02T10:59:59") == [
        ("03-25 00", "04-01 00", False),
        ("04-01 00", "04-02 10", True),
    ]
    assert windows(week, now="2025-03-25T00:30:00") == []
    assert windows(week, now="2025-03-01") == []


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 12)), min_size=1, max_size=4),
    st.integers(0, 24 * 120),
)
def test_every_hour_of_the_past_is_in_one_window(phases: list[tuple[int, int]], hours: int) -> None:
    now = at("2025-03-25") + hours * HOUR
    options = tuple(Phase(terms=("a",), window=f"{length}d", days=days) for days, length in phases)
    covered: list[datetime.datetime] = []
    for query in list_queries(Search(phases=options), RELEASED, now):
        window = query.question.window
        assert window is not None
        moment = window.start
        while moment < window.end:
            covered.append(moment)
            moment += HOUR
    total = min(hours, 24 * sum(days for days, _ in phases))
    assert covered == [at("2025-03-25") + one * HOUR for one in range(total)]


LATER = FIRST_DAY + datetime.timedelta(days=60)


class Dear(Simulated):
    tariff = Tariff(0.005, 0.01, 50)


def plan(
    config: Config, root: Path, platform: type[Platform] = Simulated, *, estimate: bool = False
) -> tuple[list[PlannedQuery], list[str]]:
    said: list[str] = []
    given: Any = {"estimate": estimate, "notify": said.append, "make": lambda _: platform()}
    return list(plan_queries(config, root, LATER, **given)), said


def shown(queries: list[PlannedQuery], config: Config, *, every: bool = False) -> str:
    console = Console(file=io.StringIO(), width=160)
    searches = {one.source: one.search for one in config.posts if one.search}
    show_plan(console, queries, searches, in_full=every)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def squeezed(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_plan_counts_posts_where_that_is_free(serve: Serve, tmp_path: Path) -> None:
    world = World.of(500, seed=9)
    service = serve(world)
    config = config_of(phases=[{"days": 20, "window": "20d", "terms": ["lumen"]}])
    (query,), said = plan(config, tmp_path)
    first_page = min(50, sum("lumen" in one["terms"] for one in world.posts.values()))
    assert (query.posts, query.requests) == (first_page, 1)
    assert said == [f"{NAME} charges $0.001 a post"]
    assert query.usd == pytest.approx(first_page * PRICE)
    assert service.requests == 1
    assert not tmp_path.joinpath("collected.sqlite").exists()


@pytest.mark.parametrize(("estimate", "asked"), [(False, 0), (True, 26)])
def test_numbers_that_cost_are_only_asked_for_on_demand(
    estimate: bool, asked: int, serve: Serve, tmp_path: Path
) -> None:
    service = serve(World.of(100, seed=9))
    queries, said = plan(config_of(), tmp_path, Dear, estimate=estimate)
    assert (len(queries), service.requests) == (26, asked)
    assert all((one.posts is None) is not estimate for one in queries)
    assert any("for $0.01 a query: --estimate" in line for line in said) is not estimate
    assert ("≥ 26" in shown(queries, config_of())) is not estimate


def test_a_platform_that_does_not_answer_has_a_plan_all_the_same(
    serve: Serve, tmp_path: Path
) -> None:
    service = serve(World.of(100, seed=9))
    service.faults["/"] = 500
    queries, said = plan(config_of(), tmp_path)
    assert {one.posts for one in queries} == {None}
    assert service.requests == 1
    assert said[1:] == [f"{NAME} gives no more numbers of posts: status 500"]


def test_what_is_done_takes_nothing_any_more(serve: Serve, tmp_path: Path) -> None:
    serve(World.of(500, seed=9))
    crawled(tmp_path, config_of(budget={"posts": 150}))
    queries, _ = plan(config_of(), tmp_path)
    done = [one for one in queries if one.done]
    assert 0 < len(done) < len(queries)
    assert {(one.posts, one.requests, one.usd) for one in done} == {(0, 0, 0.0)}
    assert f"26 queries, {len(done)} of them done" in shown(queries, config_of())


def test_a_terminal_shows_a_line_a_term_or_a_line_a_query(serve: Serve, tmp_path: Path) -> None:
    serve(World.of(100, seed=9))
    config = config_of(budget={"posts": 1000, "usd": 2.5}, expand={"rounds": 3})
    queries, _ = plan(config, tmp_path, Dear)
    lines, every = shown(queries, config), shown(queries, config, every=True)
    assert planned_query_to_json(queries[0]) == {
        "platform": NAME,
        "phase": 1,
        "term": "lumen",
        "language": None,
        "cut": False,
        "start": "2026-03-02T00:00:00+00:00",
        "end": "2026-03-03T00:00:00+00:00",
        "done": False,
        "posts": None,
        "requests": 1,
        "usd": None,
        "most_usd": None,
    }
    assert "1,000 posts cost $5.00 asking" in " ".join(lines.split())
    assert "1 lumen 2026-03-02 2026-03-10 1d all 8 0 - ≥ 8 -" in squeezed(lines)
    assert "asking ends at 1,000 posts or $2.50, replies included" in lines
    assert "then replies and ancestors, in 3 rounds at most" in lines
    assert sum(" lumen 2026" in line for line in squeezed(lines)) == 2
    assert sum(" lumen 2026" in line for line in squeezed(every)) == 10


class LikeX(Simulated):
    tariff = Tariff(0.005, 0.0, 50, 0.01, 600, "https://x.example/prices (2026-11-29)")


def test_dollars_come_without_authors_and_with_one_for_each_post(
    serve: Serve, tmp_path: Path
) -> None:
    serve(World.of(500, seed=9))
    config = config_of(
        phases=[{"days": 20, "window": "20d", "terms": ["lumen"]}], budget={"posts": 2000}
    )
    (query,), said = plan(config, tmp_path, LikeX)
    assert said == [
        f"{NAME} charges $0.005 a post, up to $0.01 for its author, says "
        "https://x.example/prices (2026-11-29)"
    ]
    assert (query.usd, query.most_usd) == pytest.approx((0.005 * 50, 0.015 * 50))
    lines = " ".join(shown([query], config).split())
    assert "requests 1, cost $0.25 to $0.75 " in lines
    assert "2,000 posts cost $10.00 to $30.00; 600 posts a month are the most " in lines


def test_what_x_charges_is_in_the_dated_list() -> None:
    from echo_hf.collect.platforms.x import XPlatform

    price, tariff = read_platform_price("x"), XPlatform.tariff
    assert tariff.compute_cost(1000) == pytest.approx((5.0, 15.0))
    assert (tariff.usd_per_estimate, tariff.most_posts_a_month) == (0.01, 3_000_000)
    assert all(source.startswith("https://docs.x.com/") for source in price.sources)
    assert tariff.source == f"{price.sources[0]} ({price.as_of})"


ONE_DAY = {"days": 1, "window": "1d", "terms": ["lumen"]}
EMPTY = '{"posts": []}'


def world_of(parents: dict[str, str | None], found: Sequence[str]) -> World:
    time = FIRST_DAY.isoformat()
    terms = {name: ["lumen"] if name in found else [] for name in parents}
    return World(
        {
            name: {"id": name, "parent": parent, "time": time, "terms": terms[name]}
            for name, parent in parents.items()
        }
    )


def crawled_with(platform: type[Simulated], root: Path) -> CrawlStats:
    (stats,) = crawl_posts(config_of(), RunFolder(root), Heard(), make=lambda _: platform())
    return stats


def test_everything_reachable_is_collected_once_and_a_second_run_asks_nothing(
    serve: Serve, tmp_path: Path
) -> None:
    world = World.of(500, seed=0)
    service = serve(world, limit_each=17)
    watch = Heard()
    stats = crawled(tmp_path, config_of(), watch)
    requests = service.requests
    assert set(collected(tmp_path)) == world.reachable()
    assert set(service.answered.values()) == {1}
    assert stats.end is CrawlEnd.NOTHING_LEFT
    assert (stats.waits, len(watch.waited)) == (service.limited, service.limited)
    assert stats.spent.requests == requests - service.limited
    rounds = [progress.round for _, _, progress, _ in watch.steps]
    assert rounds == sorted(rounds)
    assert watch.steps[-1][2].spent == stats.spent
    again = crawled(tmp_path, config_of())
    assert service.requests == requests
    assert (again.spent, again.questions) == (stats.spent, stats.questions)


def test_a_deleted_ancestor_keeps_its_place_and_the_figures_tell(
    serve: Serve, tmp_path: Path
) -> None:
    parents = {"p0": None, "p1": "p0", "p2": None, "p3": "p2", "p4": "p3"}
    world = world_of(parents, found=["p1", "p3"])
    world.deleted.add("p0")
    serve(world)
    stats = crawled(tmp_path, config_of(phases=[ONE_DAY]))
    written = json.loads((tmp_path / STATS_FILE).read_text("utf-8"))[NAME]
    console, lines = Console(file=io.StringIO(), width=200), list(format_crawl(stats))
    show_crawls(console, [stats])
    assert {
        name: one["missing"] for name, one in collected(tmp_path).items() if one["missing"]
    } == {"p0": "deleted"}
    assert (stats.by_terms, stats.by_replies, stats.missing) == (2, 2, {"deleted": 1})
    assert stats.missed_by_terms == written["missed_by_terms"] == 0.5
    assert (written["end"], written["missing"]) == ("nothing_left", {"deleted": 1})
    assert lines[:2] == [
        "2 posts by search terms, 2 more by replies (50 % that terms alone would have missed)",
        "posts that are named and not there: 1 deleted",
    ]
    assert lines[-1].startswith("nothing_left: every query is answered")
    assert all(line in console.file.getvalue() for line in lines)  # type: ignore[attr-defined]


def own_of(posts: Sequence[Post]) -> list[str]:
    return [post.url.rpartition("/")[2] for post in posts]


@pytest.mark.parametrize("found", [["p0", "p1"], ["p1"], ["p2"]], ids=str)
def test_a_reply_of_a_reply_is_found_by_the_first_post_of_its_conversation(
    found: list[str], serve: Serve, tmp_path: Path
) -> None:
    class Conversing(Simulated):
        def ask(self, question: Question, cursor: str | None = None) -> Page:
            if question.kind == "replies":
                question = Question("thread", question.about)
            return super().ask(question, cursor)

        def around(self, posts: Sequence[Post]) -> Sequence[Question]:
            above = own_of([Post(post.parent_url) for post in posts if post.parent_url])
            tops = own_of([post for post in posts if not post.parent_url])
            asked = [Question("posts", tuple(above))] if above else []
            return [*asked, *(Question("replies", (name,)) for name in tops)]

    world = world_of({"p0": None, "p1": "p0", "p2": "p1", "p3": "p2"}, found)
    service = serve(world)
    crawled_with(Conversing, tmp_path)
    assert set(collected(tmp_path)) == set(world.posts)
    assert [path for path in service.answered if "thread" in path] == ["/thread?ids=p0"]


def test_a_thread_is_asked_for_once_whichever_of_its_posts_are_found(
    serve: Serve, tmp_path: Path
) -> None:
    class Threaded(Simulated):
        def around(self, posts: Sequence[Post]) -> Sequence[Question]:
            return [Question("thread", (name,)) for name in own_of(posts)]

    replies = {f"p{number}": "p0" for number in range(1, 41)}
    world = world_of({"p0": None, **replies, "p50": "p3"}, found=list(replies)[5:])
    service = serve(world)
    stats = crawled_with(Threaded, tmp_path)
    threads = [path for path in service.answered if "thread" in path]
    assert set(collected(tmp_path)) == set(world.posts)
    assert threads == ["/thread?ids=p6", "/thread?ids=p0"]
    assert stats.questions["needless"] == 34


def test_hostile_trees_end(serve: Serve, tmp_path: Path) -> None:
    chain = {f"p{one}": f"p{one - 1}" for one in range(11, 111)}
    parents = {"p0": "p0", "p1": "p2", "p2": "p1", "p10": None, **chain}
    world = world_of(parents, found=["p0", "p1", "p100"])
    serve(world)
    assert crawled(tmp_path, config_of()).end is CrawlEnd.NOTHING_LEFT
    assert set(collected(tmp_path)) == set(world.posts)


def test_a_forgotten_cursor_has_the_question_asked_again_whole(
    serve: Serve, tmp_path: Path
) -> None:
    names = [f"p{number}" for number in range(120)]
    service = serve(world_of(dict.fromkeys(names), found=names))

    def restart(number: int) -> None:
        service.generation += number == 3

    service.before = restart
    stats = crawled(tmp_path, config_of(phases=[ONE_DAY], expand={"rounds": 0}))
    found = collected(tmp_path)
    assert set(found) == set(names)
    assert {one["times"] for one in found.values()} == {1}
    assert (stats.spent.requests, stats.spent.posts) == (2 + 3, 100 + 120)


def test_what_fails_costs_no_other_question_and_is_tried_again_unless_refused(
    serve: Serve, tmp_path: Path
) -> None:
    service, watch = serve(world_of({"p0": None}, found=["p0"])), Heard()
    service.faults["/"] = 500
    stats = crawled(tmp_path, config_of(), watch)
    assert (stats.end, service.requests) == (CrawlEnd.OUT_OF_REACH, 3 * 3)
    assert (stats.questions["troubled"], len(watch.remarks)) == (3, 3)
    service.faults = {"q=lumen&since=2026-03-03": 500}
    stats = crawled(tmp_path, config_of())
    assert (stats.end, stats.questions["troubled"]) == (CrawlEnd.SOME_FAILED, 1)
    service.faults = {"q=lumen&since=2026-03-03": 422}
    stats = crawled(tmp_path, config_of())
    requests = service.requests
    assert (stats.end, stats.errors) == (
        CrawlEnd.NOTHING_LEFT,
        {"UnanswerableError: it does not like the question": stats.questions["refused"]},
    )
    crawled(tmp_path, config_of())
    assert (service.requests, list(collected(tmp_path))) == (requests, ["p0"])


def test_a_long_wait_ends_the_run(serve: Serve, tmp_path: Path) -> None:
    service, watch = serve(world_of({"p0": None}, found=["p0"])), Heard()
    service.faults["/"], service.said = 429, {"reset_after": 90_000}
    stats = crawled(tmp_path, config_of(), watch)
    assert (stats.end, service.requests) == (CrawlEnd.TOLD_TO_WAIT, 1)
    assert watch.remarks == [f"{NAME} asks to wait 90000 s: come back then"]


def test_a_forgotten_post_that_comes_again_is_not_written_down(
    serve: Serve, tmp_path: Path
) -> None:
    serve(world_of({"p0": None, "p1": "p0"}, found=["p0"]))
    add_tombstones(tmp_path / TOMBSTONES_FILE, [hash_url(f"{HOST}/p1")])
    crawled(tmp_path, config_of())
    bodies = "".join(one.body for one in read_stored_pages(tmp_path / CRAWL_LEDGER_FILE, NAME))
    assert "post p0" in bodies
    assert "post p1" not in bodies


@pytest.mark.parametrize(
    ("limit", "end"),
    [
        ({"budget": {"posts": 150}}, CrawlEnd.POSTS_SPENT),
        ({"budget": {"usd": 150 * PRICE}}, CrawlEnd.DOLLARS_SPENT),
        ({"expand": {"posts": 40}}, CrawlEnd.EXPANSION_FULL),
        ({"expand": {"rounds": 1}}, CrawlEnd.ROUNDS_DONE),
    ],
    ids=str,
)
def test_a_limit_stops_it_and_a_larger_one_goes_on(
    limit: dict[str, Any], end: CrawlEnd, serve: Serve, tmp_path: Path
) -> None:
    world = World.of(400, seed=4)
    service = serve(world)
    stopped = crawled(tmp_path, config_of(**limit))
    requests = service.requests
    crawled(tmp_path, config_of(**limit))
    assert (stopped.end, service.requests) == (end, requests)
    assert set(collected(tmp_path)) < world.reachable()
    assert crawled(tmp_path, config_of()).end is CrawlEnd.NOTHING_LEFT
    assert set(collected(tmp_path)) == world.reachable()
    assert set(service.answered.values()) == {1}


class Scripted(Simulated):
    """Answers as a function says, or by always the same answer or error, and remembers."""

    def __init__(self, page: Any, name: str = NAME, door: Exception | None = None) -> None:
        super().__init__()
        self.page, self.name, self.door = page, name, door
        self.asked: list[Question] = []

    def __enter__(self) -> Scripted:
        if self.door is not None:
            raise self.door
        return self

    def ask(self, question: Question, cursor: str | None = None) -> Page:
        self.asked.append(question)
        assert len(self.asked) < 1000
        if isinstance(self.page, Exception):
            raise self.page
        answer: Page = self.page(cursor) if callable(self.page) else self.page
        return answer

    def around(self, posts: Sequence[Post]) -> Sequence[Question]:
        return [Question("replies", (post.url,)) for post in posts]


def run_crawl(
    platform: Simulated, root: Path, phase: Phase, days: int = 9, **search: Any
) -> CrawlStats:
    whole = Search(phases=(phase,), **search)
    with CrawlLedger(root / CRAWL_LEDGER_FILE) as ledger:
        crawl = Crawl(platform, SimulatedSource(), whole, ledger, Heard(), HURRIED)
        end = crawl.run(FIRST_DAY.date(), FIRST_DAY + datetime.timedelta(days=days))
        return ledger.summarize(NAME, end)


LUMEN = Phase(terms=("lumen",), window="1d", days=1)


def test_dollars_cannot_be_counted_without_a_price(tmp_path: Path) -> None:
    platform = Scripted(Page(EMPTY))
    platform.tariff = Tariff()
    with pytest.raises(ConfigError, match=r"budget.usd is 3.0.*expected budget.posts"):
        run_crawl(platform, tmp_path, LUMEN, budget=CrawlBudget(usd=3.0))


def test_a_million_claimed_replies_are_asked_for_once(tmp_path: Path) -> None:
    post = {"id": "p0", "parent": None, "time": FIRST_DAY.isoformat(), "text": "x"}
    body = json.dumps({"posts": [{**post, "replies": 10**30}], "cursor": None})
    platform = Scripted(Page(body, None, 1))
    assert run_crawl(platform, tmp_path, LUMEN).end is CrawlEnd.NOTHING_LEFT
    assert [one.about for one in platform.asked] == [("lumen",), (f"{HOST}/p0",)]


@pytest.mark.parametrize(
    ("runs", "hours"),
    [
        ([("7d", 30), ("7d", 31), ("7d", 80), ("7d", 80), ("7d", 200)], [0, 30, 31, 80, 168, 200]),
        ([("1d", 168), ("7d", 168)], range(0, 169, 24)),
    ],
    ids=["cut windows", "days, then weeks"],
)
def test_only_what_was_not_covered_is_asked(
    runs: list[tuple[str, int]], hours: Sequence[int], tmp_path: Path
) -> None:
    asked: list[TimeWindow | None] = []
    with CrawlLedger(tmp_path / CRAWL_LEDGER_FILE) as ledger:
        for window, end in runs:
            search = Search(phases=(Phase(terms=("a",), window=window),))
            now = FIRST_DAY + datetime.timedelta(hours=end)
            plan = (one.question for one in list_queries(search, FIRST_DAY.date(), now))
            new = list(find_uncovered(ledger, NAME, plan))
            ledger.add_searches(NAME, new)
            asked += [one.window for one in new]
    at = [FIRST_DAY + datetime.timedelta(hours=hour) for hour in hours]
    assert asked == [TimeWindow(*pair) for pair in pairwise(at)]


TWO = [
    {"source": "bluesky", "search": {"phases": [ONE_DAY]}},
    {"source": "x", "search": {"phases": [ONE_DAY], "budget": {"posts": 9}}},
]


@pytest.mark.parametrize(
    ("page", "door", "end", "words"),
    [
        (PlatformError("no such key"), None, "key_refused", "bluesky is asked no more: no such"),
        (None, ConnectionError("no route"), "out_of_reach", "bluesky cannot be asked: no route"),
        (None, RateLimitedError(90_000), "told_to_wait", "bluesky asks to wait 90000 s"),
    ],
    ids=["a key", "no route", "a limit"],
)
def test_a_platform_that_cannot_be_asked_costs_no_other(
    page: Any, door: Exception | None, end: str, words: str, tmp_path: Path
) -> None:
    bluesky, x = Scripted(page, "bluesky", door), Scripted(Page(EMPTY), "x")
    made, watch = {"bluesky": bluesky, "x": x}, Heard()
    run = RunFolder(tmp_path)
    refused = pytest.raises(PlatformError, match="key") if end == "key_refused" else nullcontext()
    with refused:
        crawl_posts(config_with(*TWO), run, watch, patience=HURRIED, make=made.__getitem__)
    written = json.loads((tmp_path / STATS_FILE).read_text())
    assert {name: one["end"] for name, one in written.items()} == {
        "bluesky": end,
        "x": "nothing_left",
    }
    assert words in watch.remarks[0]
    assert len(x.asked) == 1


def test_a_key_that_is_missing_is_told_before_anybody_is_asked(tmp_path: Path) -> None:
    bluesky = Scripted(Page(EMPTY), "bluesky")
    made = {"bluesky": bluesky, "x": Scripted(None, "x", PlatformError("no key"))}
    with pytest.raises(PlatformError, match="no key"):
        crawl_posts(config_with(*TWO), RunFolder(tmp_path), Heard(), make=made.__getitem__)
    assert bluesky.asked == []


def terms_asked(root: Path, phase: Phase, posts: int | None = None) -> tuple[set[str], CrawlEnd]:
    platform = Scripted(Page(EMPTY, posts=1))
    stats = run_crawl(platform, root, phase, budget=CrawlBudget(posts=posts))
    return {question.about[0] for question in platform.asked}, stats.end


def test_terms_and_languages_that_are_taken_out_are_not_asked_until_they_come_back(
    tmp_path: Path,
) -> None:
    both = Phase(terms=("lumen", "fox"), window="1d", days=3)
    one = Phase(terms=("fox",), window="1d", days=3)
    assert terms_asked(tmp_path, both, posts=1) == ({"lumen"}, CrawlEnd.POSTS_SPENT)
    assert terms_asked(tmp_path, one) == ({"fox"}, CrawlEnd.NOTHING_LEFT)
    assert terms_asked(tmp_path, both) == ({"lumen"}, CrawlEnd.NOTHING_LEFT)
    five, japanese = (Phase(terms=("a",), languages=some, window="1d") for some in ((), ("ja",)))
    terms_asked(tmp_path / "other", five, posts=1)
    terms_asked(tmp_path / "other", japanese)
    with CrawlLedger(tmp_path / "other" / CRAWL_LEDGER_FILE) as ledger:
        assert ledger.count_states(NAME)["unplanned"] == 9 - 1


def paged(root: Path, page: Callable[[str | None], Page]) -> tuple[int, CrawlStats]:
    platform = Scripted(page)
    stats = run_crawl(platform, root, LUMEN, expand=ExpandLimits(rounds=0))
    return len(platform.asked), stats


@pytest.mark.parametrize(
    "following",
    [lambda _: 0, lambda number: (number + 1) % 7, lambda number: number + 40],
    ids=["the same cursor", "a circle", "ever new cursors"],
)
def test_pages_without_end_are_given_up(following: Callable[[int], int], tmp_path: Path) -> None:
    asked, stats = paged(
        tmp_path, lambda cursor: Page(EMPTY, str(following(int(cursor or 0))), posts=1)
    )
    assert stats.spent.requests == stats.spent.posts == asked == MAX_IDLE_PAGES
    assert (stats.end, stats.questions) == (CrawlEnd.NOTHING_LEFT, {"refused": 1})
    assert "brought nothing new" in next(iter(stats.errors))


def test_a_few_empty_pages_on_the_way_lose_nothing(tmp_path: Path) -> None:
    def page(cursor: str | None) -> Page:
        number = int(cursor or 0)
        return Page(EMPTY, str(number + 1) if number < MAX_IDLE_PAGES - 2 else None)

    assert paged(tmp_path, page)[1].questions == {"done": 1}


def waited(*script: Any, **options: Any) -> tuple[list[float], list[float]]:
    slept: list[float] = []
    told: list[float] = []
    steps = iter(script)

    def step() -> Any:
        if isinstance(one := next(steps), Exception):
            raise one
        return one

    patience = Patience(backoff_s=1.0, sleep=slept.append, **options)
    assert patience.call_until_done(step, told.append) == "answer"
    return slept, told


def test_it_waits_as_long_as_it_is_told_and_tries_again_what_may_pass() -> None:
    limits = [RateLimitedError(seconds) for seconds in (7.5, 0, -3)]
    slept, told = waited(*limits, "answer")
    assert slept == told == [7.5, 1.0, 2.0]
    slept, told = waited(*[OSError("reset")] * 3, "answer")
    assert (len(slept), told) == (3, [])
    assert all(0 <= wait <= longest for wait, longest in zip(slept, (1, 2, 4), strict=True))


@pytest.mark.parametrize("seconds", [7201.0, math.inf, math.nan, 2.0])
def test_it_does_not_wait_for_ever(seconds: float) -> None:
    with pytest.raises(LongWaitError):
        waited(*[RateLimitedError(seconds)] * 5000)


def test_signing_in_is_as_patient_as_asking() -> None:
    script, left = [RateLimitedError(7.0), OSError("reset")], list[str]()

    class Guarded(Simulated):
        def __enter__(self) -> Guarded:
            if script:
                raise script.pop(0)
            return self

        def __exit__(self, *_: object) -> None:
            left.append("left")

    told: list[float] = []
    patience = Patience(backoff_s=0.001, sleep=lambda _: None)
    with patience.connect(Guarded(), told.append):
        assert (told, left) == ([7.0], [])
    assert left == ["left"]
