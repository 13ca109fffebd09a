"""What a plan says before anything is asked."""

from __future__ import annotations

import datetime
import io
from pathlib import Path

import pytest
from rich.console import Console

from echo_hf.cli.posts_view import show_plan
from echo_hf.collect.platforms.base import Platform, Tariff
from echo_hf.collect.query_plan import PlannedQuery, as_json, planned_queries
from echo_hf.config.loading import Config
from echo_hf.errors import MissingExtraError
from tests.collect.platforms.crawling import config_of, crawled
from tests.collect.platforms.serving import Serve
from tests.collect.platforms.simulated import FIRST_DAY, NAME, PRICE, Simulated, World

LATER = FIRST_DAY + datetime.timedelta(days=60)


class Dear(Simulated):
    """A platform that charges for numbers, too."""

    tariff = Tariff(0.005, 0.01, 50)


def plan(
    config: Config, root: Path, platform: type[Platform] = Simulated, *, estimate: bool = False
) -> tuple[list[PlannedQuery], list[str]]:
    """The plan, and what was remarked."""
    said: list[str] = []
    found = planned_queries(
        config,
        root,
        LATER,
        estimate=estimate,
        noticed=said.append,
        make=lambda _: platform(),
    )
    return list(found), said


def shown(
    queries: list[PlannedQuery], config: Config, *, every: bool = False, width: int = 160
) -> str:
    """What a terminal shows of it."""
    console = Console(file=io.StringIO(), width=width)
    searches = {one.source: one.search for one in config.posts if one.search}
    show_plan(console, queries, searches, every=every)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def squeezed(text: str) -> list[str]:
    """Its lines, with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_plan_counts_posts_where_that_is_free(serve: Serve, tmp_path: Path) -> None:
    """Requests and dollars follow; the pages themselves are not asked for by the crawl."""
    world = World.of(900, seed=9)
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
    """Without, posts and cost are unknown, and requests are at least one a query."""
    service = serve(World.of(100, seed=9))
    queries, said = plan(config_of(), tmp_path, Dear, estimate=estimate)

    assert (len(queries), service.requests) == (26, asked)
    assert all((one.posts is None) is not estimate for one in queries)
    assert any("for $0.01 a query: --estimate" in line for line in said) is not estimate
    assert ("≥ 26" in shown(queries, config_of())) is not estimate


def test_a_platform_that_is_not_installed_has_a_plan_all_the_same(
    serve: Serve, tmp_path: Path
) -> None:
    """Only its prices are unknown, and the reason is told."""
    serve(World.of(10, seed=9))

    class Absent(Simulated):
        def __init__(self) -> None:
            raise MissingExtraError("platform 'x'", "sources")

    queries, said = plan(config_of(), tmp_path, Absent)

    assert len(queries) == 26
    assert said == [
        f"what {NAME} charges is not known: platform 'x' needs packages that are not here: "
        'pip install "echo-hf[sources]"'
    ]


def test_a_platform_that_does_not_answer_has_a_plan_all_the_same(
    serve: Serve, tmp_path: Path
) -> None:
    """It is asked once, and the rest is unknown."""
    service = serve(World.of(100, seed=9))
    service.faults["/"] = 500
    queries, said = plan(config_of(), tmp_path)

    assert {one.posts for one in queries} == {None}
    assert service.requests == 1
    assert said[1:] == [f"{NAME} gives no more numbers of posts: status 500"]


def test_what_is_done_takes_nothing_any_more(serve: Serve, tmp_path: Path) -> None:
    """After half of a crawl, the plan is about the other half."""
    serve(World.of(900, seed=9))
    crawled(tmp_path, config_of(budget={"posts": 150}))
    queries, _ = plan(config_of(), tmp_path)
    done = [one for one in queries if one.done]

    assert 0 < len(done) < len(queries)
    assert {(one.posts, one.requests, one.usd) for one in done} == {(0, 0, 0.0)}
    assert f"26 queries, {len(done)} of them done" in shown(queries, config_of())


def test_a_terminal_shows_a_line_a_term_or_a_line_a_query(serve: Serve, tmp_path: Path) -> None:
    """With the phase, the time, and where asking ends."""
    serve(World.of(100, seed=9))
    config = config_of(budget={"posts": 1000, "usd": 2.5}, expand={"rounds": 3})
    queries, _ = plan(config, tmp_path, Dear)
    lines, every = shown(queries, config), shown(queries, config, every=True)

    assert "1 lumen 2026-03-02 2026-03-10 1d all 8 0 - ≥ 8 -" in squeezed(lines)
    assert "asking ends at 1,000 posts or $2.50, replies included" in lines
    assert "then replies and ancestors, in 3 rounds at most" in lines
    assert sum(" lumen 2026" in line for line in squeezed(lines)) == 2
    assert sum(" lumen 2026" in line for line in squeezed(every)) == 10


def test_a_plan_is_written_as_json(serve: Serve, tmp_path: Path) -> None:
    """One object a query, in the order in which they are asked."""
    serve(World.of(100, seed=9))
    queries, _ = plan(config_of(), tmp_path, Dear)
    rows = list(map(as_json, queries))

    assert len(rows) == 26
    assert rows[0] == {
        "platform": NAME,
        "phase": 1,
        "term": "lumen",
        "language": None,
        "start": "2026-03-02T00:00:00+00:00",
        "end": "2026-03-03T00:00:00+00:00",
        "cut": False,
        "done": False,
        "posts": None,
        "requests": 1,
        "usd": None,
    }


@pytest.mark.parametrize(("every", "rows"), [(False, 1), (True, 100)])
def test_a_narrow_terminal_cuts_nothing_off(
    every: bool, rows: int, serve: Serve, tmp_path: Path
) -> None:
    """Terms and languages are folded; days and numbers stand there whole."""
    serve(World.of(10, seed=9))
    languages = ["en", "ja", "zh", "ko", "es"]
    phase = {"days": 20, "window": "1d", "terms": ["a-long-term to search"], "languages": languages}
    config = config_of(phases=[phase])
    text = shown(plan(config, tmp_path, Dear)[0], config, every=every, width=80)
    (header,) = (line.split() for line in text.splitlines() if line.startswith("#"))
    first = [line for line in text.splitlines() if line.startswith("1 ")]

    assert "…" not in text
    assert header[-5:] == ["queries", "done", "posts", "requests", "cost"]
    assert len(first) == rows
    assert all(line.count("2026-03-") == 2 for line in first)
    assert first[0].split()[-4:] == ["-", "≥", str(100 // rows), "-"]
