"""Bluesky, asked through its client library, on recorded answers and invented ones."""

from __future__ import annotations

import base64
import datetime
import json
import logging
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from echo_hf.collect.platforms.access import read_posts
from echo_hf.collect.platforms.base import (
    Question,
    RateLimitedError,
    StaleCursorError,
    TimeWindow,
    UnanswerableError,
)
from echo_hf.collect.platforms.bluesky import Bluesky
from echo_hf.collect.sources.base import Post
from echo_hf.errors import PlatformError
from tests.collect.platforms.replaying import ReplayServer, Reply

XRPC = "/xrpc/app.bsky.feed."
SEARCH, THREAD, POSTS = f"{XRPC}searchPosts", f"{XRPC}getPostThread", f"{XRPC}getPosts"
BEGIN, REFRESH = (f"/xrpc/com.atproto.server.{name}Session" for name in ("create", "refresh"))
URI = "at://did:plc:mira/app.bsky.feed.post/{}".format
ADDRESS = "https://bsky.app/profile/did:plc:mira/post/{}".format
DAY = TimeWindow(
    datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC),
    datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC),
)
QUESTION = Question("search", ("4o image",), DAY, "ja")


def token(name: str, seconds: float = 3600) -> str:
    """A token that ends after so many seconds."""
    parts = ({"alg": "none"}, {"exp": int(time.time() + seconds), "sub": name})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts)
    return ".".join([*(part.rstrip("=") for part in encoded), "c2ln"])


def session(name: str, seconds: float = 3600) -> dict[str, Any]:
    """What begins a session, or goes on with one."""
    return {
        "did": "did:plc:abcdefghijklmnopqrstuvwx",
        "handle": "mira.example",
        "accessJwt": token(f"access-{name}", seconds),
        "refreshJwt": token(f"refresh-{name}"),
    }


def post(key: str, created: str, seen: str | None = None) -> dict[str, Any]:
    """A post as a search gives it."""
    record = {"$type": "app.bsky.feed.post", "text": key, "createdAt": created}
    return {
        "uri": URI(key),
        "cid": "-",
        "author": {"did": "did:plc:mira", "handle": "mira.example"},
        "record": record,
        "indexedAt": seen or created,
    }


@pytest.fixture
def home(server: ReplayServer, keys: dict[str, str]) -> ReplayServer:
    """A server that lets Mira in."""
    pytest.importorskip("atproto", reason="needs atproto: see `make test-extras`")
    server.gives(BEGIN, session("first"))
    return server


@pytest.fixture
def bluesky(home: ReplayServer) -> Iterator[Bluesky]:
    """Bluesky on loopback, signed in."""
    with Bluesky(home.url) as platform:
        yield platform


def said(trouble: pytest.ExceptionInfo[BaseException]) -> str:
    """The words of an error, which have to be one line without the key."""
    text = str(trouble.value)
    assert "\n" not in text
    assert "key-of-nobody" not in text
    return text


@pytest.mark.extras
@pytest.mark.parametrize(
    "name", ["morpho_threadResponseMidThreadJson", "thread_view_post_with_embed_media"]
)
def test_a_recorded_tree_comes_through_the_library_as_it_was(
    name: str, bluesky: Bluesky, home: ReplayServer, test_data: Path
) -> None:
    """The body is what the server sent, and holds all posts of the tree."""
    data = (test_data / "posts" / "bluesky" / f"{name}.json").read_bytes()
    home.gives(THREAD, Reply(data))
    answer = bluesky.ask(Question("thread", (URI("a"),)))
    (query,) = home.queries(THREAD)

    assert answer.body.encode() == data
    assert query == {"uri": [URI("a")], "depth": ["1000"], "parentHeight": ["1000"]}
    # Each post of the tree or of a quote is said to be of an author.
    assert answer.posts == data.count(b'"author": {')


@pytest.mark.extras
def test_a_search_says_term_window_and_language(bluesky: Bluesky, home: ReplayServer) -> None:
    """What is sent is the plan's question, the latest first."""
    home.gives(SEARCH, {"posts": []})
    answer = bluesky.ask(QUESTION)

    assert home.queries(SEARCH) == [
        {
            "q": ["4o image"],
            "sort": ["latest"],
            "since": ["2026-03-01T00:00:00.000Z"],
            "until": ["2026-03-02T00:00:00.000Z"],
            "lang": ["ja"],
            "limit": ["100"],
        }
    ]
    assert (answer.cursor, answer.posts, answer.cost_usd) == (None, 0, 0.0)


