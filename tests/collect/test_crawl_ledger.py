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
from echo_hf.collect.takedown import TOMBSTONES, add_tombstones, read_tombstones
from echo_hf.errors import SourceError
from echo_hf.reasons import CrawlEnd
from tests.collect.platforms.crawling import Serve, collected, config_of, crawled
from tests.collect.platforms.simulated import FIRST_DAY, HOST, NAME, World
from tests.progress_for_tests import Heard

NAMED = "select url, parent_url, quoted_url from seen"
SEARCH = Question("search", ("fox",))
ADDRESS = "https://x.com/i/status/{}".format
GONE = "https://x.com/i/status/70000"
STAND_IN = "urn:sha256:" + hashlib.sha256(GONE.encode()).hexdigest()


def bytes_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))


def asked_about(path: Path, platform: str, *questions: Question) -> None:
    with CrawlLedger(path) as ledger:
        assert ledger.expand(platform, [], questions, {}) == len(questions)


def answered(
    ledger: CrawlLedger, platform: str, posts: Iterable[Post], *cursors: str
) -> LedgerQuestion:
    asked = ledger.next_question(platform)
    assert asked is not None
    ledger.keep(asked, Answer("{}", *cursors), posts, 0.0)
    return asked


def expanded(ledger: CrawlLedger) -> list[Question]:
    about = ledger.unexpanded("x", 100)
    before = ledger.states("x").get("open", 0)
    new = ledger.expand("x", about, X().around([one.post for one in about]), {})
    assert ledger.states("x").get("open", 0) == before + new
    rows = ledger.execute("select kind, about from questions where state = 'open'")
    return [Question(kind, (names,)) for kind, names in rows]


def test_a_post_its_reply_and_the_questions_about_it_name_it_no_more(tmp_path: Path) -> None:
    path = tmp_path / LEDGER
    posts = [
        Post(GONE, author="mira_draws"),
        Post(ADDRESS(70001), parent_url=GONE),
        Post(ADDRESS(70002), quoted_url=GONE),
    ]
    with CrawlLedger(path) as ledger:
        ledger.add_searches("x", [SEARCH])
        answered(ledger, "x", posts)
        assert len(expanded(ledger)) == 3 - 1  # two conversations; what is seen is not looked up
        ledger.expand("x", [], [Question("posts", ("70000", "70003"))], {})
    assert b"70000" in bytes_of(tmp_path)
    forget_answers(path, [GONE])
    data = bytes_of(tmp_path)

    assert b"70000" not in data
    assert b"mira_draws" not in data
    assert all(number in data for number in (b"70001", b"70002", b"70003"))
    assert data.count(STAND_IN.encode()) >= 3


def test_nobody_is_asked_about_it_when_its_reply_comes_again(tmp_path: Path) -> None:
    path = tmp_path / LEDGER
    add_tombstones(tmp_path / TOMBSTONES, [GONE])
    forgotten = read_tombstones(tmp_path / TOMBSTONES)
    replies = [Post(ADDRESS(number), parent_url=GONE) for number in (70001, 70002)]
    with CrawlLedger(path) as ledger:
        ledger.add_searches("x", [SEARCH])
        answered(ledger, "x", replies[:1], "more")
    forget_answers(path, [GONE])
    with CrawlLedger(path) as ledger:
        answered(ledger, "x", map(forgotten.cleared, replies))

        assert expanded(ledger) == []
    assert b"70000" not in bytes_of(tmp_path)


@pytest.mark.parametrize(
    ("platform", "identifier", "url"),
    [
        ("x", "70000", GONE),
        (
            "bluesky",
            "at://did:plc:fox/app.bsky.feed.post/3kfox",
            "https://bsky.app/profile/did:plc:fox/post/3kfox",
        ),
        (
            "mastodon",
            "4711 https://social.example/users/mira/statuses/70000",
            "https://social.example/users/mira/statuses/70000",
        ),
    ],
)
def test_every_platforms_identifiers_are_known(
    tmp_path: Path, platform: str, identifier: str, url: str
) -> None:
    path = tmp_path / LEDGER
    asked_about(path, platform, Question("thread", (identifier,)), Question("thread", ("other",)))
    forget_answers(path, [url])

    assert identifier.encode() not in bytes_of(tmp_path)
    with CrawlLedger(path) as ledger:
        left = ledger.next_question(platform)
        assert left is not None
        assert left.question.about == ("other",)
        assert ledger.states(platform)["open"] == 1


