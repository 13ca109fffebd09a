"""What holds of every platform that is asked: troubles, limits, keys, redirects, raw answers."""

from __future__ import annotations

import datetime
import gzip
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.collect.crawl import crawl_posts
from echo_hf.collect.crawl_ledger import CRAWL_LEDGER_FILE, read_stored_pages
from echo_hf.collect.platforms.base import Question, RateLimitedError, TimeWindow, UnanswerableError
from echo_hf.collect.platforms.bluesky import BlueskyPlatform
from echo_hf.collect.platforms.mastodon import MastodonPlatform
from echo_hf.collect.platforms.x import XPlatform
from echo_hf.collect.sources.base import make_source, read_page_posts
from echo_hf.errors import PlatformError
from echo_hf.pipeline.run_folder import RunFolder
from tests.collect.platforms.conftest import ReplayServer, Reply
from tests.collect.platforms.crawling import HURRIED, searching
from tests.collect.platforms.test_bluesky import BEGIN, session
from tests.collect.sources.test_bluesky import URI, view
from tests.collect.sources.test_mastodon import status
from tests.collect.sources.test_x import post as x_post
from tests.progress_for_tests import Heard

pytestmark = pytest.mark.extras
START = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
WINDOW = TimeWindow(START, START + datetime.timedelta(days=1))
QUESTION = Question("search", ("fox",), WINDOW)
TAGGED = Question("search", ("#hoot",), WINDOW)
FEED = "/xrpc/app.bsky.feed."
TREE_FILE = "bluesky/morpho_threadResponseMidThreadJson.json"
X_FILE = "tweepy_cassettes/test_client_search_recent_tweets.yaml"
Page = dict[str, Any]
# Post 3, which the search finds, answers 2, which answers 1; so does 4. Nobody answers 3 or 4.
PARENTS = {1: None, 2: 1, 3: 2, 4: 1}
REPLIES = {1: 2, 2: 1, 3: 0, 4: 0}
MORNING = "2025-03-25T10:00:00Z"


def on_x(number: int) -> Page:
    above = {"replied_to": str(PARENTS[number])} if PARENTS[number] else {}
    return {**x_post(number, "fox", **above), "public_metrics": {"reply_count": REPLIES[number]}}


def on_bluesky(number: int) -> Page:
    above, counts = PARENTS[number], {"replyCount": REPLIES[number]}
    return view(number, "fox", URI(above) if above else None, indexedAt=MORNING, **counts)


def on_mastodon(number: int) -> Page:
    return status(number, PARENTS[number], replies_count=REPLIES[number])


TREE = {
    "post": on_bluesky(1),
    "replies": [
        {"post": on_bluesky(2), "replies": [{"post": on_bluesky(3)}]},
        {"post": on_bluesky(4)},
    ],
}


@dataclass(frozen=True)
class Case:
    make: Callable[[str], Any]
    package: str
    key: str
    reset: str
    search: str
    page: Page
    # What else is asked, and where; a recorded answer to the last of it.
    paths: Mapping[str, Question]
    recorded: str
    gone: str
    # Answers that together hold the tree above.
    tree: Mapping[str, Sequence[Page]]


