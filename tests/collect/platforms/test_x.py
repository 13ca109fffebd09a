"""X, asked through its client library, on recorded answers."""

from __future__ import annotations

import datetime
import gzip
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.collect.platforms.access import read_posts
from echo_hf.collect.platforms.base import (
    Question,
    RateLimitedError,
    StaleCursorError,
    TimeWindow,
    UnanswerableError,
)
from echo_hf.collect.platforms.x import X
from echo_hf.collect.sources.base import Post
from echo_hf.errors import PlatformError
from tests.collect.platforms.replaying import ReplayServer, Reply

RECENT, ALL = "/2/tweets/search/recent", "/2/tweets/search/all"
LOOKUP, COUNTS = "/2/tweets", "/2/tweets/counts/all"
ADDRESS = "https://x.com/i/status/{}".format
OLD = TimeWindow(
    datetime.datetime(2025, 3, 25, tzinfo=datetime.UTC),
    datetime.datetime(2025, 3, 26, tzinfo=datetime.UTC),
)


def young() -> TimeWindow:
    """The day before the last one."""
    end = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    return TimeWindow(end - datetime.timedelta(days=1), end)


@pytest.fixture
def x(server: ReplayServer, keys: dict[str, str]) -> Iterator[X]:
    """X on loopback."""
    pytest.importorskip("tweepy", reason="needs tweepy: see `make test-extras`")
    with X(server.url) as platform:
        yield platform


def recorded(path: Path) -> tuple[bytes, dict[str, str]]:
    """Body and headers of the first answer of a cassette."""
    answer = yaml.safe_load(path.read_text())["interactions"][0]["response"]
    body = answer["body"]["string"]
    data = body if isinstance(body, bytes) else body.encode()
    kept = {
        name: values[0]
        for name, values in answer["headers"].items()
        if name.startswith("x-rate-limit") or name == "content-encoding"
    }
    return data, kept


def said(trouble: pytest.ExceptionInfo[BaseException]) -> str:
    """The words of an error, which have to be one line without the key."""
    text = str(trouble.value)
    assert "\n" not in text
    assert "key-of-nobody" not in text
    return text


@pytest.mark.extras
def test_a_recorded_page_comes_through_the_library_as_it_was(
    x: X, server: ReplayServer, test_data: Path
) -> None:
    """The body is byte for byte what the server sent, and its posts are those of the recording."""
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
    """Half a cent a post, those of `includes` too, and a cent an author."""
    page = json.loads((test_data / "posts" / "x_api_v2" / "noflat.jsonl").read_text())
    server.gives(ALL, page)
    answer = x.ask(Question("search", ("4o",), OLD))
    posts = len(page["data"]) + len(page["includes"]["tweets"])

    assert answer.posts == posts
    assert answer.cost_usd == pytest.approx(posts * 0.005 + len(page["includes"]["users"]) * 0.01)


@pytest.mark.extras
def test_the_query_says_term_window_language_and_all_fields(x: X, server: ReplayServer) -> None:
    """What is sent is the plan's question, without reposts, whole texts, descriptions."""
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
def test_pages_follow_their_tokens(x: X, server: ReplayServer) -> None:
    """The cursor of a page is what the next one is asked with; the last page has none."""
    server.gives(
        RECENT,
        {"data": [{"id": "1", "text": "a"}], "meta": {"next_token": "two"}},
        {"data": [{"id": "2", "text": "b"}], "meta": {}},
    )
    question = Question("search", ("4o",), young())
    first = x.ask(question)
    second = x.ask(question, first.cursor)

    assert (first.cursor, second.cursor) == ("two", None)
    assert [query.get("next_token") for query in server.queries(RECENT)] == [None, ["two"]]


@pytest.mark.extras
def test_a_window_that_is_not_over_has_no_end(x: X, server: ReplayServer) -> None:
    """The API takes no end that is in the future or too near."""
    server.gives(RECENT, {"meta": {}})
    now = datetime.datetime.now(datetime.UTC)
    window = TimeWindow(now - datetime.timedelta(hours=1), now + datetime.timedelta(hours=1))
    x.ask(Question("search", ("4o",), window))

    assert "end_time" not in server.queries(RECENT)[0]


@pytest.mark.extras
def test_replies_are_the_conversation_from_its_beginning(x: X, server: ReplayServer) -> None:
    """The number of an old root leads to the archive, and says when the conversation began."""
    root = str((1_742_900_000_000 - 1_288_834_974_657) << 22)
    server.gives(ALL, {"meta": {}})
    x.ask(Question("replies", (root,)))
    (query,) = server.queries(ALL)

    assert query["query"] == [f"conversation_id:{root}"]
    assert query["start_time"] == ["2025-03-25T10:53:20Z"]


@pytest.mark.extras
@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"x-rate-limit-remaining": "0", "x-rate-limit-reset": "{in_100_s}"}, 95, 102),
        ({"x-rate-limit-remaining": "299", "x-rate-limit-reset": "{in_100_s}"}, 1, 5),
        ({"x-rate-limit-reset": "1"}, 1, 1),
        ({}, 60, 60),
    ],
    ids=["quarter", "too_soon", "past", "silent"],
)
def test_a_limit_is_waited_for_as_told(
    headers: dict[str, str], least: float, most: float, x: X, server: ReplayServer
) -> None:
    """429 says until when; two requests too close together cost a moment, not a quarter hour."""
    later = str(int(time.time()) + 100)
    told = {name: value.replace("{in_100_s}", later) for name, value in headers.items()}
    server.gives(RECENT, Reply({"title": "Too Many Requests"}, 429, told))
    with pytest.raises(RateLimitedError) as trouble:
        x.ask(Question("search", ("4o",), young()))

    assert least <= trouble.value.seconds <= most