def test_an_identifier_without_an_address_is_known_from_what_was_seen(tmp_path: Path) -> None:
    path = tmp_path / LEDGER
    with CrawlLedger(path) as ledger:
        ledger.add_searches("mine", [SEARCH])
        answered(ledger, "mine", [Post("https://a.example/one", post_id="zimtstern")])
        ledger.expand("mine", [], [Question("replies", ("zimtstern",))], {})
    forget_answers(path, ["https://a.example/one"])

    assert b"zimtstern" not in bytes_of(tmp_path)


@pytest.mark.parametrize("kind", ["posts", "replies"])
def test_what_else_a_question_is_about_is_still_asked(tmp_path: Path, kind: Kind) -> None:
    path = tmp_path / LEDGER
    asked_about(path, "x", Question(kind, ("1", "70000", "2")))
    with CrawlLedger(path) as ledger:
        answered(ledger, "x", [], "more")
    forget_answers(path, [GONE])
    with CrawlLedger(path) as ledger:
        left = ledger.next_question("x")

    assert left is not None
    assert (left.question, left.cursor) == (Question(kind, ("1", "2")), None)
    assert (left.attempt, left.pages) == (1, 0)


def test_a_question_that_is_answered_keeps_its_place_among_others(tmp_path: Path) -> None:
    path = tmp_path / LEDGER
    question = Question("posts", ("1", "70000"))
    asked_about(path, "x", question)
    with CrawlLedger(path) as ledger:
        answered(ledger, "x", [])
    forget_answers(path, [GONE])
    with CrawlLedger(path) as ledger:
        assert ledger.state("x", Question("posts", ("1", STAND_IN))) is QuestionState.DONE
        assert ledger.state("x", question) is None
        assert ledger.states("x") == {"done": 1}


def test_a_crawl_goes_on_without_it(serve: Serve, tmp_path: Path) -> None:
    serve(World.of(200, seed=5))
    crawled(tmp_path, config_of(budget={"posts": 60}))
    gone = [f"{HOST}/{name}" for name in sorted(collected(tmp_path))[::3]]
    add_tombstones(tmp_path / TOMBSTONES, gone)
    forget_answers(tmp_path / LEDGER, gone)
    stats = crawled(tmp_path, config_of())
    with CrawlLedger(tmp_path / LEDGER) as ledger:
        named = {url for row in ledger.execute(NAMED) for url in row}
        asked = {name for (name,) in ledger.execute("select identifier from asked")}

    assert len(gone) > 10
    assert stats.end is CrawlEnd.NOTHING_LEFT
    assert len(named) > 100
    assert named.isdisjoint(gone)
    assert asked.isdisjoint(url.rpartition("/")[2] for url in gone)
    assert stats.missing["removed"] == len(gone)


ONE_DAY = [{"days": 1, "window": "1d", "terms": ["lumen"]}]


@pytest.fixture
def world() -> World:
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
    serve(world)
    stats = crawled(tmp_path / "run", config_of(phases=ONE_DAY))
    written = json.loads((tmp_path / "run" / "crawl.json").read_text("utf-8"))

    assert (stats.by_terms, stats.by_replies, stats.missing) == (2, 2, {"deleted": 1})
    assert stats.missed_by_terms == 0.5
    assert written[NAME]["missed_by_terms"] == 0.5
    assert written[NAME]["end"] == "nothing_left"
    assert written[NAME]["missing"] == {"deleted": 1}


def test_a_terminal_shows_them(serve: Serve, world: World, tmp_path: Path) -> None:
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


def test_a_build_reads_what_is_there_and_says_what_is_open(serve: Serve, tmp_path: Path) -> None:
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
