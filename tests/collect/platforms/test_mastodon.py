"""A server of Mastodon, asked through its client library, on recorded answers."""

from __future__ import annotations

import datetime
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from echo_hf.collect.platforms.access import read_posts
from echo_hf.collect.platforms.base import Question, RateLimitedError, TimeWindow, UnanswerableError
from echo_hf.collect.platforms.mastodon import Mastodon
from echo_hf.collect.sources.base import Post
from echo_hf.errors import PlatformError
from tests.collect.platforms.replaying import ReplayServer, Reply

SEARCH, TAG = "/api/v2/search", "/api/v1/timelines/tag/{}".format
STATUS = "/api/v1/statuses/{}".format
DAY = TimeWindow(
    datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC),
    datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC),
)


@pytest.fixture
def mastodon(server: ReplayServer, keys: dict[str, str]) -> Iterator[Mastodon]:
    """A server on loopback."""
    pytest.importorskip("mastodon", reason="needs Mastodon.py: see `make test-extras`")
    with Mastodon(server.url) as platform:
        yield platform


def interactions(path: Path, method: str = "GET") -> list[tuple[str, Reply]]:
    """Path and answer of the recorded requests of one kind."""
    recorded = yaml.safe_load(path.read_text())["interactions"]
    return [
        (
            urlsplit(one["request"]["uri"]).path,
            Reply(
                one["response"]["body"]["string"].encode(),
                headers={
                    name: values[0]
                    for name, values in one["response"]["headers"].items()
                    if name.startswith(("x-ratelimit", "link"))
                },
            ),
        )
        for one in recorded
        if one["request"]["method"] == method
    ]


def status(number: int, **fields: Any) -> dict[str, Any]:
    """A status, as a server gives it."""
    return {
        "id": str(number),
        "uri": f"https://mastodon.example/users/mira/statuses/{number}",
        "content": f"<p>{number}</p>",
        "visibility": "public",
        **fields,
    }


def said(trouble: pytest.ExceptionInfo[BaseException]) -> str:
    """The words of an error, which have to be one line without the key."""
    text = str(trouble.value)
    assert "\n" not in text
    assert "key-of-nobody" not in text
    return text


@pytest.mark.extras
def test_a_recorded_hashtag_comes_through_the_library_as_it_was(
    mastodon: Mastodon, server: ReplayServer, test_data: Path
) -> None:
    """The body is byte for byte what the server sent; its link says where older posts begin."""
    recorded = dict(interactions(test_data / "posts" / "mastodon" / "test_hashtag_tl.yaml"))
    server.gives(TAG("hoot"), recorded[TAG("hoot")])
    answer = mastodon.ask(Question("search", ("#hoot",), DAY))
    (read,) = read_posts("mastodon", answer.body)

    assert answer.body.encode() == recorded[TAG("hoot")].data
    assert read.text == "#hoot (hashtag toot)"
    assert f"max_id={answer.cursor}>" in recorded[TAG("hoot")].headers["link"]
    assert (answer.posts, answer.cost_usd) == (1, 0.0)


@pytest.mark.extras
def test_a_recorded_search_without_a_find_is_at_its_end(
    mastodon: Mastodon, server: ReplayServer, test_data: Path
) -> None:
    """No version is asked for before; an empty page has no next one."""
    *_, (path, reply) = interactions(test_data / "posts" / "mastodon" / "test_search.yaml")
    server.gives(path, reply)
    answer = mastodon.ask(Question("search", ("4o image",), DAY, "ja"))
    (query,) = server.queries(SEARCH)

    assert (answer.body.encode(), answer.cursor) == (reply.data, None)
    assert [request.path for request in server.asked] == [SEARCH]
    assert (query["q"], query["type"]) == (["4o image language:ja"], ["statuses"])
    assert "resolve" not in query


@pytest.mark.extras
def test_a_search_covers_its_window_to_the_second(mastodon: Mastodon, server: ReplayServer) -> None:
    """Numbers of posts are times; both ends are exclusive, so that it begins a second early."""
    server.gives(SEARCH, {"statuses": []})
    mastodon.ask(Question("search", ("4o",), DAY))
    (query,) = server.queries(SEARCH)
    start, end = (int(query[name][0]) / 2**16 / 1000 for name in ("min_id", "max_id"))

    assert datetime.datetime.fromtimestamp(start, datetime.UTC) == datetime.datetime(
        2026, 2, 28, 23, 59, 59, tzinfo=datetime.UTC
    )
    assert datetime.datetime.fromtimestamp(end, datetime.UTC) == DAY.end


