"""What holds of every platform that is asked: troubles, limits, keys, redirects."""

from __future__ import annotations

import datetime
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

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
from echo_hf.errors import PlatformError
from tests.collect.platforms.replaying import ReplayServer, Reply
from tests.collect.platforms.test_bluesky import BEGIN, session

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
