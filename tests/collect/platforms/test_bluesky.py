"""Bluesky, asked through its client library: its sessions, its cursors, its trees."""

from __future__ import annotations

import base64
import datetime
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.collect.platforms.base import Question, StaleCursorError, TimeWindow, read_posts
from echo_hf.collect.platforms.bluesky import BlueskyPlatform, SearchCursor, sort_time
from echo_hf.collect.sources.base import Post
from echo_hf.errors import PlatformError
from tests.collect.platforms.conftest import ReplayServer, Reply
from tests.collect.sources.test_bluesky import ADDRESS, URI, view

XRPC = "/xrpc/app.bsky.feed."
SEARCH, THREAD, POSTS = f"{XRPC}searchPosts", f"{XRPC}getPostThread", f"{XRPC}getPosts"
BEGIN, REFRESH = (f"/xrpc/com.atproto.server.{name}Session" for name in ("create", "refresh"))
START = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
DAY = TimeWindow(START, START + datetime.timedelta(days=1))
QUESTION = Question("search", ("4o image",), DAY, "ja")
NOON = "2026-03-01T12:00:00Z"


def token(name: str, seconds: float) -> str:
    parts = ({"alg": "none"}, {"exp": int(time.time() + seconds), "sub": name})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts)
    return ".".join([*(part.rstrip("=") for part in encoded), "c2ln"])


def session(name: str, seconds: float = 3600) -> dict[str, Any]:
    return {
        "did": "did:plc:abcdefghijklmnopqrstuvwx",
        "handle": "mira.example",
        "accessJwt": token(f"access-{name}", seconds),
        "refreshJwt": token(f"refresh-{name}", 3600),
    }


def post(key: Any, created: str = NOON, **fields: Any) -> dict[str, Any]:
    return view(key, str(key), indexedAt=created, **fields)


@pytest.fixture
def home(server: ReplayServer, keys: dict[str, str]) -> ReplayServer:
    pytest.importorskip("atproto", reason="needs atproto: see `make test-extras`")
    return server


@pytest.fixture
def bluesky(home: ReplayServer) -> Iterator[BlueskyPlatform]:
    home.gives(BEGIN, session("first"))
    with BlueskyPlatform(home.url) as platform:
        yield platform


@pytest.mark.extras
def test_a_search_goes_on_where_the_cursor_dries_up(
    bluesky: BlueskyPlatform, home: ReplayServer
) -> None:
    home.gives(
        SEARCH,
        {"posts": [post("e", "2026-03-01T20:00:00Z")], "cursor": "100"},
        {"posts": [post("d", "2026-03-01T18:00:00Z")]},
        # A date outside of the window says nothing of how far the search is.
        {"posts": [post("c", "2026-03-01T18:00:00Z"), post("x", "1970-01-01T00:00:00Z")]},
    )
    answers = [bluesky.ask(QUESTION)]
    while answers[-1].cursor is not None:
        answers.append(bluesky.ask(QUESTION, answers[-1].cursor))
    first, *others = home.queries(SEARCH)
    since = "2026-03-01T00:00:00.000Z"
    asked = {"q": "4o image", "sort": "latest", "since": since, "lang": "ja", "limit": "100"}
    last = "2026-03-02T00:00:00.000Z"
    found = [one.text for answer in answers for one in read_posts("bluesky", answer.body)]
    assert found == ["e", "d", "c", "x"]
    assert first == {name: [value] for name, value in {**asked, "until": last}.items()}
    assert [(one.get("cursor"), one["until"]) for one in others] == [
        (["100"], [last]),
        (None, ["2026-03-01T18:00:00.001Z"]),
    ]


@pytest.mark.extras
@pytest.mark.parametrize("status", [400, 401])
def test_a_session_that_has_ended_is_begun_anew_once(
    status: int, bluesky: BlueskyPlatform, home: ReplayServer
) -> None:
    ended = Reply({"error": "ExpiredToken", "message": "Token has expired"}, status)
    home.gives(SEARCH, ended, {"posts": [post("a")]})
    assert bluesky.ask(QUESTION).posts == 1
    assert [one.path for one in home.asked] == [BEGIN, SEARCH, BEGIN, SEARCH]


SERVICE = {
    "id": "#atproto_pds",
    "type": "AtprotoPersonalDataServer",
    "serviceEndpoint": "http://elsewhere.example",
}
ELSEWHERE = {"didDoc": {"id": session("first")["did"], "service": [SERVICE]}}