@pytest.mark.extras
def test_pages_of_a_search_are_counted_on(mastodon: Mastodon, server: ReplayServer) -> None:
    """Each page says where the next begins, until one is empty."""
    server.gives(SEARCH, {"statuses": [status(1)]}, {"statuses": []})
    question = Question("search", ("4o",), DAY)
    first = mastodon.ask(question)
    second = mastodon.ask(question, first.cursor)

    assert (first.cursor, second.cursor) == ("40", None)
    assert [query["offset"] for query in server.queries(SEARCH)] == [["0"], ["40"]]


@pytest.mark.extras
def test_pages_of_a_hashtag_go_back_in_time(mastodon: Mastodon, server: ReplayServer) -> None:
    """The next page is what is older than the last post of this one."""
    link = {"Link": f'<{server.url}/api/v1/timelines/tag/fox?max_id=7>; rel="next"'}
    server.gives(TAG("fox"), Reply([status(7)], headers=link), [])
    question = Question("search", ("#fox",), DAY)
    first = mastodon.ask(question)
    second = mastodon.ask(question, first.cursor)

    assert (first.cursor, second.cursor) == ("7", None)
    assert server.queries(TAG("fox"))[1]["max_id"] == ["7"]


@pytest.mark.extras
def test_a_thread_names_the_parent_of_each_reply(mastodon: Mastodon, server: ReplayServer) -> None:
    """The answer does not hold the status that it stands around: it is put beside it."""
    server.gives(
        STATUS("20/context"),
        {
            "ancestors": [status(10)],
            "descendants": [status(30, in_reply_to_id="20"), status(40, in_reply_to_id="30")],
        },
    )
    (question,) = mastodon.around([Post(url=status(20)["uri"], post_id="20")])
    answer = mastodon.ask(question)
    parents = {post.url: post.parent_url for post in read_posts("mastodon", answer.body)}

    assert {int(url[-2:]): parent and int(parent[-2:]) for url, parent in parents.items()} == {
        10: None, 20: 10, 30: 20, 40: 30
    }  # fmt: skip
    assert answer.posts == 3


@pytest.mark.extras
def test_a_recorded_thread_without_replies_holds_nothing(
    mastodon: Mastodon, server: ReplayServer, test_data: Path
) -> None:
    """Its answer stands within what is kept, as it came."""
    ((path, reply),) = interactions(test_data / "posts" / "mastodon" / "test_status_context.yaml")
    server.gives(path, reply)
    answer = mastodon.ask(Question("thread", (f"{path.split('/')[-2]} https://m.example/@a/1",)))

    assert reply.data.decode() in answer.body
    assert read_posts("mastodon", answer.body) == []


@pytest.mark.extras
@pytest.mark.parametrize("code", [404, 410])
def test_a_post_that_is_gone_is_known_to_be(
    code: int, mastodon: Mastodon, server: ReplayServer
) -> None:
    """What stood around it can no longer be had."""
    server.gives(STATUS("20/context"), Reply({"error": "Record not found"}, code))
    answer = mastodon.ask(Question("thread", ("20 https://mastodon.example/@mira/20000",)))
    (read,) = read_posts("mastodon", answer.body)

    assert (read.url, read.missing) == ("https://mastodon.example/@mira/20000", "not_found")


@pytest.mark.extras
def test_only_posts_of_its_own_authors_are_refreshed(
    mastodon: Mastodon, server: ReplayServer
) -> None:
    """Another server's number means another post here."""
    own = [f"{server.url}/users/mira/statuses/1000{n}" for n in range(4)]
    server.gives(STATUS(10000), {**status(10000), "uri": own[0]})
    server.gives(STATUS(10001), Reply({"error": "Record not found"}, 404))
    server.gives(STATUS(10002), Reply({"error": "Gone"}, 410))
    server.gives(STATUS(10003), {**status(10003), "uri": own[3], "visibility": "private"})
    other = "https://elsewhere.example/users/mira/statuses/10001"
    gone = mastodon.gone([*own, other])

    assert gone == {own[1]: "not_found", own[2]: "deleted", own[3]: "protected"}
    assert len(server.asked) == 4
    assert [mastodon.can_tell(url) for url in (own[0], other)] == [True, False]


@pytest.mark.extras
@pytest.mark.parametrize(
    ("code", "body", "error", "words"),
    [
        (401, {"error": "The access token is invalid"}, PlatformError, "MASTODON_ACCESS_TOKEN"),
        (403, {"error": "no: mastodon-key-of-nobody"}, PlatformError, "[key]"),
        (422, {"error": "bad\nquery"}, UnanswerableError, "bad query"),
        (503, b"<html>", ConnectionError, "503"),
        (200, b"<html>", ConnectionError, "JSON"),
    ],
)
def test_troubles_are_told_by_what_helps(
    code: int,
    body: Any,
    error: type[Exception],
    words: str,
    mastodon: Mastodon,
    server: ReplayServer,
) -> None:
    """A refused key ends the crawl, a bad question is put aside, the rest is tried again."""
    server.gives(SEARCH, Reply(body, code))
    with pytest.raises(error) as trouble:
        mastodon.ask(Question("search", ("4o",), DAY))

    assert words in said(trouble)


