"""Nothing in a crawl's ledger names a forgotten post, and nobody is asked about it again."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from rich.console import Console

from echo_hf.builder.build import run_until
from echo_hf.cli.posts_view import crawl_lines, show_crawled
from echo_hf.collect.crawl_ledger import (
    LEDGER,
    CrawlLedger,
    LedgerQuestion,
    QuestionState,
    forget_answers,
)
from echo_hf.collect.platforms.base import Answer, Kind, Question
from echo_hf.collect.platforms.x import X
from echo_hf.collect.sources.base import Post
from echo_hf.collect.takedown import TOMBSTONES, add_tombstones, hashed, read_tombstones
from echo_hf.errors import SourceError
from echo_hf.reasons import CrawlEnd
from tests.collect.platforms.crawling import Serve, collected, config_of, crawled
from tests.collect.platforms.simulated import FIRST_DAY, HOST, NAME, World
from tests.progress_for_tests import Heard

SEARCH = Question("search", ("fox",))
ADDRESS = "https://x.com/i/status/{}".format
GONE = ADDRESS(70000)
STAND_IN = "urn:sha256:" + hashlib.sha256(GONE.encode()).hexdigest()


@pytest.fixture
def ledger(tmp_path: Path) -> CrawlLedger:
    return CrawlLedger(tmp_path / LEDGER)


def bytes_of(ledger: CrawlLedger) -> bytes:
    ledger.close()
    return b"".join(file.read_bytes() for file in sorted(ledger.path.parent.iterdir()))


def answered(ledger: CrawlLedger, name: str, posts: Iterable[Post], *cursors: str) -> None:
    asked = asked_next(ledger, name)
    ledger.keep(asked, Answer("{}", *cursors), posts, 0.0)


def asked_next(ledger: CrawlLedger, name: str) -> LedgerQuestion:
    asked = ledger.next_question(name)
    assert asked is not None
    return asked


def expanded(ledger: CrawlLedger) -> int:
    about = ledger.unexpanded("x", 100)
    return ledger.expand("x", about, X().around([one.post for one in about]), {})


def test_a_post_its_reply_and_the_questions_about_it_name_it_no_more(ledger: CrawlLedger) -> None:
    reply, quote = Post(ADDRESS(70001), parent_url=GONE), Post(ADDRESS(70002), quoted_url=GONE)
    ledger.add_searches("x", [SEARCH])
    answered(ledger, "x", [Post(GONE, author="mira_draws"), reply, quote])
    assert expanded(ledger) == 3 - 1  # two conversations; what is seen is not looked up
    ledger.expand("x", [], [Question("posts", ("70000", "70003"))], {})
    assert b"70000" in bytes_of(ledger)
    forget_answers(ledger.path, [GONE])
    data = bytes_of(ledger)

    assert b"70000" not in data
    assert b"mira_draws" not in data
    assert all(number in data for number in (b"70001", b"70002", b"70003"))
    assert data.count(STAND_IN.encode()) >= 3


def test_a_page_that_cannot_be_cleaned_leaves_the_file(ledger: CrawlLedger) -> None:
    ledger.add_searches("x", [SEARCH])
    ledger.keep(asked_next(ledger, "x"), Answer('{"id": "70000", "text"', "more"), [], 0.0)
    ledger.keep(asked_next(ledger, "x"), Answer("{}"), [], 0.0)
    forget_answers(ledger.path, [GONE])

    assert [one.body for one in ledger.answers("x")] == ["{}"]


def test_nobody_is_asked_about_it_when_its_reply_comes_again(ledger: CrawlLedger) -> None:
    tombstones = ledger.path.with_name(TOMBSTONES)
    add_tombstones(tombstones, [hashed(GONE)])
    replies = [Post(ADDRESS(number), parent_url=GONE) for number in (70001, 70002)]
    ledger.add_searches("x", [SEARCH])
    answered(ledger, "x", replies[:1], "more")
    forget_answers(ledger.path, [GONE])
    answered(ledger, "x", map(read_tombstones(tombstones).cleared, replies))

    assert expanded(ledger) == 0
    assert b"70000" not in bytes_of(ledger)


BLUESKY = ("at://did:plc:fox/app.bsky.feed.post/3k", "https://bsky.app/profile/did:plc:fox/post/3k")
STATUS = "https://social.example/users/mira/statuses/70000"


@pytest.mark.parametrize(
    ("name", "identifier", "url"),
    [("x", "70000", GONE), ("bluesky", *BLUESKY), ("mastodon", f"4711 {STATUS}", STATUS)],
)
def test_every_platforms_identifiers_are_known(
    ledger: CrawlLedger, name: str, identifier: str, url: str
) -> None:
    asks = [Question("thread", (identifier,)), Question("thread", ("other",))]
    assert ledger.expand(name, [], asks, {}) == 2
    forget_answers(ledger.path, [url])

    assert ledger.states(name) == {"needless": 1, "open": 1}
    assert asked_next(ledger, name).question == asks[1]
    assert identifier.encode() not in bytes_of(ledger)


def test_an_identifier_without_an_address_is_known_from_what_was_seen(ledger: CrawlLedger) -> None:
    ledger.add_searches("mine", [SEARCH])
    answered(ledger, "mine", [Post("https://a.example/one", post_id="zimtstern")])
    ledger.expand("mine", [], [Question("replies", ("zimtstern",))], {})
    forget_answers(ledger.path, ["https://a.example/one"])

    assert b"zimtstern" not in bytes_of(ledger)


@pytest.mark.parametrize("kind", ["posts", "replies"])
def test_what_else_a_question_is_about_is_still_asked(ledger: CrawlLedger, kind: Kind) -> None:
    ledger.expand("x", [], [Question(kind, ("1", "70000", "2"))], {})
    answered(ledger, "x", [], "more")
    forget_answers(ledger.path, [GONE])
    left = asked_next(ledger, "x")

    assert (left.question, left.cursor) == (Question(kind, ("1", "2")), None)
    assert (left.attempt, left.pages) == (1, 0)


def test_a_question_that_is_answered_keeps_its_place_among_others(ledger: CrawlLedger) -> None:
    question = Question("posts", ("1", "70000"))
    ledger.expand("x", [], [question], {})
    answered(ledger, "x", [])
    forget_answers(ledger.path, [GONE])

    assert ledger.state("x", Question("posts", ("1", STAND_IN))) is QuestionState.DONE
    assert ledger.state("x", question) is None
    assert ledger.states("x") == {"done": 1}


def test_a_crawl_goes_on_without_it(serve: Serve, tmp_path: Path) -> None:
    serve(World.of(200, seed=5))
    crawled(tmp_path, config_of(budget={"posts": 60}))
    gone = [f"{HOST}/{name}" for name in sorted(collected(tmp_path))[::3]]
    add_tombstones(tmp_path / TOMBSTONES, map(hashed, gone))
    forget_answers(tmp_path / LEDGER, gone)
    stats = crawled(tmp_path, config_of())
    with CrawlLedger(tmp_path / LEDGER) as ledger:
        seen = ledger.execute("select url, parent_url, quoted_url from seen")
        named = {url for row in seen for url in row}
        asked = {name for (name,) in ledger.execute("select identifier from asked")}

    assert len(gone) > 10
    assert (stats.end, stats.missing["removed"]) == (CrawlEnd.NOTHING_LEFT, len(gone))
    assert len(named) > 100
    assert named.isdisjoint(gone)
    assert asked.isdisjoint(url.rpartition("/")[2] for url in gone)


def test_the_figures_of_a_small_crawl_are_written_and_shown(serve: Serve, tmp_path: Path) -> None:
    parents = {"p0": None, "p1": "p0", "p2": None, "p3": "p2", "p4": "p3"}
    found = {name: ["lumen"] if name in ("p1", "p3") else [] for name in parents}
    time = FIRST_DAY.isoformat()
    posts = {
        name: {"id": name, "parent": above, "time": time, "terms": found[name]}
        for name, above in parents.items()
    }
    serve(World(posts, deleted={"p0"}))
    stats = crawled(tmp_path, config_of(phases=[{"days": 1, "window": "1d", "terms": ["lumen"]}]))
    written = json.loads((tmp_path / "crawl.json").read_text("utf-8"))[NAME]
    console = Console(file=io.StringIO(), width=200)
    show_crawled(console, [stats])
    lines = list(crawl_lines(stats))

    assert (stats.by_terms, stats.by_replies, stats.missing) == (2, 2, {"deleted": 1})
    assert stats.missed_by_terms == written["missed_by_terms"] == 0.5
    assert (written["end"], written["missing"]) == ("nothing_left", {"deleted": 1})
    assert lines[:2] == [
        "2 posts by search terms, 2 more by replies (50 % that terms alone would have missed)",
        "posts that are named and not there: 1 deleted",
    ]
    assert lines[-1].startswith("nothing_left: every query is answered")
    assert all(line in console.file.getvalue() for line in lines)  # type: ignore[attr-defined]


def test_a_build_reads_what_is_there_and_says_what_is_open(serve: Serve, tmp_path: Path) -> None:
    service, config = serve(World.of(400, seed=4)), config_of(budget={"posts": 100})
    with pytest.raises(SourceError, match=r"has to be asked for first, by `echo-hf collect`"):
        run_until(config, "collect", runs=tmp_path)
    crawled(tmp_path / config.name, config)
    requests, watch = service.requests, Heard()
    (result,) = run_until(config, "collect", runs=tmp_path, watch=watch)

    assert len(result.dataset) > 0
    assert service.requests == requests
    assert len(watch.remarks) == 1
    assert "questions are open: `echo-hf collect` goes on" in watch.remarks[0]
