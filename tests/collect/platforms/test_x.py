"""X, asked through its client library."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from echo_hf.collect.crawl import crawl_posts
from echo_hf.collect.platforms.base import (
    Question,
    StaleCursorError,
    TimeWindow,
    UnanswerableError,
    read_posts,
)
from echo_hf.collect.platforms.x import XPlatform, choose_archive
from echo_hf.collect.sources.base import Post
from echo_hf.pipeline.run_folder import RunFolder
from tests.collect.platforms.conftest import ReplayServer, Reply
from tests.collect.platforms.crawling import searching
from tests.collect.sources.test_x import ADDRESS, page, post
from tests.progress_for_tests import Heard

RECENT, ALL = "/2/tweets/search/recent", "/2/tweets/search/all"
LOOKUP, COUNTS = "/2/tweets", "/2/tweets/counts/all"
DAY = datetime.timedelta(days=1)
START = datetime.datetime(2025, 3, 25, tzinfo=datetime.UTC)
NOW = datetime.datetime(2026, 3, 20, tzinfo=datetime.UTC)


def search(start: datetime.datetime = START, language: str | None = None) -> Question:
    return Question("search", ("4o image",), TimeWindow(start, start + DAY), language)


@pytest.fixture
def asked(server: ReplayServer, keys: dict[str, str]) -> ReplayServer:
    pytest.importorskip("tweepy", reason="needs tweepy: see `make test-extras`")
    server.gives(ALL)
    return server


@pytest.fixture
def x(asked: ReplayServer) -> Iterator[XPlatform]:
    with XPlatform(asked.url) as platform:
        yield platform


@pytest.mark.extras
def test_a_page_with_all_around_it_is_billed_as_the_price_list_says(
    x: XPlatform, asked: ReplayServer, test_data: Path
) -> None:
    page = json.loads((test_data / "posts" / "x_api_v2" / "noflat.jsonl").read_text())
    asked.gives(ALL, page)
    answer = x.ask(search())
    posts = len(page["data"]) + len(page["includes"]["tweets"])
    assert answer.posts == posts
    assert answer.cost_usd == pytest.approx(posts * 0.005 + len(page["includes"]["users"]) * 0.01)


ROOT = str((1_742_900_000_000 - 1_288_834_974_657) << 22)
SOON = datetime.datetime.now(datetime.UTC) - DAY / 2
WHOLE_DAY = {"start_time": "2025-03-25T00:00:00Z", "end_time": "2025-03-26T00:00:00Z"}


@pytest.mark.extras
@pytest.mark.parametrize(
    ("question", "place", "expected"),
    [
        (search(language="ja"), ALL, {"query": "4o image -is:retweet lang:ja", **WHOLE_DAY}),
        # Replies are the conversation from its beginning.
        (Question("replies", (ROOT,)), ALL,
         {"query": f"conversation_id:{ROOT}", "start_time": "2025-03-25T10:53:20Z"}),
        # A window that is not over has no end.
        (search(SOON), RECENT, {"query": "4o image -is:retweet"}),
    ],
    ids=["a search", "replies", "an open window"],
)  # fmt: skip
def test_a_question_is_asked_with_all_fields(
    question: Question, place: str, expected: dict[str, str], x: XPlatform, asked: ReplayServer
) -> None:
    asked.gives(place, {"meta": {"result_count": 0}})
    x.ask(question, "next-1")
    (query,) = asked.queries(place)
    whole = {"start_time": query["start_time"][0], **expected, "next_token": "next-1"}
    assert {name: one[0] for name, one in query.items() if "." not in name} == {
        **whole,
        "max_results": "100",
        "expansions": query["expansions"][0],
    }
    assert "note_tweet" in query["tweet.fields"][0]
    assert "alt_text" in query["media.fields"][0]


@pytest.mark.extras
def test_only_a_cursor_that_was_sent_can_be_stale(x: XPlatform, asked: ReplayServer) -> None:
    asked.gives(ALL, Reply({"errors": [{"parameters": {"next_token": ["q"]}}]}, 400))
    with pytest.raises(StaleCursorError):
        x.ask(search(), "q")
    with pytest.raises(UnanswerableError):
        x.ask(search())


@pytest.mark.extras
def test_a_count_adds_up_its_pages_and_ends(x: XPlatform, asked: ReplayServer) -> None:
    more = {"meta": {"total_tweet_count": 30, "next_token": "b"}}
    asked.gives(COUNTS, more, {"meta": {"total_tweet_count": 12}})
    assert x.estimate(search()) == 42
    assert asked.queries(COUNTS)[1]["next_token"] == ["b"]
    asked.replies[COUNTS] = [Reply(more)]
    with pytest.raises(ConnectionError, match="again and again"):
        x.estimate(search())


@pytest.mark.extras
def test_posts_are_looked_up_by_number(x: XPlatform, asked: ReplayServer) -> None:
    gone = {"resource_type": "tweet", "resource_id": "9", "title": "Not Found Error"}
    hidden = {**gone, "resource_id": "8", "title": "Authorization Error"}
    asked.gives(LOOKUP, {"data": [{"id": "7", "text": "a"}], "errors": [gone, hidden]})
    answer = x.ask(Question("posts", ("7", "8", "9")))
    missing = {ADDRESS(8): "protected", ADDRESS(9): "not_found"}
    assert asked.queries(LOOKUP)[0]["ids"] == ["7,8,9"]
    read = {post.url: post.missing for post in read_posts("x", answer.body)}
    assert read == {ADDRESS(7): None, **missing}
    assert x.gone([ADDRESS(7), ADDRESS(8), ADDRESS(9), "https://a.example/"]) == missing


def test_around_are_the_parents_by_hundreds_and_the_conversations_of_roots() -> None:
    replies = [Post(url=ADDRESS(1000 + n), parent_url=ADDRESS(n)) for n in range(1, 151)]
    roots = [Post(url=ADDRESS(5)), Post(url=ADDRESS(7), missing="deleted")]
    questions = XPlatform().around([*replies, *roots])
    assert questions == XPlatform().around([*roots, *reversed(replies)])
    assert [len(one.about) for one in questions if one.kind == "posts"] == [100, 50]
    assert sorted(int(n) for one in questions[:2] for n in one.about) == list(range(1, 151))
    assert questions[2:] == [Question("replies", ("5",)), Question("replies", ("7",))]


@pytest.mark.parametrize(("days", "archive", "longest"), [(6.9, "recent", 512), (7, "all", 1024)])
def test_what_is_older_than_a_week_is_in_the_archive(
    days: float, archive: str, longest: int
) -> None:
    question = search(NOW - days * DAY)
    assert choose_archive(question, "x" * longest, NOW) == archive
    with pytest.raises(UnanswerableError, match=str(longest)):
        choose_archive(question, "x" * (longest + 1), NOW)


QUOTE_AND_REPLY = ((9, {"quoted": "5"}), (6, {"replied_to": "5"}))


@pytest.mark.extras
def test_what_is_only_quoted_is_kept_and_its_replies_are_not_paid_for(
    asked: ReplayServer, tmp_path: Path
) -> None:
    known = {"public_metrics": {"reply_count": 0}}
    quoting, reply = ({**post(number, "gpt", **to), **known} for number, to in QUOTE_AND_REPLY)
    quoted = {**post(5, "gpt"), "public_metrics": {"reply_count": 9000}}
    first = {**page(quoting, includes={"tweets": [quoted]}), "meta": {}}
    asked.gives(ALL, first, *[{"data": [reply], "meta": {}}] * 2)
    folder = RunFolder(tmp_path / "crawled")
    (stats,) = crawl_posts(
        searching("x", "gpt"), folder, Heard(), make=lambda _: XPlatform(asked.url)
    )
    assert [query["query"][0] for query in asked.queries(ALL)] == ["gpt -is:retweet"]
    crawl_posts(searching("x", "gpt", days=2), folder, Heard(), make=lambda _: XPlatform(asked.url))
    after = [query["query"][0] for query in asked.queries(ALL)]
    assert (stats.by_terms, stats.by_replies) == (1, 1)
    assert after[1:] == ["gpt -is:retweet", "conversation_id:5"]
