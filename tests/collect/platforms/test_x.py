"""X, asked through its client library, on recorded answers."""

from __future__ import annotations

import datetime
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.builder.build import run_until
from echo_hf.collect.crawl import crawl_posts
from echo_hf.collect.platforms.access import read_posts
from echo_hf.collect.platforms.base import (
    Question,
    StaleCursorError,
    TimeWindow,
    UnanswerableError,
)
from echo_hf.collect.platforms.x import X, archive_of
from echo_hf.collect.sources.base import Post
from echo_hf.config.loading import Config, parse_config
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import CrawlEnd
from tests.collect.platforms.replaying import ReplayServer, Reply
from tests.progress_for_tests import Heard

RECENT, ALL = "/2/tweets/search/recent", "/2/tweets/search/all"
LOOKUP, COUNTS = "/2/tweets", "/2/tweets/counts/all"
ADDRESS = "https://x.com/i/status/{}".format
OLD = TimeWindow(
    datetime.datetime(2025, 3, 25, tzinfo=datetime.UTC),
    datetime.datetime(2025, 3, 26, tzinfo=datetime.UTC),
)


def young() -> TimeWindow:
    end = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    return TimeWindow(end - datetime.timedelta(days=1), end)


@pytest.fixture
def x(server: ReplayServer, keys: dict[str, str]) -> Iterator[X]:
    pytest.importorskip("tweepy", reason="needs tweepy: see `make test-extras`")
    with X(server.url) as platform:
        yield platform


def recorded(path: Path) -> tuple[bytes, dict[str, str]]:
    answer = yaml.safe_load(path.read_text())["interactions"][0]["response"]
    body = answer["body"]["string"]
    data = body if isinstance(body, bytes) else body.encode()
    kept = {
        name: values[0]
        for name, values in answer["headers"].items()
        if name.startswith("x-rate-limit") or name == "content-encoding"
    }
    return data, kept


@pytest.mark.extras
def test_a_recorded_page_comes_through_the_library_as_it_was(
    x: X, server: ReplayServer, test_data: Path
) -> None:
    data, headers = recorded(
        test_data / "posts" / "tweepy_cassettes" / "test_client_search_recent_tweets.yaml"
    )
    server.gives(RECENT, Reply(data, headers=headers))
    answer = x.ask(Question("search", ("Tweepy",), young()))
    sent = gzip.decompress(data)
    posts = json.loads(sent)["data"]

    assert answer.body.encode() == sent
    read = [post.url for post in read_posts("x", answer.body)]
    # Reposts are left to the posts that they repeat.
    own = [post["id"] for post in posts if not post["text"].startswith("RT @")]
    assert set(map(ADDRESS, own)) <= set(read)
    assert (answer.posts, answer.cost_usd) == (len(posts), pytest.approx(0.005 * len(posts)))
    assert answer.cursor == json.loads(sent)["meta"].get("next_token")


@pytest.mark.extras
def test_a_page_with_all_around_it_is_billed_as_the_price_list_says(
    x: X, server: ReplayServer, test_data: Path
) -> None:
    page = json.loads((test_data / "posts" / "x_api_v2" / "noflat.jsonl").read_text())
    server.gives(ALL, page)
    answer = x.ask(Question("search", ("4o",), OLD))
    posts = len(page["data"]) + len(page["includes"]["tweets"])

    assert answer.posts == posts
    assert answer.cost_usd == pytest.approx(posts * 0.005 + len(page["includes"]["users"]) * 0.01)


@pytest.mark.extras
def test_the_query_says_term_window_language_and_all_fields(x: X, server: ReplayServer) -> None:
    server.gives(ALL, {"meta": {"result_count": 0}})
    x.ask(Question("search", ("4o image",), OLD, "ja"), "next-1")
    (query,) = server.queries(ALL)

    assert query["query"] == ["4o image -is:retweet lang:ja"]
    assert query["start_time"] == ["2025-03-25T00:00:00Z"]
    assert query["end_time"] == ["2025-03-26T00:00:00Z"]
    assert query["next_token"] == ["next-1"]
    assert query["max_results"] == ["100"]
    assert "note_tweet" in query["tweet.fields"][0].split(",")
    assert "alt_text" in query["media.fields"][0].split(",")
    assert "referenced_tweets.id" in query["expansions"][0].split(",")


@pytest.mark.extras
def test_a_window_that_is_not_over_has_no_end(x: X, server: ReplayServer) -> None:
    server.gives(RECENT, {"meta": {}})
    now = datetime.datetime.now(datetime.UTC)
    window = TimeWindow(now - datetime.timedelta(hours=1), now + datetime.timedelta(hours=1))
    x.ask(Question("search", ("4o",), window))

    assert "end_time" not in server.queries(RECENT)[0]


