"""Nothing in a crawl's ledger names a forgotten post, and nobody is asked about it again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from echo_hf.collect.crawl_ledger import LEDGER, CrawlLedger, LedgerQuestion, forget_answers
from echo_hf.collect.platforms.base import Answer, Kind, Question
from echo_hf.collect.platforms.x import X
from echo_hf.collect.sources.base import Post
from echo_hf.collect.takedown import TOMBSTONES, add_tombstones, hashed, read_tombstones
from echo_hf.reasons import CrawlEnd
from tests.collect.platforms.crawling import Serve, collected, config_of, crawled
from tests.collect.platforms.simulated import HOST, World

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
    ledger.keep(asked_next(ledger, name), Answer("{}", *cursors), posts, 0.0)


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
    [
        ("x", "70000", GONE),
        ("bluesky", *BLUESKY),
        ("mastodon", f"4711 {STATUS}", STATUS),
        ("mine", "zimtstern", "https://a.example/one"),  # known from what was seen
    ],
)
def test_every_platforms_identifiers_are_known(
    ledger: CrawlLedger, name: str, identifier: str, url: str
) -> None:
    ledger.add_searches(name, [SEARCH])
    answered(ledger, name, [Post(url, post_id=identifier)])
    asks = [Question("thread", (identifier,)), Question("thread", ("other",))]
    assert ledger.expand(name, [], asks, {}) == 2
    forget_answers(ledger.path, [url])

    assert asked_next(ledger, name).question == asks[1]
    assert ledger.states(name) == {"done": 1, "needless": 1, "open": 1}
    assert identifier.encode() not in bytes_of(ledger)


@pytest.mark.parametrize("kind", ["posts", "replies"])
def test_what_else_a_question_is_about_is_still_asked(ledger: CrawlLedger, kind: Kind) -> None:
    ledger.expand("x", [], [Question(kind, ("1", "70000", "2"))], {})
    answered(ledger, "x", [], "more")
    forget_answers(ledger.path, [GONE])
    left = asked_next(ledger, "x")

    assert (left.question, left.cursor) == (Question(kind, ("1", "2")), None)
    assert (left.attempt, left.pages) == (1, 0)


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
