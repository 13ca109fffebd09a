"""A server of Mastodon, asked through its client library, on recorded answers."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from echo_hf.collect.platforms.access import read_posts
from echo_hf.collect.platforms.base import Question, TimeWindow
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
    pytest.importorskip("mastodon", reason="needs Mastodon.py: see `make test-extras`")
    with Mastodon(server.url) as platform:
        yield platform


def interactions(path: Path, method: str = "GET") -> list[tuple[str, Reply]]:
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
    return {
        "id": str(number),
        "uri": f"https://mastodon.example/users/mira/statuses/{number}",
        "content": f"<p>{number}</p>",
        "visibility": "public",
        **fields,
    }


def said(trouble: pytest.ExceptionInfo[BaseException]) -> str:
    text = str(trouble.value)
    assert "\n" not in text
    assert "key-of-nobody" not in text
    return text


@pytest.mark.extras
def test_a_recorded_hashtag_comes_through_the_library_as_it_was(
    mastodon: Mastodon, server: ReplayServer, test_data: Path
) -> None:
    recorded = dict(interactions(test_data / "posts" / "mastodon" / "test_hashtag_tl.yaml"))
    server.gives(TAG("hoot"), recorded[TAG("hoot")])
    answer = mastodon.ask(Question("search", ("#hoot",), DAY))
    (read,) = read_posts("mastodon", answer.body)

    assert answer.body.encode() == recorded[TAG("hoot")].data
    assert read.text == "#hoot (hashtag toot)"
    assert f"max_id={answer.cursor}>" in recorded[TAG("hoot")].headers["link"]
    assert (answer.posts, answer.cost_usd) == (1, 0.0)


@pytest.mark.extras
def test_a_search_covers_its_window_to_the_second(mastodon: Mastodon, server: ReplayServer) -> None:
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
    server.gives(SEARCH, {"statuses": [status(1)]}, {"statuses": []})
    question = Question("search", ("4o",), DAY)
    first = mastodon.ask(question)
    second = mastodon.ask(question, first.cursor)

    assert (first.cursor, second.cursor) == ("40", None)
    assert [query["offset"] for query in server.queries(SEARCH)] == [["0"], ["40"]]


@pytest.mark.extras
def test_pages_of_a_hashtag_go_back_in_time(mastodon: Mastodon, server: ReplayServer) -> None:
    link = {"Link": f'<{server.url}/api/v1/timelines/tag/fox?max_id=7>; rel="next"'}
    server.gives(TAG("fox"), Reply([status(7)], headers=link), [])
    question = Question("search", ("#fox",), DAY)
    first = mastodon.ask(question)
    second = mastodon.ask(question, first.cursor)

    assert (first.cursor, second.cursor) == ("7", None)
    assert server.queries(TAG("fox"))[1]["max_id"] == ["7"]


@pytest.mark.extras
def test_a_thread_names_the_parent_of_each_reply(mastodon: Mastodon, server: ReplayServer) -> None:
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
@pytest.mark.parametrize("code", [404, 410])
def test_a_post_that_is_gone_is_known_to_be(
    code: int, mastodon: Mastodon, server: ReplayServer
) -> None:
    server.gives(STATUS("20/context"), Reply({"error": "Record not found"}, code))
    answer = mastodon.ask(Question("thread", ("20 https://mastodon.example/@mira/20000",)))
    (read,) = read_posts("mastodon", answer.body)

    assert (read.url, read.missing) == ("https://mastodon.example/@mira/20000", "not_found")


@pytest.mark.extras
def test_only_posts_of_its_own_authors_are_refreshed(
    mastodon: Mastodon, server: ReplayServer
) -> None:
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
    "given", ["http://mastodon.example", "mastodon.example", "https://a:b@mastodon.example", ""]
)
def test_only_a_safe_server_is_asked(
    given: str, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mastodon", reason="needs Mastodon.py: see `make test-extras`")
    monkeypatch.setenv("MASTODON_INSTANCE_URL", given)
    with pytest.raises(PlatformError, match="MASTODON_INSTANCE_URL") as trouble:
        Mastodon().__enter__()

    assert "a:b" not in said(trouble)


@pytest.mark.extras
def test_a_token_that_is_the_name_of_a_file_is_no_file(
    server: ReplayServer, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("mastodon", reason="needs Mastodon.py: see `make test-extras`")
    (tmp_path / "token").write_text("from a file")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MASTODON_ACCESS_TOKEN", "token")
    server.gives(SEARCH, {"statuses": []})
    with Mastodon(server.url) as platform:
        platform.ask(Question("search", ("4o",), DAY))

    assert server.asked[0].headers["authorization"] == "Bearer token"


def test_around_is_the_thread_of_each_that_the_server_has_a_number_for() -> None:
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
    for path in (SEARCH, TAG("fox"), STATUS("7/context")):
        server.gives(path, Reply(body))
    for question in (
        Question("search", ("fox",), DAY),
        Question("search", ("#fox",), DAY),
        Question("thread", ("7 https://mastodon.example/@mira/7",)),
    ):
        with pytest.raises(ConnectionError, match="answered"):
            mastodon.ask(question)
