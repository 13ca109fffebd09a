"""Bluesky, asked through its client library, on recorded answers and invented ones."""

from __future__ import annotations

import base64
import datetime
import json
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.collect.platforms.access import read_posts
from echo_hf.collect.platforms.base import (
    Question,
    StaleCursorError,
    TimeWindow,
)
from echo_hf.collect.platforms.bluesky import Bluesky, SearchPlace, time_of
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
    parts = ({"alg": "none"}, {"exp": int(time.time() + seconds), "sub": name})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts)
    return ".".join([*(part.rstrip("=") for part in encoded), "c2ln"])


def session(name: str, seconds: float = 3600) -> dict[str, Any]:
    return {
        "did": "did:plc:abcdefghijklmnopqrstuvwx",
        "handle": "mira.example",
        "accessJwt": token(f"access-{name}", seconds),
        "refreshJwt": token(f"refresh-{name}"),
    }


def post(key: str, created: str, seen: str | None = None) -> dict[str, Any]:
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
    pytest.importorskip("atproto", reason="needs atproto: see `make test-extras`")
    server.gives(BEGIN, session("first"))
    return server


@pytest.fixture
def bluesky(home: ReplayServer) -> Iterator[Bluesky]:
    with Bluesky(home.url) as platform:
        yield platform


def said(trouble: pytest.ExceptionInfo[BaseException]) -> str:
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
    data = (test_data / "posts" / "bluesky" / f"{name}.json").read_bytes()
    home.gives(THREAD, Reply(data))
    answer = bluesky.ask(Question("thread", (URI("a"),)))
    (query,) = home.queries(THREAD)

    assert answer.body.encode() == data
    assert query == {"uri": [URI("a")], "depth": ["200"], "parentHeight": ["200"]}
    # Each post of the tree or of a quote is said to be of an author.
    assert answer.posts == data.count(b'"author": {')


@pytest.mark.extras
def test_a_search_says_term_window_and_language(bluesky: Bluesky, home: ReplayServer) -> None:
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
    "body", [b"<html>", b"", {}, {"error": "UpstreamFailure"}, [], {"posts": 1}]
)
def test_what_is_no_answer_loses_no_post(body: Any, bluesky: Bluesky, home: ReplayServer) -> None:
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
@pytest.mark.parametrize("cursor", ["no JSON", "[1]", "5", '{"cursor": "7"}'])
def test_a_cursor_that_is_not_known_begins_the_window_again(
    cursor: str, bluesky: Bluesky, home: ReplayServer
) -> None:
    home.gives(SEARCH, Reply({"error": "InvalidRequest", "message": "bad cursor"}, 400))
    with pytest.raises(StaleCursorError):
        bluesky.ask(QUESTION, cursor)


@pytest.mark.extras
def test_a_post_that_is_gone_is_known_to_be(bluesky: Bluesky, home: ReplayServer) -> None:
    home.gives(THREAD, Reply({"error": "NotFound", "message": f"Post not found: {URI('a')}"}, 400))
    (read,) = read_posts("bluesky", bluesky.ask(Question("thread", (URI("a"),))).body)

    assert (read.url, read.missing) == (ADDRESS("a"), "not_found")


@pytest.mark.extras
def test_what_is_gone_is_what_is_not_given_any_more(bluesky: Bluesky, home: ReplayServer) -> None:
    hidden = post("b", "2026-03-01T20:00:00Z")
    hidden["labels"] = [{"val": "!no-unauthenticated", "src": "did:plc:mira"}]
    home.gives(POSTS, {"posts": [post("a", "2026-03-01T20:00:00Z"), hidden]})
    gone = bluesky.gone([ADDRESS("a"), ADDRESS("b"), ADDRESS("c"), "https://a.example/"])

    assert home.queries(POSTS) == [{"uris": [URI("a"), URI("b"), URI("c")]}]
    assert gone == {ADDRESS("b"): "protected", ADDRESS("c"): "not_found"}


@pytest.mark.extras
def test_a_tree_deeper_than_the_library_reads_is_kept(bluesky: Bluesky, home: ReplayServer) -> None:
    node: dict[str, Any] = {"post": post("200", "2026-03-01T20:00:00Z")}
    text = json.dumps(node)
    for number in range(199, -1, -1):
        head = json.dumps({"post": post(str(number), "2026-03-01T20:00:00Z")})[:-1]
        text = f'{head}, "replies": [{text}]}}'
    home.gives(THREAD, Reply(f'{{"thread": {text}}}'.encode()))
    answer = bluesky.ask(Question("thread", (URI("0"),)))

    assert answer.posts == 201
    assert {one.url for one in read_posts("bluesky", answer.body)} == set(map(ADDRESS, range(201)))


def test_around_is_the_tree_of_each_that_can_still_be_asked_for() -> None:
    missing = [Post(url=ADDRESS(why), missing=why) for why in ("deleted", "blocked", "not_found")]
    posts = [Post(url=ADDRESS("b")), Post(url=ADDRESS("a"), missing="protected"), *missing]

    assert Bluesky().around([*posts, Post(url="https://a.example/")]) == [
        Question("thread", (URI("a"),)),
        Question("thread", (URI("b"),)),
    ]


START = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
WHOLE_DAY = TimeWindow(START, START + datetime.timedelta(days=1))


def at(minute: int) -> datetime.datetime:
    return START + datetime.timedelta(minutes=minute)


@given(st.sets(st.integers(0, 1439), max_size=60), st.integers(2, 7), st.integers(1, 3))
def test_a_search_that_dries_up_anywhere_finds_every_post(
    minutes: set[int], page: int, pages: int
) -> None:
    found: set[int] = set()
    place = SearchPlace.read(None, WHOLE_DAY)
    for _ in range(400):
        until = place.until
        left = sorted((one for one in minutes if until is None or at(one) < until), reverse=True)
        first = int(place.theirs or 0)
        shown, last = left[first : first + page], first + page
        found |= set(shown)
        theirs = str(last) if last < min(len(left), page * pages) else None
        after = place.next(theirs, map(at, shown), WHOLE_DAY)
        if after is None:
            break
        place = SearchPlace.read(after.written(), WHOLE_DAY)
    else:
        pytest.fail("it never ends")

    assert found == minutes


def test_the_time_of_a_post_is_the_earlier_one() -> None:
    early, late = "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"

    assert time_of(late, early) == time_of(early, late) == time_of(early, None) == START
    assert time_of("never", None) is None