@pytest.mark.extras
def test_a_search_goes_on_where_the_cursor_dries_up(bluesky: Bluesky, home: ReplayServer) -> None:
    """It asks for what is older than the oldest post seen, until nothing older comes."""
    home.gives(
        SEARCH,
        {"posts": [post("e", "2026-03-01T20:00:00Z")], "cursor": "100"},
        {"posts": [post("d", "2026-03-01T18:00:00Z")]},
        # A date outside of the window says nothing of how far the search is.
        {"posts": [post("c", "2026-03-01T18:00:00Z"), post("x", "1970-01-01T00:00:00Z")]},
    )
    found, cursor = [], None
    while True:
        answer = bluesky.ask(QUESTION, cursor)
        found += [one.text for one in read_posts("bluesky", answer.body)]
        cursor = answer.cursor
        if cursor is None:
            break
    queries = home.queries(SEARCH)

    assert found == ["e", "d", "c", "x"]
    assert [query.get("cursor") for query in queries] == [None, ["100"], None]
    assert [query["until"] for query in queries] == [
        ["2026-03-02T00:00:00.000Z"],
        ["2026-03-02T00:00:00.000Z"],
        ["2026-03-01T18:00:00.001Z"],
    ]


@pytest.mark.extras
def test_the_session_is_kept_in_a_private_file_and_used_again(
    home: ReplayServer, tmp_path: Path
) -> None:
    """Two runs sign in once; nobody but the user can read what lets them in."""
    home.gives(SEARCH, {"posts": []})
    for _ in range(2):
        with Bluesky(home.url) as platform:
            platform.ask(QUESTION)
    (file,) = (tmp_path / "cache").rglob("*.session")

    assert len([one for one in home.asked if one.path == BEGIN]) == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "key-of-nobody" not in file.read_text()


@pytest.mark.extras
@pytest.mark.parametrize("spoiled", ["", "a:::b", "a:::b:::c:::d:::https://e.example"])
def test_a_spoiled_session_is_begun_anew(spoiled: str, home: ReplayServer, tmp_path: Path) -> None:
    """Whatever stands in the file, the password helps."""
    home.gives(SEARCH, {"posts": []})
    with Bluesky(home.url) as platform:
        platform.ask(QUESTION)
    (file,) = (tmp_path / "cache").rglob("*.session")
    file.write_text(spoiled)
    with Bluesky(home.url) as platform:
        assert platform.ask(QUESTION).posts == 0

    assert len([one for one in home.asked if one.path == BEGIN]) == 2


@pytest.mark.extras
def test_a_file_that_others_can_read_is_no_session(home: ReplayServer, tmp_path: Path) -> None:
    """Somebody else may have written it."""
    home.gives(SEARCH, {"posts": []})
    with Bluesky(home.url) as platform:
        platform.ask(QUESTION)
    (file,) = (tmp_path / "cache").rglob("*.session")
    file.chmod(0o644)
    with Bluesky(home.url) as platform:
        platform.ask(QUESTION)

    assert len([one for one in home.asked if one.path == BEGIN]) == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.extras
def test_a_session_near_its_end_is_gone_on_with(server: ReplayServer, keys: dict[str, str]) -> None:
    """The library refreshes it with the refresh token, and the new one is kept."""
    pytest.importorskip("atproto", reason="needs atproto: see `make test-extras`")
    server.gives(BEGIN, session("first", seconds=60))
    server.gives(REFRESH, second := session("second"))
    server.gives(SEARCH, {"posts": []})
    for _ in range(2):
        with Bluesky(server.url) as platform:
            platform.ask(QUESTION)

    assert [one.path for one in server.asked] == [BEGIN, REFRESH, SEARCH, SEARCH]
    assert server.asked[-1].headers["authorization"] == f"Bearer {second['accessJwt']}"


@pytest.mark.extras
@pytest.mark.parametrize("status", [400, 401])
def test_a_session_that_has_ended_is_begun_anew_once(
    status: int, bluesky: Bluesky, home: ReplayServer
) -> None:
    """The question is asked again with the new session."""
    ended = Reply({"error": "ExpiredToken", "message": "Token has expired"}, status)
    home.gives(SEARCH, ended, {"posts": [post("a", "2026-03-01T20:00:00Z")]})

    assert bluesky.ask(QUESTION).posts == 1
    assert [one.path for one in home.asked] == [BEGIN, SEARCH, BEGIN, SEARCH]