@pytest.mark.extras
def test_replies_are_the_conversation_from_its_beginning(x: X, server: ReplayServer) -> None:
    root = str((1_742_900_000_000 - 1_288_834_974_657) << 22)
    server.gives(ALL, {"meta": {}})
    x.ask(Question("replies", (root,)))
    (query,) = server.queries(ALL)

    assert query["query"] == [f"conversation_id:{root}"]
    assert query["start_time"] == ["2025-03-25T10:53:20Z"]


@pytest.mark.extras
def test_only_a_cursor_that_was_sent_can_be_stale(x: X, server: ReplayServer) -> None:
    server.gives(RECENT, Reply({"errors": [{"parameters": {"next_token": ["q"]}}]}, 400))
    with pytest.raises(StaleCursorError):
        x.ask(Question("search", ("4o",), young()), "q")


@pytest.mark.extras
@pytest.mark.parametrize("body", [{}, {"errors": [{"title": "Service Unavailable"}]}])
def test_a_lookup_that_says_nothing_of_its_posts_is_tried_again(
    body: Any, x: X, server: ReplayServer
) -> None:
    server.gives(LOOKUP, body)
    for ask in (lambda: x.ask(Question("posts", ("7",))), lambda: x.gone([ADDRESS(7)])):
        with pytest.raises(ConnectionError, match="'data'"):
            ask()


@pytest.mark.extras
def test_a_count_that_goes_in_circles_ends(x: X, server: ReplayServer) -> None:
    server.gives(COUNTS, {"meta": {"total_tweet_count": 1, "next_token": "a"}})
    with pytest.raises(ConnectionError, match="again and again"):
        x.estimate(Question("search", ("4o",), OLD))

    assert len(server.asked) == 2


@pytest.mark.extras
def test_posts_are_looked_up_by_number(x: X, server: ReplayServer) -> None:
    gone = {"resource_type": "tweet", "resource_id": "9", "title": "Not Found Error"}
    hidden = {**gone, "resource_id": "8", "title": "Authorization Error"}
    server.gives(LOOKUP, {"data": [{"id": "7", "text": "a"}], "errors": [gone, hidden]})
    answer = x.ask(Question("posts", ("7", "8", "9")))

    assert server.queries(LOOKUP)[0]["ids"] == ["7,8,9"]
    assert {post.url: post.missing for post in read_posts("x", answer.body)} == {
        ADDRESS("7"): None,
        ADDRESS("8"): "protected",
        ADDRESS("9"): "not_found",
    }
    assert x.gone([ADDRESS("7"), ADDRESS("8"), ADDRESS("9"), "https://a.example/"]) == {
        ADDRESS("8"): "protected",
        ADDRESS("9"): "not_found",
    }


@pytest.mark.extras
def test_a_count_adds_up_its_pages(x: X, server: ReplayServer) -> None:
    counts = "/2/tweets/counts/all"
    server.gives(
        counts,
        {"meta": {"total_tweet_count": 30, "next_token": "b"}},
        {"meta": {"total_tweet_count": 12}},
    )

    assert x.estimate(Question("search", ("4o",), OLD)) == 42
    assert server.queries(counts)[1]["next_token"] == ["b"]


def test_around_are_the_parents_by_hundreds_and_the_conversations_of_roots() -> None:
    replies = [Post(url=ADDRESS(1000 + n), parent_url=ADDRESS(n)) for n in range(1, 151)]
    roots = [Post(url=ADDRESS(5)), Post(url=ADDRESS(7), missing="deleted")]
    questions = X().around([*replies, *roots])

    assert questions == X().around([*roots, *reversed(replies)])
    assert [(one.kind, len(one.about)) for one in questions] == [
        ("posts", 100), ("posts", 50), ("replies", 1), ("replies", 1)
    ]  # fmt: skip
    assert sorted(int(n) for one in questions[:2] for n in one.about) == list(range(1, 151))
    assert [one.about for one in questions[2:]] == [("5",), ("7",)]


NOW = datetime.datetime(2026, 3, 20, tzinfo=datetime.UTC)


def days_ago(days: float) -> Question:
    start = NOW - datetime.timedelta(days=days)
    return Question("search", ("4o",), TimeWindow(start, start + datetime.timedelta(days=1)))


@pytest.mark.parametrize(("days", "expected"), [(1, "recent"), (6.9, "recent"), (7, "all")])
def test_what_is_older_than_a_week_is_in_the_archive(days: float, expected: str) -> None:
    assert archive_of(days_ago(days), "4o", NOW) == expected