@pytest.mark.extras
@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (401, {"title": "Unauthorized", "detail": "Unauthorized"}, PlatformError, "X_BEARER_TOKEN"),
        (402, {"title": "CreditsDepleted"}, PlatformError, "CreditsDepleted"),
        (403, {"title": "Client Forbidden", "detail": "a\nb"}, PlatformError, "a b"),
        (401, {"detail": "no such key: x-key-of-nobody"}, PlatformError, "[key]"),
        (400, {"errors": [{"message": "bad query"}]}, UnanswerableError, "bad query"),
        (400, {"errors": [{"message": "not one of [query,next_token]"}]}, UnanswerableError, "one"),
        (400, [1], UnanswerableError, "400"),
        (503, {"title": "Service Unavailable"}, ConnectionError, "503"),
        (500, b"<html>", ConnectionError, "500"),
        (200, b"<html>", ConnectionError, "JSON"),
        (200, [], ConnectionError, "JSON"),
        (200, {"errors": [{"title": "Service Unavailable"}]}, ConnectionError, "Unavailable"),
    ],
)
def test_troubles_are_told_by_what_helps(
    status: int,
    body: Any,
    error: type[Exception],
    words: str,
    x: X,
    server: ReplayServer,
) -> None:
    """A refused key ends the crawl, a bad question is put aside, the rest is tried again."""
    server.gives(RECENT, Reply(body, status))
    with pytest.raises(error) as trouble:
        x.ask(Question("search", ("4o",), young()))

    assert words in said(trouble)


@pytest.mark.extras
def test_only_a_cursor_that_was_sent_can_be_stale(x: X, server: ReplayServer) -> None:
    """The window is then asked again whole."""
    server.gives(RECENT, Reply({"errors": [{"parameters": {"next_token": ["q"]}}]}, 400))
    with pytest.raises(StaleCursorError):
        x.ask(Question("search", ("4o",), young()), "q")


@pytest.mark.extras
@pytest.mark.parametrize("body", [{}, {"errors": [{"title": "Service Unavailable"}]}])
def test_a_lookup_that_says_nothing_of_its_posts_is_tried_again(
    body: Any, x: X, server: ReplayServer
) -> None:
    """Otherwise they would count as asked for, and never come."""
    server.gives(LOOKUP, body)
    for ask in (lambda: x.ask(Question("posts", ("7",))), lambda: x.gone([ADDRESS(7)])):
        with pytest.raises(ConnectionError, match="'data'"):
            ask()


@pytest.mark.extras
def test_a_count_that_goes_in_circles_ends(x: X, server: ReplayServer) -> None:
    """Each call costs money."""
    server.gives(COUNTS, {"meta": {"total_tweet_count": 1, "next_token": "a"}})
    with pytest.raises(ConnectionError, match="again and again"):
        x.estimate(Question("search", ("4o",), OLD))

    assert len(server.asked) == 2


@pytest.mark.extras
def test_the_key_is_sent_and_shown_nowhere(
    x: X, server: ReplayServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even by a library that logs its headers."""
    server.gives(RECENT, {"meta": {}})
    with caplog.at_level(logging.DEBUG):
        answer = x.ask(Question("search", ("4o",), young()))

    assert server.asked[0].headers["authorization"] == "Bearer x-key-of-nobody"
    assert "key-of-nobody" not in caplog.text + repr(vars(x)) + repr(answer)


@pytest.mark.extras
def test_a_redirect_is_not_followed(x: X, server: ReplayServer) -> None:
    """The key goes to one host."""
    server.gives(RECENT, Reply({}, 302, {"Location": f"{server.url}/elsewhere"}))
    with pytest.raises(OSError, match="302"):
        x.ask(Question("search", ("4o",), young()))

    assert [request.path for request in server.asked] == [RECENT]


@pytest.mark.extras
def test_posts_are_looked_up_by_number(x: X, server: ReplayServer) -> None:
    """What is gone is said in the answer's errors, and read with its reason."""
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
    """A long window is counted in several answers."""
    counts = "/2/tweets/counts/all"
    server.gives(
        counts,
        {"meta": {"total_tweet_count": 30, "next_token": "b"}},
        {"meta": {"total_tweet_count": 12}},
    )

    assert x.estimate(Question("search", ("4o",), OLD)) == 42
    assert server.queries(counts)[1]["next_token"] == ["b"]


@pytest.mark.extras
def test_without_a_key_nobody_is_asked(
    server: ReplayServer, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the variable."""
    pytest.importorskip("tweepy", reason="needs tweepy: see `make test-extras`")
    monkeypatch.setenv("X_BEARER_TOKEN", " ")
    with pytest.raises(PlatformError, match="'X_BEARER_TOKEN' is not set"):
        X(server.url).__enter__()

    assert server.asked == []


def test_around_are_the_parents_by_hundreds_and_the_conversations_of_roots() -> None:
    """Equal posts give equal questions, in whatever order they come."""
    replies = [Post(url=ADDRESS(1000 + n), parent_url=ADDRESS(n)) for n in range(1, 151)]
    roots = [Post(url=ADDRESS(5)), Post(url=ADDRESS(7), missing="deleted")]
    questions = X().around([*replies, *roots])

    assert questions == X().around([*roots, *reversed(replies)])
    assert [(one.kind, len(one.about)) for one in questions] == [
        ("posts", 100), ("posts", 50), ("replies", 1), ("replies", 1)
    ]  # fmt: skip
    assert sorted(int(n) for one in questions[:2] for n in one.about) == list(range(1, 151))
    assert [one.about for one in questions[2:]] == [("5",), ("7",)]