CASES = {
    "x": Case(
        XPlatform,
        "tweepy",
        "X_BEARER_TOKEN",
        "x-rate-limit-reset",
        "/2/tweets/search/all",
        {"meta": {}},
        {"/2/tweets": Question("posts", ("7",)), "/2/tweets/search/all": QUESTION},
        X_FILE,
        "https://x.com/i/status/7",
        {
            "/2/tweets": [{"data": [on_x(2)]}, {"data": [on_x(1)]}, {"data": []}],
            "/2/tweets/search/all": [
                {"data": [on_x(3)], "meta": {}},
                {"data": [on_x(4), on_x(3), on_x(2)], "meta": {}},
            ],
        },
    ),
    "bluesky": Case(
        BlueskyPlatform,
        "atproto",
        "BLUESKY_APP_PASSWORD",
        "ratelimit-reset",
        f"{FEED}searchPosts",
        {"posts": []},
        {
            f"{FEED}searchPosts": QUESTION,
            f"{FEED}getPosts": Question("posts", (URI(1),)),
            f"{FEED}getPostThread": Question("thread", (URI(1),)),
        },
        TREE_FILE,
        "https://bsky.app/profile/did:plc:mira/post/a",
        {
            f"{FEED}searchPosts": [{"posts": [on_bluesky(3)]}, {"posts": []}],
            f"{FEED}getPostThread": [{"thread": TREE}],
        },
    ),
    "mastodon": Case(
        MastodonPlatform,
        "mastodon",
        "MASTODON_ACCESS_TOKEN",
        "X-RateLimit-Reset",
        "/api/v2/search",
        {"statuses": []},
        {
            "/api/v2/search": QUESTION,
            "/api/v1/statuses/7/context": Question("thread", ("7 https://m.example/@mira/7",)),
            "/api/v1/timelines/tag/hoot": TAGGED,
        },
        "mastodon/test_hashtag_tl.yaml",
        "",
        {
            "/api/v2/search": [{"statuses": [on_mastodon(3)]}, {"statuses": []}],
            "/api/v1/statuses/3/context": [
                {"ancestors": [on_mastodon(1), on_mastodon(2)], "descendants": []}
            ],
            "/api/v1/statuses/1/context": [
                {"ancestors": [], "descendants": [on_mastodon(2), on_mastodon(3), on_mastodon(4)]}
            ],
        },
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


@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (401, {"error": "it is invalid"}, PlatformError, "{key}"),
        (403, {"message": "no such key: {secret}"}, PlatformError, "[key]"),
        (400, {"errors": [{"message": "bad\nquery"}]}, UnanswerableError, "bad query"),
        (302, {}, ConnectionError, "302"),
        (500, b"<html>", ConnectionError, "500"),
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
    if status == 302 and case.make is BlueskyPlatform:
        pytest.skip("its library follows redirects, and sends no key to another host")
    reply = Reply(body, status, {"Location": f"{server.url}/elsewhere"} if status == 302 else {})
    with pytest.raises(error) as trouble:
        asked(case, server, reply)
    assert words.format(key=case.key) in str(trouble.value)
    assert "\n" not in str(trouble.value)
    assert "key-of-nobody" not in str(trouble.value)
    assert "/elsewhere" not in {request.path for request in server.asked}


@pytest.mark.parametrize("body", [b"<html>", {}, {"posts": 1, "statuses": 5}])
def test_what_is_no_answer_is_tried_again_and_loses_no_post(
    body: Any, case: Case, server: ReplayServer
) -> None:
    for path in case.paths:
        server.gives(path, Reply(body))
    with case.make(server.url) as platform:
        for question in case.paths.values():
            with pytest.raises(ConnectionError, match="answered"):
                platform.ask(question)
        if case.gone:
            with pytest.raises(ConnectionError, match="answered"):
                platform.gone([case.gone])


def test_a_limit_is_waited_for_as_told(case: Case, server: ReplayServer) -> None:
    reset = str(int(time.time()) + 100)
    with pytest.raises(RateLimitedError) as trouble:
        asked(case, server, Reply({"error": "Too Many"}, 429, {case.reset: reset}))
    assert 90 < trouble.value.seconds <= 102


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
    assert case.make is BlueskyPlatform or sent == keys[case.key]
    assert answer.cursor is None


def recorded(path: Path) -> Reply:
    if path.suffix == ".json":
        return Reply(path.read_bytes())
    every = yaml.safe_load(path.read_text())["interactions"]
    *_, last = (one["response"] for one in every if one["request"]["method"] == "GET")
    body, kept = last["body"]["string"], ("x-rate", "link", "content-encoding")
    headers = {n: values[0] for n, values in last["headers"].items() if n.startswith(kept)}
    return Reply(body if isinstance(body, bytes) else body.encode(), headers=headers)


def test_a_recorded_answer_comes_through_the_library_as_it_was(
    case: Case, server: ReplayServer, test_data: Path
) -> None:
    reply = recorded(test_data / "posts" / case.recorded)
    path, question = list(case.paths.items())[-1]
    server.gives(path, reply)
    with case.make(server.url) as platform:
        answer = platform.ask(question)
    sent = gzip.decompress(reply.data) if "content-encoding" in reply.headers else reply.data
    page = json.loads(sent)
    assert answer.body.encode() == sent
    if case.make is XPlatform:
        billed = len(page["data"]), 0.005 * len(page["data"]), page["meta"].get("next_token")
    elif case.make is MastodonPlatform:
        assert f"max_id={answer.cursor}>" in reply.headers["link"]
        billed = 1, 0.0, answer.cursor
    else:  # each post of the tree or of a quote is said to be of an author
        billed = sent.count(b'"author": {'), 0.0, None
    assert (answer.posts, answer.cost_usd, answer.cursor) == billed


def test_a_found_reply_brings_its_tree(
    case: Case, server: ReplayServer, keys: dict[str, str], tmp_path: Path
) -> None:
    for path, pages in case.tree.items():
        server.gives(path, *pages)
    platform, watch = case.make(server.url), Heard()
    config, folder = searching(platform.name, "fox"), RunFolder(tmp_path / "run")
    (stats,) = crawl_posts(config, folder, watch, patience=HURRIED, make=lambda _: platform)
    source = make_source(platform.name)
    posts = [
        post
        for answer in read_stored_pages(tmp_path / "run" / CRAWL_LEDGER_FILE, platform.name)
        for post in read_page_posts(answer.body, source, answer.keywords)
    ]
    # What one answer does not say of a post another one does.
    parents: dict[int, int | None] = dict.fromkeys((int(post.url[-1]) for post in posts), None)
    parents |= {int(post.url[-1]): int(post.parent_url[-1]) for post in posts if post.parent_url}
    assert (parents, {int(post.url[-1]) for post in posts if post.keywords}) == (PARENTS, {3})
    assert stats.end == "nothing_left"
    assert watch.remarks == []
    assert keys[case.key].encode() not in (tmp_path / "run" / CRAWL_LEDGER_FILE).read_bytes()