@pytest.mark.extras
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, {"error": "AuthenticationRequired", "message": "Invalid identifier or password"}),
        (400, {"error": "InvalidRequest", "message": "no such account: bluesky-key-of-nobody"}),
        (401, {"error": "AuthFactorTokenRequired", "message": "A sign in code has been sent"}),
    ],
)
def test_a_refused_password_ends_the_crawl(
    status: int, body: Any, server: ReplayServer, keys: dict[str, str]
) -> None:
    """The message names the variable, and says what the platform said."""
    pytest.importorskip("atproto", reason="needs atproto: see `make test-extras`")
    server.gives(BEGIN, Reply(body, status))
    with pytest.raises(PlatformError) as trouble:
        Bluesky(server.url).__enter__()

    assert "BLUESKY_APP_PASSWORD" in said(trouble)
    assert body["error"] in said(trouble)


@pytest.mark.extras
def test_an_account_on_an_unsafe_server_is_refused(
    server: ReplayServer, keys: dict[str, str]
) -> None:
    """The session's key is sent nowhere but over https, and to the host that was named."""
    pytest.importorskip("atproto", reason="needs atproto: see `make test-extras`")
    service = {
        "id": "#atproto_pds",
        "type": "AtprotoPersonalDataServer",
        "serviceEndpoint": "http://elsewhere.example",
    }
    did = session("first")["did"]
    server.gives(BEGIN, {**session("first"), "didDoc": {"id": did, "service": [service]}})
    with pytest.raises(PlatformError, match=r"elsewhere\.example"):
        Bluesky(server.url).__enter__()


@pytest.mark.extras
@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (403, {"error": "Forbidden", "message": "a\nb"}, PlatformError, "a b"),
        (400, {"error": "InvalidRequest", "message": "bad q"}, UnanswerableError, "bad q"),
        (404, {"error": "XRPCNotSupported"}, UnanswerableError, "XRPCNotSupported"),
        (502, {"error": "UpstreamFailure"}, ConnectionError, "502"),
        (500, b"<html>", ConnectionError, "500"),
        (200, b"<html>", ConnectionError, "JSON"),
        (200, {"error": "UpstreamFailure"}, ConnectionError, "'posts' UpstreamFailure"),
    ],
)
def test_troubles_are_told_by_what_helps(
    status: int,
    body: Any,
    error: type[Exception],
    words: str,
    bluesky: Bluesky,
    home: ReplayServer,
) -> None:
    """A refusal ends the crawl, a bad question is put aside, the rest is tried again."""
    home.gives(SEARCH, Reply(body, status))
    with pytest.raises(error) as trouble:
        bluesky.ask(QUESTION)

    assert words in said(trouble)


@pytest.mark.extras
@pytest.mark.parametrize(
    "body", [b"<html>", b"", {}, {"error": "UpstreamFailure"}, [], {"posts": 1}]
)
def test_what_is_no_answer_loses_no_post(body: Any, bluesky: Bluesky, home: ReplayServer) -> None:
    """A tree is not taken for empty, and no post for deleted, because of somebody's proxy."""
    for path in (THREAD, POSTS):
        home.gives(path, Reply(body))
    for ask in (
        lambda: bluesky.ask(Question("thread", (URI("a"),))),
        lambda: bluesky.ask(Question("posts", (URI("a"),))),
        lambda: bluesky.gone([ADDRESS("a")]),
    ):
        with pytest.raises(ConnectionError, match="answered"):
            ask()


@pytest.mark.extras
def test_a_connection_that_breaks_within_an_answer_is_tried_again(
    bluesky: Bluesky, home: ReplayServer
) -> None:
    """Half an answer is a trouble of the network, not of the session."""
    home.gives(SEARCH, Reply(b"{", headers={"Content-Length": "999", "Connection": "close"}))
    with pytest.raises(ConnectionError, match="out of reach"):
        bluesky.ask(QUESTION)


@pytest.mark.extras
@pytest.mark.parametrize("body", [b"<html>", {}, {"accessJwt": 5, "refreshJwt": "a"}])
def test_a_session_that_is_none_is_no_sign_in(
    body: Any, server: ReplayServer, keys: dict[str, str]
) -> None:
    """It is tried again, as any answer that is none."""
    pytest.importorskip("atproto", reason="needs atproto: see `make test-extras`")
    server.gives(BEGIN, Reply(body))
    with pytest.raises(ConnectionError, match="answered"):
        Bluesky(server.url).__enter__()


