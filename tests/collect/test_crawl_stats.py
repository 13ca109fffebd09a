"""What a crawl says of itself: counted by hand on a small world."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from echo_hf.builder.build import run_until
from echo_hf.cli.posts_view import crawl_lines, show_crawled
from echo_hf.cli.progress import Watch
from echo_hf.collect.crawl import CrawlProgress
from echo_hf.collect.crawl_ledger import Spent
from echo_hf.errors import SourceError
from tests.collect.platforms.crawling import config_of, crawled
from tests.collect.platforms.serving import Serve
from tests.collect.platforms.simulated import FIRST_DAY, NAME, World
from tests.progress_for_tests import Heard

ONE_DAY = [{"days": 1, "window": "1d", "terms": ["lumen"]}]


@pytest.fixture
def world() -> World:
    """Two posts with the term; an ancestor that is gone, one that is not, and a reply."""
    parents = {"p0": None, "p1": "p0", "p2": None, "p3": "p2", "p4": "p3"}
    posts = {
        name: {
            "id": name,
            "parent": parent,
            "time": FIRST_DAY.isoformat(),
            "terms": ["lumen"] if name in ("p1", "p3") else [],
        }
        for name, parent in parents.items()
    }
    return World(posts, deleted={"p0"})


def test_the_figures_of_a_small_crawl(serve: Serve, world: World, tmp_path: Path) -> None:
    """p1 and p3 by the term; p2 above and p4 below by replies; p0 is missing."""
    serve(world)
    stats = crawled(tmp_path / "run", config_of(phases=ONE_DAY))
    written = json.loads((tmp_path / "run" / "crawl.json").read_text("utf-8"))

    assert (stats.by_terms, stats.by_replies, stats.missing) == (2, 2, {"deleted": 1})
    assert stats.missed_by_terms == 0.5
    assert written[NAME]["missed_by_terms"] == 0.5
    assert written[NAME]["end"] == "nothing_left"
    assert written[NAME]["missing"] == {"deleted": 1}


def test_a_terminal_shows_them(serve: Serve, world: World, tmp_path: Path) -> None:
    """The share that terms alone would have missed, what is missing, and why it ended."""
    serve(world)
    stats = crawled(tmp_path / "run", config_of(phases=ONE_DAY))
    lines = list(crawl_lines(stats))
    console = Console(file=io.StringIO(), width=200)
    show_crawled(console, [stats])

    assert (
        lines[0]
        == "2 posts by search terms, 2 more by replies (50 % that terms alone would have missed)"
    )
    assert lines[1] == "posts that are named and not there: 1 deleted"
    assert lines[-1].startswith("nothing_left: every query is answered")
    assert all(line in console.file.getvalue() for line in lines)  # type: ignore[attr-defined]


def test_what_a_platform_says_is_shown_as_plain_text(
    serve: Serve, world: World, tmp_path: Path
) -> None:
    """Errors may quote a stranger: no markup, no control characters."""
    serve(world)
    console = Console(file=io.StringIO(), width=200, force_terminal=True)
    with Watch(console) as watch:
        watch.noticed("x: [red]a\x1b[2Jb\u202e")
        watch.waits("x", 60)
        watch.advanced("x", 1, CrawlProgress("x", requests=1, posts=2, seconds=1.0))
    shown = console.file.getvalue()  # type: ignore[attr-defined]

    assert "[red]a" in shown
    assert "\x1b[2J" not in shown
    assert "\u202e" not in shown
    assert "x asks to wait 60 s: going on at " in shown


def test_unknown_prices_are_not_counted_as_nothing() -> None:
    """What is known stands there, and how many pages are not in it."""
    spent = Spent(requests=3, posts=270, cost_usd=1.0, unpriced=2, by_replies=0)
    line = str(CrawlProgress("x", 3, 270, round=2, seconds=2.0, spent=spent))

    assert line == (
        "x: round 2 of replies, 3 requests, 270 posts (135/s), "
        "$1.00 and what 2 pages of unknown price cost in all"
    )


def test_a_build_reads_what_is_there_and_says_what_is_open(serve: Serve, tmp_path: Path) -> None:
    """It asks no platform."""
    service = serve(World.of(400, seed=4))
    config = config_of(budget={"posts": 100})
    with pytest.raises(SourceError, match=r"has to be asked for first, by `echo-hf collect`"):
        run_until(config, "collect", runs=tmp_path)
    crawled(tmp_path / config.name, config, Heard())
    requests, watch = service.requests, Heard()
    (result,) = run_until(config, "collect", runs=tmp_path, watch=watch)

    assert len(result.dataset) > 0
    assert service.requests == requests
    assert len(watch.remarks) == 1
    assert "questions are open: `echo-hf collect` goes on" in watch.remarks[0]