@pytest.mark.parametrize(("days", "longest"), [(1, 512), (30, 1024)])
def test_a_query_that_is_too_long_is_put_aside(days: float, longest: int) -> None:
    assert archive_of(days_ago(days), "x" * longest, NOW)
    with pytest.raises(UnanswerableError, match=str(longest)):
        archive_of(days_ago(days), "x" * (longest + 1), NOW)


def post(number: int, root: int, above: int | None = None, replies: int = 0) -> dict[str, Any]:
    references = [{"type": "replied_to", "id": str(above)}] if above else None
    return {
        "id": str(number),
        "text": f"gpt {number}",
        "created_at": "2025-03-25T10:00:00.000Z",
        "conversation_id": str(root),
        "public_metrics": {"reply_count": replies, "like_count": 3},
        **({"referenced_tweets": references} if references else {}),
    }


def page(*posts: dict[str, Any], after: str | None = None, **rest: Any) -> dict[str, Any]:
    return {"data": list(posts), "meta": {"next_token": after} if after else {}, **rest}


def config_of(days: int) -> Config:
    phase = {"days": days, "window": "1d", "terms": ["gpt"]}
    return parse_config(
        {
            "name": "crawled",
            "target": {"name": "A", "developer": "B", "released": "2025-03-25"},
            "posts": [{"source": "x", "search": {"phases": [phase]}}],
            "engines": {"text": {"kind": "rules"}},
        },
        "c.yaml",
    )


@pytest.mark.extras
def test_a_search_its_ancestors_and_its_conversation_become_posts(
    server: ReplayServer, keys: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("tweepy", reason="needs tweepy: see `make test-extras`")
    config = config_of(days=1)
    gone = {"resource_type": "tweet", "resource_id": "300", "title": "Not Found Error"}
    server.gives(
        ALL,
        page(post(101, 100, above=100, replies=1), after="more"),
        page(post(200, 200), post(301, 300, above=300)),
        page(post(101, 100, above=100, replies=1), post(102, 100, above=101)),
        {"meta": {"result_count": 0}},
    )
    server.gives(LOOKUP, page(post(100, 100, replies=1), errors=[gone]))
    folder = RunFolder(tmp_path / "crawled")
    (stats,) = crawl_posts(config, folder, Heard(), make=lambda _: X(server.url))
    (result,) = run_until(config, "collect", runs=tmp_path)
    rows = {row["url"]: row for row in result.dataset.to_list()}

    assert {url: row["parent_url"] for url, row in rows.items()} == {
        ADDRESS(100): None,
        ADDRESS(101): ADDRESS(100),
        ADDRESS(102): ADDRESS(101),
        ADDRESS(200): None,
        ADDRESS(300): None,
        ADDRESS(301): ADDRESS(300),
    }
    assert {url for url, row in rows.items() if row["keywords"]} == {
        ADDRESS(number) for number in (101, 200, 301)
    }
    assert rows[ADDRESS(300)]["missing"] == "not_found"
    assert (stats.end, stats.by_terms, stats.by_replies) == (CrawlEnd.NOTHING_LEFT, 3, 2)
    assert stats.spent.cost_usd == pytest.approx(6 * 0.005)
    asked = [query["query"][0] for query in server.queries(ALL)]
    assert asked[2:] == ["conversation_id:100", "conversation_id:300"]
    assert [query["ids"] for query in server.queries(LOOKUP)] == [["100,300"]]
    ledger = (folder.root / "collected.sqlite").read_bytes()
    assert not any(key.encode() in ledger for key in keys.values())


@pytest.mark.extras
def test_what_is_only_quoted_is_kept_and_its_replies_are_not_paid_for(
    server: ReplayServer, keys: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("tweepy", reason="needs tweepy: see `make test-extras`")
    quoting = {**post(9, 9), "referenced_tweets": [{"type": "quoted", "id": "5"}]}
    beside = {"tweets": [post(5, 5, replies=9000)]}
    first = page(quoting, includes=beside)
    server.gives(ALL, first, page(post(6, 5, above=5)), page(post(6, 5, above=5)))

    one, two = config_of(days=1), config_of(days=2)
    folder = RunFolder(tmp_path / "crawled")
    (stats,) = crawl_posts(one, folder, Heard(), make=lambda _: X(server.url))
    before = [query["query"][0] for query in server.queries(ALL)]
    crawl_posts(two, folder, Heard(), make=lambda _: X(server.url))
    after = [query["query"][0] for query in server.queries(ALL)]

    assert (stats.by_terms, stats.by_replies) == (1, 1)
    assert before == ["gpt -is:retweet"]
    assert after[1:] == ["gpt -is:retweet", "conversation_id:5"]
