"""The query plan: every moment of every phase in one window, whatever the hour."""

from __future__ import annotations

import datetime
import io
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from echo_hf.cli.posts_view import show_plan
from echo_hf.collect.crawl import PlannedQuery, Query, as_json, planned, planned_queries
from echo_hf.collect.platforms.base import Platform, Tariff
from echo_hf.config.collection import Phase, Search
from echo_hf.config.loading import Config
from tests.collect.platforms.crawling import Serve, config_of, crawled
from tests.collect.platforms.simulated import FIRST_DAY, NAME, PRICE, Simulated, World

RELEASED = datetime.date(2025, 3, 25)
HOUR = datetime.timedelta(hours=1)


def at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)


def windows(*phases: Phase, now: str = "2026-01-01") -> list[tuple[str, str, bool]]:
    found = planned(Search(phases=phases), RELEASED, at(now))
    return [(*_times(query), query.cut) for query in found]


def _times(query: Query) -> tuple[str, str]:
    window = query.question.window
    assert window is not None
    return tuple(f"{one:%m-%d %H}" for one in (window.start, window.end))  # type: ignore[return-value]


def test_the_figure_of_the_paper() -> None:
    broad = Phase(terms=tuple("abcde"), window="1d", days=14)
    narrow = Phase(terms=tuple("abcdefghij"), window="7d", until=datetime.date(2025, 6, 30))
    queries = list(planned(Search(phases=(broad, narrow)), RELEASED, at("2026-01-01")))
    lengths = [one.question.window.end - one.question.window.start for one in queries]  # type: ignore[union-attr]

    assert [one.phase for one in queries] == [0] * 14 * 5 + [1] * 12 * 10
    assert [length.days for length in lengths] == [1] * 70 + [7] * 110 + [6] * 10
    assert not any(one.cut for one in queries)


def test_windows_are_asked_in_order_each_with_all_terms_and_languages() -> None:
    phase = Phase(terms=("a", "b"), languages=("en", "ja"), window="1d", days=2)
    queries = list(planned(Search(phases=(phase,)), RELEASED, at("2026-01-01")))
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
    for query in planned(Search(phases=options), RELEASED, now):
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
    given: Any = {"estimate": estimate, "noticed": said.append, "make": lambda _: platform()}
    return list(planned_queries(config, root, LATER, **given)), said


def shown(queries: list[PlannedQuery], config: Config, *, every: bool = False) -> str:
    console = Console(file=io.StringIO(), width=160)
    searches = {one.source: one.search for one in config.posts if one.search}
    show_plan(console, queries, searches, every=every)
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

    assert as_json(queries[0]) == {
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
    }
    assert "1 lumen 2026-03-02 2026-03-10 1d all 8 0 - ≥ 8 -" in squeezed(lines)
    assert "asking ends at 1,000 posts or $2.50, replies included" in lines
    assert "then replies and ancestors, in 3 rounds at most" in lines
    assert sum(" lumen 2026" in line for line in squeezed(lines)) == 2
    assert sum(" lumen 2026" in line for line in squeezed(every)) == 10