@pytest.mark.extras
@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, {"error": "AuthenticationRequired", "message": "Invalid password"}, "APP_PASSWORD"),
        (400, {"message": "no: bluesky-key-of-nobody"}, "no: [key]"),
        (200, {**session("first"), **ELSEWHERE}, "elsewhere.example/xrpc', expected an https"),
    ],
)
def test_an_account_that_cannot_be_used_ends_the_crawl(
    status: int, body: Any, words: str, home: ReplayServer
) -> None:
    home.gives(BEGIN, Reply(body, status))
    with pytest.raises(PlatformError) as trouble:
        BlueskyPlatform(home.url).__enter__()
    assert words in str(trouble.value)
    assert "\n" not in str(trouble.value)
    assert "key-of-nobody" not in str(trouble.value)


@pytest.mark.extras
@pytest.mark.parametrize("cursor", ["no JSON", "5", '{"cursor": "7"}'])
def test_a_cursor_that_is_not_known_begins_the_window_again(
    cursor: str, bluesky: BlueskyPlatform, home: ReplayServer
) -> None:
    home.gives(SEARCH, Reply({"error": "InvalidRequest", "message": "bad cursor"}, 400))
    with pytest.raises(StaleCursorError):
        bluesky.ask(QUESTION, cursor)


@pytest.mark.extras
def test_a_post_that_is_gone_is_known_to_be(bluesky: BlueskyPlatform, home: ReplayServer) -> None:
    home.gives(THREAD, Reply({"error": "NotFound", "message": f"Post not found: {URI('a')}"}, 400))
    (read,) = read_posts("bluesky", bluesky.ask(Question("thread", (URI("a"),))).body)
    hidden = post("b", labels=[{"val": "!no-unauthenticated", "src": "did:plc:mira"}])
    home.gives(POSTS, {"posts": [post("a"), hidden]})
    gone = bluesky.gone([ADDRESS("a"), ADDRESS("b"), ADDRESS("c"), "https://a.example/"])
    assert (read.url, read.missing) == (ADDRESS("a"), "not_found")
    assert home.queries(POSTS) == [{"uris": [URI("a"), URI("b"), URI("c")]}]
    assert gone == {ADDRESS("b"): "protected", ADDRESS("c"): "not_found"}


@pytest.mark.extras
def test_a_tree_deeper_than_the_library_reads_is_kept(
    bluesky: BlueskyPlatform, home: ReplayServer
) -> None:
    text = json.dumps({"post": post("200")})
    for number in range(199, -1, -1):
        text = json.dumps({"post": post(str(number))})[:-1] + f', "replies": [{text}]}}'
    home.gives(THREAD, Reply(f'{{"thread": {text}}}'.encode()))
    answer = bluesky.ask(Question("thread", (URI("0"),)))
    assert home.queries(THREAD) == [{"uri": [URI("0")], "depth": ["200"], "parentHeight": ["200"]}]
    assert answer.posts == 201
    assert {one.url for one in read_posts("bluesky", answer.body)} == set(map(ADDRESS, range(201)))


def test_around_is_the_tree_of_each_that_can_still_be_asked_for() -> None:
    missing = [Post(url=ADDRESS(why), missing=why) for why in ("deleted", "blocked", "not_found")]
    posts = [Post(url=ADDRESS("b")), Post(url=ADDRESS("a"), missing="protected"), *missing]
    assert BlueskyPlatform().around([*posts, Post(url="https://a.example/")]) == [
        Question("thread", (URI("a"),)),
        Question("thread", (URI("b"),)),
    ]


def at(minute: int) -> datetime.datetime:
    return START + datetime.timedelta(minutes=minute)


@given(st.sets(st.integers(0, 1439), max_size=60), st.integers(2, 7), st.integers(1, 3))
def test_a_search_that_dries_up_anywhere_finds_every_post(
    minutes: set[int], page: int, pages: int
) -> None:
    found: set[int] = set()
    place: SearchCursor | None = SearchCursor(until=DAY.end)
    asked = 0
    while place is not None and asked < 400:
        asked += 1
        until = place.until
        left = sorted((one for one in minutes if until is None or at(one) < until), reverse=True)
        first = int(place.cursor or 0)
        shown, last = left[first : first + page], first + page
        found |= set(shown)
        cursor = str(last) if last < min(len(left), page * pages) else None
        place = place.advance(cursor, map(at, shown), DAY)
    assert (place, found) == (None, minutes)


def test_the_time_of_a_post_is_the_earlier_one() -> None:
    early, late = "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"
    assert sort_time(late, early) == sort_time(early, late) == sort_time(early, None) == START
    assert sort_time("never", None) is None
