"""What holds of every platform that is asked: troubles, limits, keys, redirects."""

from __future__ import annotations

import datetime
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from echo_hf.collect.crawl import crawl_posts
from echo_hf.collect.crawl_ledger import LEDGER, stored_answers
from echo_hf.collect.platforms.base import (
    Platform,
    Question,
    RateLimitedError,
    TimeWindow,
    UnanswerableError,
)
from echo_hf.collect.platforms.bluesky import Bluesky
from echo_hf.collect.platforms.mastodon import Mastodon
from echo_hf.collect.platforms.x import X
from echo_hf.collect.sources.base import Post, make_source
from echo_hf.config.loading import parse_config
from echo_hf.errors import PlatformError
from echo_hf.pipeline.run_folder import RunFolder
from tests.collect.platforms.crawling import HURRIED
from tests.collect.platforms.replaying import ReplayServer, Reply
from tests.collect.platforms.test_bluesky import BEGIN, session
from tests.progress_for_tests import Heard

START = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
QUESTION = Question("search", ("fox",), TimeWindow(START, START + datetime.timedelta(days=1)))


@dataclass(frozen=True)
class Case:
    make: Callable[[str], Platform]
    package: str
    search: str
    page: Any
    key: str
    reset: str


CASES = {
    "x": Case(
        X,
        "tweepy",
        "/2/tweets/search/all",
        {"meta": {}},
        "X_BEARER_TOKEN",
        "x-rate-limit-reset",
    ),
    "bluesky": Case(
        Bluesky,
        "atproto",
        "/xrpc/app.bsky.feed.searchPosts",
        {"posts": []},
        "BLUESKY_APP_PASSWORD",
        "ratelimit-reset",
    ),
    "mastodon": Case(
        Mastodon,
        "mastodon",
        "/api/v2/search",
        {"statuses": []},
        "MASTODON_ACCESS_TOKEN",
        "X-RateLimit-Reset",
    ),
}


@pytest.fixture(params=list(CASES))
def case(request: pytest.FixtureRequest, server: ReplayServer, keys: dict[str, str]) -> Case:
    case = CASES[request.param]
    pytest.importorskip(case.package, reason="needs its library: see `make test-extras`")
    server.gives(BEGIN, session("first"))
    return case


def asked(case: Case, server: ReplayServer, reply: Any) -> Any:
    server.gives(case.search, reply)
    with case.make(server.url) as platform:
        return platform.ask(QUESTION)


@pytest.mark.extras
@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (401, {"error": "it is invalid"}, PlatformError, "{key}"),
        (403, {"detail": "a\nb"}, PlatformError, "a b"),
        (403, {"message": "no such key: {secret}"}, PlatformError, "[key]"),
        (400, {"errors": [{"message": "bad\nquery"}]}, UnanswerableError, "bad query"),
        (404, [1], UnanswerableError, "404"),
        (302, {}, ConnectionError, "302"),
        (503, {"title": "Service Unavailable"}, ConnectionError, "503"),
        (500, b"<html>", ConnectionError, "500"),
        (200, b"<html>", ConnectionError, "JSON"),
        (200, [], ConnectionError, "JSON"),
        (200, {"error": "Unavailable"}, ConnectionError, "Unavailable"),
    ],
)
def test_troubles_are_told_by_what_helps_in_one_line_without_the_key(
    status: int,
    body: Any,
    error: type[Exception],
    words: str,
    case: Case,
    server: ReplayServer,
    keys: dict[str, str],
) -> None:
    if body == {"message": "no such key: {secret}"}:
        body = {"message": f"no such key: {keys[case.key]}"}
    if status == 302 and case.make is Bluesky:
        pytest.skip("its library follows redirects, and sends no key to another host")
    reply = Reply(body, status, {"Location": f"{server.url}/elsewhere"} if status == 302 else {})
    with pytest.raises(error) as trouble:
        asked(case, server, reply)

    assert words.format(key=case.key) in str(trouble.value)
    assert "\n" not in str(trouble.value)
    assert "key-of-nobody" not in str(trouble.value)
    assert "/elsewhere" not in {request.path for request in server.asked}


@pytest.mark.extras
def test_a_limit_is_waited_for_as_told(case: Case, server: ReplayServer) -> None:
    reset = str(int(time.time()) + 100)
    with pytest.raises(RateLimitedError) as trouble:
        asked(case, server, Reply({"error": "Too Many"}, 429, {case.reset: reset}))

    assert 90 < trouble.value.seconds <= 102


@pytest.mark.extras
def test_the_key_is_sent_and_shown_nowhere(
    case: Case, server: ReplayServer, caplog: pytest.LogCaptureFixture, keys: dict[str, str]
) -> None:
    server.gives(case.search, case.page)
    with caplog.at_level(logging.DEBUG), case.make(server.url) as platform:
        answer = platform.ask(QUESTION)
        shown = caplog.text + repr(vars(platform)) + repr(answer)

    sent = server.asked[-1].headers["authorization"].removeprefix("Bearer ")
    assert "key-of-nobody" not in shown
    assert sent not in shown
    assert case.make is Bluesky or sent == keys[case.key]
    assert answer.cursor is None


