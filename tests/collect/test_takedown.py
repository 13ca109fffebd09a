"""A forgotten post leaves pages and ledger of a crawl, and nobody is asked about it again."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from echo_hf.collect.crawl_ledger import (
    CRAWL_LEDGER_FILE,
    CrawlEnd,
    CrawlLedger,
    LedgerQuestion,
    forget_posts,
    read_stored_pages,
)
from echo_hf.collect.platforms.base import Page, Question, QuestionKind
from echo_hf.collect.platforms.x import XPlatform
from echo_hf.collect.sources.base import Post, make_source, read_page_posts
from echo_hf.collect.takedown import (
    ORIGINS_FILE,
    TOMBSTONES_FILE,
    add_tombstones,
    detect_page_source,
    drop_origins,
    hash_url,
    read_origins,
    read_tombstones,
    record_origins,
    remove_posts,
)
from echo_hf.errors import RunError
from tests.collect.platforms.crawling import Serve, collected, config_of, crawled
from tests.collect.platforms.simulated import HOST, World

SEARCH = Question("search", ("fox",))
ADDRESS = "https://x.com/i/status/{}".format
STATUS = "https://social.example/users/mira_draws/statuses/{}".format


def posts_of(body: str, platform: str) -> dict[str, Post]:
    source, text = detect_page_source(body, platform)
    return {post.url: post for post in read_page_posts(text, make_source(source), ["fox"])}


@pytest.mark.parametrize(
    ("platform", "name", "step", "least"),
    [
        ("x", "x_api_v2/noflat.jsonl", 40, 101),
        ("bluesky", "bluesky/morpho_threadResponseMidThreadJson.json", 1, 2),
        ("bluesky", "bluesky/thread_view_post_with_embed_media.json", 1, 2),
    ],
)
def test_of_a_real_page_every_other_post_is_left_as_it_was(
    test_data: Path, platform: str, name: str, step: int, least: int
) -> None:
    body = (test_data / "posts" / name).read_text("utf-8")
    before = posts_of(body, platform)
    for url, post in list(before.items())[::step]:
        left = remove_posts(body, platform, frozenset({url}), ["fox"])
        after = posts_of(left, platform)
        others = {one: other for one, other in before.items() if one != url}

        assert {one: shown(other) for one, other in after.items()} == {
            one: shown(other) for one, other in others.items()
        }
        same = [other.text for other in others.values()]
        assert not post.text or post.text in same or json.dumps(post.text) not in left
        assert remove_posts(left, platform, frozenset({url})) == left
    assert len(before) >= least


def shown(post: Post) -> tuple[Any, ...]:
    images = [(one.url, one.alt_text) for one in post.pictures]
    times = post.timestamp, post.engagement and dict(post.engagement)
    words = post.url, post.text, post.author, list(post.keywords), post.missing
    return *words, *times, post.parent_url, post.quoted_url, images


def status(number: int, text: str, **more: Any) -> dict[str, Any]:
    content = {"content": f"<p>{text}</p>", "account": {"acct": f"mira{number}"}}
    return {"id": str(number), "uri": STATUS(number), "visibility": "public", **content, **more}


REPOST = {"id": "12", "text": "RT zimt", "referenced_tweets": [{"type": "retweeted", "id": "99"}]}
ONE = {"data": [{"id": "99", "text": "zimt"}, REPOST, {"id": "98", "text": "an owl"}]}


@pytest.mark.parametrize(
    ("platform", "page", "url", "left"),
    [
        ("x", ONE, ADDRESS(99), [ADDRESS(98)]),
        ("mastodon", [status(10003, "b", reblog=status(10001, "zimt"))], STATUS(10001), []),
        ("x", '{"id": "99", "text": "zimt"', ADDRESS(99), []),
        ("x", "[" * 9999 + '{"id": "99", "text": "zimt"}', ADDRESS(99), []),
    ],
    ids=["a repost", "a boost", "half a page", "too deep"],
)
def test_what_repeats_it_goes_with_it(platform: str, page: Any, url: str, left: list[str]) -> None:
    body = page if isinstance(page, str) else json.dumps(page)
    found = remove_posts(body, platform, frozenset({url}))

    assert list(posts_of(found, platform)) == left
    assert "zimt" not in found
    assert remove_posts(body, platform, frozenset({ADDRESS(7)})) is body


def test_nothing_of_it_is_in_the_bytes_of_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "collected.sqlite"
    pages = [json.dumps(ONE), json.dumps({"data": [{"id": "97", "text": "a fox"}]})]
    with CrawlLedger(path) as ledger:
        ledger.add_searches("x", [SEARCH])
        for body, cursor in zip(pages, ("1", None), strict=True):
            asked = ledger.next_question("x")
            assert asked is not None
            ledger.store_page(asked, Page(body, cursor), posts_of(body, "x").values(), 0)
        ((before,),) = ledger.execute("select body from answers where page = 0")
    assert forget_posts(path, [ADDRESS(99)]) == 1
    first, second = read_stored_pages(path, "x")
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())

    assert (second.body, second.source) == (pages[1], "x")
    ((place, record),) = first.split_records()
    assert (place, first.source) == ('x/search "fox" page 1:1', "jsonl")
    assert (json.loads(record)["text"], json.loads(record)["keywords"]) == ("an owl", ["fox"])
    assert ADDRESS(98).encode() in held
    assert ADDRESS(99).encode() not in held
    assert "zimt" in zlib.decompress(before).decode()
    assert before not in held
    assert forget_posts(path, [ADDRESS(99)]) == 0


def test_a_run_without_a_crawl_gets_no_ledger(tmp_path: Path) -> None:
    assert forget_posts(tmp_path / "collected.sqlite", [ADDRESS(99)]) == 0
    assert list(tmp_path.iterdir()) == []


GONE = ADDRESS(70000)
STAND_IN = "urn:sha256:" + hashlib.sha256(GONE.encode()).hexdigest()


@pytest.fixture
def ledger(tmp_path: Path) -> CrawlLedger:
    return CrawlLedger(tmp_path / CRAWL_LEDGER_FILE)


def bytes_of(ledger: CrawlLedger) -> bytes:
    ledger.close()
    return b"".join(file.read_bytes() for file in sorted(ledger.path.parent.iterdir()))


def answered(ledger: CrawlLedger, name: str, posts: Iterable[Post], *cursors: str) -> None:
    ledger.store_page(asked_next(ledger, name), Page("{}", *cursors), posts, 0.0)


def asked_next(ledger: CrawlLedger, name: str) -> LedgerQuestion:
    asked = ledger.next_question(name)
    assert asked is not None
    return asked


def expanded(ledger: CrawlLedger) -> int:
    about = ledger.find_unexpanded("x", 100)
    return ledger.expand("x", about, XPlatform().around([one.post for one in about]), {})


def test_a_post_its_reply_and_the_questions_about_it_name_it_no_more(ledger: CrawlLedger) -> None:
    reply, quote = Post(ADDRESS(70001), parent_url=GONE), Post(ADDRESS(70002), quoted_url=GONE)
    ledger.add_searches("x", [SEARCH])
    answered(ledger, "x", [Post(GONE, author="mira_draws"), reply, quote])
    assert expanded(ledger) == 3 - 1  # two conversations; what is seen is not looked up
    ledger.expand("x", [], [Question("posts", ("70000", "70003"))], {})
    assert b"70000" in bytes_of(ledger)
    forget_posts(ledger.path, [GONE])
    data = bytes_of(ledger)

    assert b"70000" not in data
    assert b"mira_draws" not in data
    assert all(number in data for number in (b"70001", b"70002", b"70003"))
    assert data.count(STAND_IN.encode()) >= 3


def test_nobody_is_asked_about_it_when_its_reply_comes_again(ledger: CrawlLedger) -> None:
    tombstones = ledger.path.with_name(TOMBSTONES_FILE)
    add_tombstones(tombstones, [hash_url(GONE)])
    replies = [Post(ADDRESS(number), parent_url=GONE) for number in (70001, 70002)]
    ledger.add_searches("x", [SEARCH])
    answered(ledger, "x", replies[:1], "more")
    forget_posts(ledger.path, [GONE])
    answered(ledger, "x", map(read_tombstones(tombstones).clear, replies))

    assert expanded(ledger) == 0
    assert b"70000" not in bytes_of(ledger)


BLUESKY = ("at://did:plc:fox/app.bsky.feed.post/3k", "https://bsky.app/profile/did:plc:fox/post/3k")


@pytest.mark.parametrize(
    ("name", "identifier", "url"),
    [
        ("x", "70000", GONE),
        ("bluesky", *BLUESKY),
        ("mastodon", f"4711 {STATUS(70000)}", STATUS(70000)),
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
    forget_posts(ledger.path, [url])

    assert asked_next(ledger, name).question == asks[1]
    assert ledger.count_states(name) == {"done": 1, "needless": 1, "open": 1}
    assert identifier.encode() not in bytes_of(ledger)


@pytest.mark.parametrize("kind", ["posts", "replies"])
def test_what_else_a_question_is_about_is_still_asked(
    ledger: CrawlLedger, kind: QuestionKind
) -> None:
    ledger.expand("x", [], [Question(kind, ("1", "70000", "2"))], {})
    answered(ledger, "x", [], "more")
    forget_posts(ledger.path, [GONE])
    left = asked_next(ledger, "x")

    assert (left.question, left.cursor) == (Question(kind, ("1", "2")), None)
    assert (left.attempt, left.pages) == (1, 0)


def test_a_crawl_goes_on_without_it(serve: Serve, tmp_path: Path) -> None:
    serve(World.of(200, seed=5))
    crawled(tmp_path, config_of(budget={"posts": 60}))
    gone = [f"{HOST}/{name}" for name in sorted(collected(tmp_path))[::3]]
    add_tombstones(tmp_path / TOMBSTONES_FILE, map(hash_url, gone))
    forget_posts(tmp_path / CRAWL_LEDGER_FILE, gone)
    stats = crawled(tmp_path, config_of())
    with CrawlLedger(tmp_path / CRAWL_LEDGER_FILE) as ledger:
        seen = ledger.execute("select url, parent_url, quoted_url from seen")
        named = {url for row in seen for url in row}
        asked = {name for (name,) in ledger.execute("select identifier from asked")}

    assert len(gone) > 10
    assert (stats.end, stats.missing["removed"]) == (CrawlEnd.NOTHING_LEFT, len(gone))
    assert len(named) > 100
    assert named.isdisjoint(gone)
    assert asked.isdisjoint(url.rpartition("/")[2] for url in gone)


def test_origins_grow_by_what_is_new_and_survive_their_samples(tmp_path: Path) -> None:
    """By brute force: a pair for each sample and post, once, whatever was noted before."""
    path, pairs = tmp_path / ORIGINS_FILE, set[tuple[str, str]]()
    assert read_origins(path).num_rows == 0
    for made in ({"a": ["u", "v"], "b": None}, {"b": [], "c": ["v", "v"]}, {"a": ["u", "w"]}):
        table = pa.table({"id": list(made), "post_urls": pa.array(made.values(), URLS)})
        record_origins(path, [table.slice(0, 1), table.slice(1)])
        pairs |= {(name, hash_url(url)) for name, urls in made.items() for url in urls or ()}
        found = [(row["sample_id"], row["post"]) for row in read_origins(path).to_pylist()]
        assert (set(found), len(found)) == (pairs, len(pairs))
    drop_origins(path, ["a", "x"])
    assert read_origins(path).to_pylist() == [{"sample_id": "c", "post": hash_url("v")}]
    path.write_bytes(b"PAR1")
    with pytest.raises(RunError, match="does not say which posts samples were made of"):
        record_origins(path, [])


URLS = pa.list_(pa.string())