@pytest.mark.extras
def test_a_limit_is_waited_for_as_told(bluesky: Bluesky, home: ReplayServer) -> None:
    """429 says when the next requests may come."""
    reset = {"ratelimit-reset": str(int(time.time()) + 100), "ratelimit-remaining": "0"}
    home.gives(SEARCH, Reply({"error": "RateLimitExceeded"}, 429, reset))
    with pytest.raises(RateLimitedError) as trouble:
        bluesky.ask(QUESTION)

    assert 95 <= trouble.value.seconds <= 102


@pytest.mark.extras
@pytest.mark.parametrize("cursor", ["no JSON", "[1]", "5", '{"cursor": "7"}'])
def test_a_cursor_that_is_not_known_begins_the_window_again(
    cursor: str, bluesky: Bluesky, home: ReplayServer
) -> None:
    """Be it that we cannot read it, or that the platform cannot."""
    home.gives(SEARCH, Reply({"error": "InvalidRequest", "message": "bad cursor"}, 400))
    with pytest.raises(StaleCursorError):
        bluesky.ask(QUESTION, cursor)


@pytest.mark.extras
def test_a_post_that_is_gone_is_known_to_be(bluesky: Bluesky, home: ReplayServer) -> None:
    """The tree of a deleted post is the post itself, missing."""
    home.gives(THREAD, Reply({"error": "NotFound", "message": f"Post not found: {URI('a')}"}, 400))
    (read,) = read_posts("bluesky", bluesky.ask(Question("thread", (URI("a"),))).body)

    assert (read.url, read.missing) == (ADDRESS("a"), "not_found")


@pytest.mark.extras
def test_what_is_gone_is_what_is_not_given_any_more(bluesky: Bluesky, home: ReplayServer) -> None:
    """And what its author shows to signed-in readers alone by now."""
    hidden = post("b", "2026-03-01T20:00:00Z")
    hidden["labels"] = [{"val": "!no-unauthenticated", "src": "did:plc:mira"}]
    home.gives(POSTS, {"posts": [post("a", "2026-03-01T20:00:00Z"), hidden]})
    gone = bluesky.gone([ADDRESS("a"), ADDRESS("b"), ADDRESS("c"), "https://a.example/"])

    assert home.queries(POSTS) == [{"uris": [URI("a"), URI("b"), URI("c")]}]
    assert gone == {ADDRESS("b"): "protected", ADDRESS("c"): "not_found"}


@pytest.mark.extras
def test_a_tree_deeper_than_the_library_reads_is_kept(bluesky: Bluesky, home: ReplayServer) -> None:
    """A thousand replies, each to the one before, are a thousand posts."""
    node: dict[str, Any] = {"post": post("999", "2026-03-01T20:00:00Z")}
    text = json.dumps(node)
    for number in range(998, -1, -1):
        head = json.dumps({"post": post(str(number), "2026-03-01T20:00:00Z")})[:-1]
        text = f'{head}, "replies": [{text}]}}'
    home.gives(THREAD, Reply(f'{{"thread": {text}}}'.encode()))
    answer = bluesky.ask(Question("thread", (URI("0"),)))

    assert answer.posts == 1000
    assert {one.url for one in read_posts("bluesky", answer.body)} == set(map(ADDRESS, range(1000)))


@pytest.mark.extras
def test_no_key_is_shown(home: ReplayServer, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the password nor what it was exchanged for is logged or printed."""
    home.gives(SEARCH, {"posts": []})
    with caplog.at_level(logging.DEBUG), Bluesky(home.url) as platform:
        answer = platform.ask(QUESTION)
        shown = caplog.text + repr(vars(platform)) + repr(answer)

    assert "key-of-nobody" not in shown
    assert home.asked[-1].headers["authorization"].removeprefix("Bearer ") not in shown


def test_around_is_the_tree_of_each_that_can_still_be_asked_for() -> None:
    """Of what is gone, nothing more can be had."""
    missing = [Post(url=ADDRESS(why), missing=why) for why in ("deleted", "blocked", "not_found")]
    posts = [Post(url=ADDRESS("b")), Post(url=ADDRESS("a"), missing="protected"), *missing]

    assert Bluesky().around([*posts, Post(url="https://a.example/")]) == [
        Question("thread", (URI("a"),)),
        Question("thread", (URI("b"),)),
    ]
