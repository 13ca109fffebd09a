"""A server of Mastodon, asked through its client library."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest

from echo_hf.collect.platforms.base import Question, TimeWindow, read_posts
from echo_hf.collect.platforms.mastodon import MastodonPlatform
from echo_hf.collect.sources.base import Post
from echo_hf.errors import PlatformError
from tests.collect.platforms.conftest import ReplayServer, Reply
from tests.collect.sources.test_mastodon import ADDRESS, status

SEARCH, TAG = "/api/v2/search", "/api/v1/timelines/tag/fox"
STATUS = "/api/v1/statuses/{}".format
START = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
DAY = TimeWindow(START, START + datetime.timedelta(days=1))
QUESTION = Question("search", ("4o",), DAY)
NOT_FOUND = {"error": "Record not found"}


@pytest.fixture
def asked(server: ReplayServer, keys: dict[str, str]) -> ReplayServer:
    pytest.importorskip("mastodon", reason="needs Mastodon.py: see `make test-extras`")
    return server


@pytest.fixture
def mastodon(asked: ReplayServer) -> Iterator[MastodonPlatform]:
    with MastodonPlatform(asked.url) as platform:
        yield platform


@pytest.mark.extras
def test_a_search_covers_its_window_to_the_second_page_by_page(
    mastodon: MastodonPlatform, asked: ReplayServer
) -> None:
    asked.gives(SEARCH, {"statuses": [status(1)]}, {"statuses": []})
    first = mastodon.ask(QUESTION)
    second = mastodon.ask(QUESTION, first.cursor)
    queries = asked.queries(SEARCH)
    ends = [int(queries[0][name][0]) / 2**16 / 1000 for name in ("min_id", "max_id")]
    assert [datetime.datetime.fromtimestamp(end, datetime.UTC) for end in ends] == [
        START - datetime.timedelta(seconds=1),
        DAY.end,
    ]
    assert (first.cursor, second.cursor) == ("40", None)
    assert [query["offset"] for query in queries] == [["0"], ["40"]]


@pytest.mark.extras
def test_pages_of_a_hashtag_go_back_in_time(
    mastodon: MastodonPlatform, asked: ReplayServer
) -> None:
    link = {"Link": f'<{asked.url}{TAG}?max_id=7>; rel="next"'}
    asked.gives(TAG, Reply([status(7)], headers=link), [])
    question = Question("search", ("#fox",), DAY)
    first = mastodon.ask(question)
    second = mastodon.ask(question, first.cursor)
    assert (first.cursor, second.cursor) == ("7", None)
    assert asked.queries(TAG)[1]["max_id"] == ["7"]


@pytest.mark.extras
def test_a_thread_names_the_parent_of_each_reply(
    mastodon: MastodonPlatform, asked: ReplayServer
) -> None:
    below = [status(30, in_reply_to_id="20"), status(40, in_reply_to_id="30")]
    asked.gives(STATUS("20/context"), {"ancestors": [status(10)], "descendants": below})
    (question,) = mastodon.around([Post(url=ADDRESS(20), post_id="20")])
    answer = mastodon.ask(question)
    assert {post.url: post.parent_url for post in read_posts("mastodon", answer.body)} == {
        ADDRESS(10): None,
        ADDRESS(20): ADDRESS(10),
        ADDRESS(30): ADDRESS(20),
        ADDRESS(40): ADDRESS(30),
    }
    assert answer.posts == 3


@pytest.mark.extras
def test_a_post_that_is_gone_is_known_to_be(
    mastodon: MastodonPlatform, asked: ReplayServer
) -> None:
    for code in (404, 410):
        asked.replies[STATUS("20/context")] = [Reply(NOT_FOUND, code)]
        answer = mastodon.ask(Question("thread", (f"20 {ADDRESS(20000)}",)))
        (read,) = read_posts("mastodon", answer.body)
        assert (read.url, read.missing) == (ADDRESS(20000), "not_found")


@pytest.mark.extras
def test_only_posts_of_its_own_authors_are_refreshed(
    mastodon: MastodonPlatform, asked: ReplayServer
) -> None:
    own = [f"{asked.url}/users/mira/statuses/1000{n}" for n in range(4)]
    asked.gives(STATUS(10000), {**status(10000), "uri": own[0]})
    asked.gives(STATUS(10001), Reply(NOT_FOUND, 404))
    asked.gives(STATUS(10002), Reply({"error": "Gone"}, 410))
    asked.gives(STATUS(10003), {**status(10003), "uri": own[3], "visibility": "private"})
    other = "https://elsewhere.example/users/mira/statuses/10001"
    gone = mastodon.gone([*own, other])
    assert gone == {own[1]: "not_found", own[2]: "deleted", own[3]: "protected"}
    assert len(asked.asked) == 4
    assert [mastodon.can_tell(url) for url in (own[0], other)] == [True, False]


@pytest.mark.extras
@pytest.mark.parametrize(
    "given", ["http://mastodon.example", "mastodon.example", "https://a:b@mastodon.example", ""]
)
def test_only_a_safe_server_is_asked(
    given: str, asked: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASTODON_INSTANCE_URL", given)
    with pytest.raises(PlatformError, match="MASTODON_INSTANCE_URL") as trouble:
        MastodonPlatform().__enter__()
    assert "a:b" not in str(trouble.value)


@pytest.mark.extras
def test_a_token_that_is_the_name_of_a_file_is_no_file(
    asked: ReplayServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("from a file")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MASTODON_ACCESS_TOKEN", "token")
    asked.gives(SEARCH, {"statuses": []})
    with MastodonPlatform(asked.url) as platform:
        platform.ask(QUESTION)
    assert asked.asked[0].headers["authorization"] == "Bearer token"


def test_around_is_the_thread_of_each_that_the_server_has_a_number_for() -> None:
    known, foreign = Post(ADDRESS(12345), post_id="77"), Post("https://a.example/", post_id="²")
    assert MastodonPlatform().around([known, foreign, Post(ADDRESS(12345))]) == [
        Question("thread", (f"77 {ADDRESS(12345)}",))
    ]