@pytest.mark.extras
def test_a_limit_is_waited_for_as_told(mastodon: Mastodon, server: ReplayServer) -> None:
    """429 says when the next requests may come."""
    reset = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=100)
    headers = {"X-RateLimit-Reset": reset.isoformat(), "X-RateLimit-Remaining": "0"}
    server.gives(SEARCH, Reply({"error": "Throttled"}, 429, headers))
    with pytest.raises(RateLimitedError) as trouble:
        mastodon.ask(Question("search", ("4o",), DAY))

    assert 95 <= trouble.value.seconds <= 102


@pytest.mark.extras
def test_what_strangers_write_cannot_stop_the_library(
    mastodon: Mastodon, server: ReplayServer
) -> None:
    """It makes objects of what it is answered; ours to judge is the answer itself."""
    odd = status(1, created_at="yesterday", media_attachments=5, account=[], mentions="a")
    server.gives(SEARCH, {"statuses": [odd, 7, None], "accounts": "none"})

    assert mastodon.ask(Question("search", ("4o",), DAY)).posts == 3


@pytest.mark.extras
def test_no_key_is_shown(
    mastodon: Mastodon, server: ReplayServer, caplog: pytest.LogCaptureFixture
) -> None:
    """It is sent, and stands in no log and nothing that is printed."""
    server.gives(SEARCH, {"statuses": []})
    with caplog.at_level(logging.DEBUG):
        answer = mastodon.ask(Question("search", ("4o",), DAY))

    assert server.asked[0].headers["authorization"] == "Bearer mastodon-key-of-nobody"
    assert "key-of-nobody" not in caplog.text + repr(vars(mastodon)) + repr(answer)


@pytest.mark.extras
@pytest.mark.parametrize(
    "given", ["http://mastodon.example", "mastodon.example", "https://a:b@mastodon.example", ""]
)
def test_only_a_safe_server_is_asked(
    given: str, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment names it, with https."""
    pytest.importorskip("mastodon", reason="needs Mastodon.py: see `make test-extras`")
    monkeypatch.setenv("MASTODON_INSTANCE_URL", given)
    with pytest.raises(PlatformError, match="MASTODON_INSTANCE_URL") as trouble:
        Mastodon().__enter__()

    assert "a:b" not in said(trouble)


@pytest.mark.extras
def test_a_token_that_is_the_name_of_a_file_is_no_file(
    server: ReplayServer, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The library would read a token from it."""
    pytest.importorskip("mastodon", reason="needs Mastodon.py: see `make test-extras`")
    (tmp_path / "token").write_text("from a file")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MASTODON_ACCESS_TOKEN", "token")
    server.gives(SEARCH, {"statuses": []})
    with Mastodon(server.url) as platform:
        platform.ask(Question("search", ("4o",), DAY))

    assert server.asked[0].headers["authorization"] == "Bearer token"


def test_around_is_the_thread_of_each_that_the_server_has_a_number_for() -> None:
    """Number and address make one identifier; equal posts give equal questions."""
    url = "https://mastodon.example/users/mira/statuses/12345"
    posts = [
        Post(url=url, post_id="77"),
        Post(url="https://a.example/", post_id="²"),
        Post(url=url),
    ]

    assert Mastodon().around(posts) == [Question("thread", (f"77 {url}",))]
    assert json.loads(Mastodon().around(posts)[0].key)[1] == [f"77 {url}"]


@pytest.mark.extras
@pytest.mark.parametrize("body", [b"<html>", {}, {"error": "Unavailable"}, {"statuses": 5}, 5])
def test_what_is_no_answer_is_tried_again(
    body: Any, mastodon: Mastodon, server: ReplayServer
) -> None:
    """A window is not taken for empty because of a trouble that is told as a success."""
    for path in (SEARCH, TAG("fox"), STATUS("7/context")):
        server.gives(path, Reply(body))
    for question in (
        Question("search", ("fox",), DAY),
        Question("search", ("#fox",), DAY),
        Question("thread", ("7 https://mastodon.example/@mira/7",)),
    ):
        with pytest.raises(ConnectionError, match="answered"):
            mastodon.ask(question)


@pytest.mark.extras
def test_nobody_is_sent_elsewhere(mastodon: Mastodon, server: ReplayServer) -> None:
    """An answer that leads to another address, be it in the local network, is not followed."""
    server.gives(SEARCH, Reply(b"", 302, {"Location": f"{server.url}/inside"}))
    with pytest.raises(ConnectionError, match="302, which leads elsewhere"):
        mastodon.ask(Question("search", ("fox",), DAY))

    assert [request.path for request in server.asked] == [SEARCH]