pytestmark = pytest.mark.extras
# Post 3, which the search finds, answers 2, which answers 1; so does 4. Nobody answers 3 or 4.
PARENTS = {1: None, 2: 1, 3: 2, 4: 1}
REPLIES = {1: 2, 2: 1, 3: 0, 4: 0}
FEED = "/xrpc/app.bsky.feed."


def on_x(server: ReplayServer) -> X:
    def post(number: int) -> dict[str, Any]:
        parent = PARENTS[number]
        above = [{"type": "replied_to", "id": str(parent)}] if parent else []
        counts = {"reply_count": REPLIES[number]}
        return {
            "id": str(number),
            "text": "fox",
            "referenced_tweets": above,
            "public_metrics": counts,
        }

    server.gives("/2/tweets", {"data": [post(2)]}, {"data": [post(1)]}, {"data": []})
    conversation = {"data": [post(4), post(3), post(2)], "meta": {}}
    server.gives("/2/tweets/search/all", {"data": [post(3)], "meta": {}}, conversation)
    return X(server.url)


def on_bluesky(server: ReplayServer) -> Bluesky:
    def post(number: int) -> dict[str, Any]:
        uri = "at://did:plc:mira/app.bsky.feed.post/{}".format
        parent = PARENTS[number]
        reply = {"reply": {"parent": {"uri": uri(parent)}}} if parent else {}
        record = {"text": "fox", "createdAt": "2025-03-25T10:00:00Z", **reply}
        return {"uri": uri(number), "record": record, "replyCount": REPLIES[number]}

    from tests.collect.platforms.test_bluesky import BEGIN, session

    server.gives(BEGIN, session("only"))
    server.gives(f"{FEED}searchPosts", {"posts": [post(3)]}, {"posts": []})
    second = {"post": post(2), "replies": [{"post": post(3)}]}
    tree = {"post": post(1), "replies": [second, {"post": post(4)}]}
    server.gives(f"{FEED}getPostThread", {"thread": tree})
    return Bluesky(server.url)


def on_mastodon(server: ReplayServer) -> Mastodon:
    def post(number: int) -> dict[str, Any]:
        parent = PARENTS[number]
        return {
            "id": str(number),
            "uri": f"https://mastodon.example/users/mira/statuses/{number}",
            "content": "fox",
            "in_reply_to_id": str(parent) if parent else None,
            "replies_count": REPLIES[number],
        }

    server.gives("/api/v2/search", {"statuses": [post(3)]}, {"statuses": []})
    near = {"ancestors": [post(1), post(2)], "descendants": []}
    whole = {"ancestors": [], "descendants": [post(2), post(3), post(4)]}
    server.gives("/api/v1/statuses/3/context", near)
    server.gives("/api/v1/statuses/1/context", whole)
    return Mastodon(server.url)


@pytest.mark.parametrize(
    ("name", "library", "make"),
    [
        ("x", "tweepy", on_x),
        ("bluesky", "atproto", on_bluesky),
        ("mastodon", "mastodon", on_mastodon),
    ],
)
def test_a_found_reply_brings_its_tree(
    name: str,
    library: str,
    make: Callable[[ReplayServer], Any],
    server: ReplayServer,
    keys: dict[str, str],
    tmp_path: Path,
) -> None:
    pytest.importorskip(library, reason="needs its library: see `make test-extras`")
    phases = [{"days": 1, "window": "1d", "terms": ["fox"]}]
    config = parse_config(
        {
            "name": "crawled",
            "target": {"name": "A", "developer": "B", "released": "2025-03-25"},
            "posts": [{"source": name, "search": {"phases": phases}}],
            "engines": {"text": {"kind": "rules"}},
        },
        "c.yaml",
    )
    platform = make(server)
    watch = Heard()
    (stats,) = crawl_posts(
        config, RunFolder(tmp_path / "run"), watch, patience=HURRIED, make=lambda _: platform
    )
    source = make_source(name)
    posts = [
        one
        for answer in stored_answers(tmp_path / "run" / LEDGER, name)
        for _, record in source.split([answer.body])
        for one in source.posts(json.loads(record), answer.keywords)
        if isinstance(one, Post)
    ]
    # What one answer does not say of a post another one does.
    known = {(post.url, post.parent_url) for post in posts if post.parent_url}
    parents = dict.fromkeys((int(post.url[-1]) for post in posts), None)
    parents |= {int(url[-1]): int(parent[-1]) for url, parent in known}
    found = {int(post.url[-1]) for post in posts if post.keywords}

    assert (parents, found) == (PARENTS, {3})
    assert stats.end == "nothing_left"
    assert watch.remarks == []
