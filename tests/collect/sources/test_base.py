"""What holds for every source: found by name, total, and unmoved by hostile records."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.collect.collect import Collect
from echo_hf.collect.sources.base import json_documents, make_source, numbered_lines, source_names
from echo_hf.reasons import Notice, Reject

SOURCES = [
    "bluesky",
    "discord",
    "hackernews",
    "jsonl",
    "mastodon",
    "quickstart",
    "reddit",
    "snscrape",
    "table",
    "x",
]
# Every name that some reader looks at, and values that it gives a meaning to.
NAMES = [
    "url",
    "id",
    "id_str",
    "text",
    "note_tweet",
    "note_post",
    "entities",
    "urls",
    "expanded_url",
    "media_key",
    "attachments",
    "media_keys",
    "media",
    "type",
    "photos",
    "fullUrl",
    "altText",
    "alt_text",
    "path",
    "pictures",
    "engagement",
    "likes",
    "keywords",
    "timestamp",
    "created_at",
    "date",
    "missing",
    "author",
    "username",
    "user",
    "author_id",
    "referenced_tweets",
    "referenced_posts",
    "retweetedTweet",
    "quotedTweet",
    "rawContent",
    "content",
    "links",
    "tcourl",
    "inReplyToTweetId",
    "inReplyToTweetIdStr",
    "public_metrics",
    "like_count",
    "likeCount",
    "data",
    "includes",
    "tweets",
    "posts",
    "users",
    "errors",
    "meta",
    "resource_type",
    "resource_id",
    "value",
    "title",
    "detail",
    "__twarc",
    "query",
    "_missing",
    "_included",
    "_findings",
    "edit_history_tweet_ids",
    "parent_url",
    "quoted_url",
    "lang",
    "post_id",
    "platform",
    "kind",
    "name",
    "children",
    "replies",
    "body",
    "selftext",
    "link_id",
    "parent_id",
    "permalink",
    "crosspost_parent",
    "created_utc",
    "removed_by_category",
    "gallery_data",
    "items",
    "media_id",
    "media_metadata",
    "s",
    "u",
    "e",
    "preview",
    "images",
    "source",
    "hits",
    "objectID",
    "comment_text",
    "story_text",
    "_tags",
    "_query",
    "points",
    "messages",
    "guild",
    "channel",
    "_server",
    "_channel",
    "reference",
    "messageId",
    "fileName",
]
TELLING = [
    "1",
    "99",
    "photo",
    "retweeted",
    "quoted",
    "replied_to",
    "tweet",
    "\ud83d",
    "\x00",
    "https://x.com/m/status/1",
    "https://t.co/a",
    "https://[",
    "&#" + "9" * 5000 + ";",
    "javascript:alert(1)",
    "../x.png",
    "/etc/passwd",
    "2026-03-02T17:12:40Z",
    "t1_a",
    "t3_a",
    "t1",
    "t3",
    "more",
    "Listing",
    "story",
    "comment",
    "Reply",
]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(0, 3)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(TELLING)
)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=25,
)
PAGE: dict[str, Any] = {
    "data": [
        {
            "id": "1",
            "author_id": "7",
            "text": "look https://t.co/a",
            "note_tweet": {"text": "look", "entities": {"urls": [{"url": "https://t.co/a"}]}},
            "entities": {"urls": [{"url": "https://t.co/a", "expanded_url": "https://a.example"}]},
            "attachments": {"media_keys": ["m"]},
            "referenced_tweets": [{"type": "replied_to", "id": "2"}, {"type": "quoted", "id": "3"}],
            "public_metrics": {"like_count": 1},
            "created_at": "2026-03-02T17:12:40Z",
        }
    ],
    "includes": {
        "users": [{"id": "7", "username": "mira_draws"}],
        "tweets": [{"id": "2", "text": "a"}, {"id": "4", "text": "b"}],
        "media": [{"media_key": "m", "type": "photo", "url": "https://p.example/a.png"}],
    },
    "errors": [{"resource_type": "tweet", "resource_id": "3", "title": "Not Found Error"}],
    "__twarc": {"url": "https://api.example/?query=lumen"},
}
LINE: dict[str, Any] = {
    "url": "https://x.com/mira_draws/status/1",
    "id": 1,
    "text": "a",
    "rawContent": "a https://t.co/b",
    "user": {"username": "mira_draws"},
    "date": "2026-03-02 17:12:40+00:00",
    "timestamp": "2026-03-02T17:12:40Z",
    "links": [{"url": "https://a.example", "tcourl": "https://t.co/b"}],
    "media": {"photos": [{"url": "https://p.example/a.png", "altText": "a"}]},
    "pictures": [{"path": "none.png", "url": "https://p.example/a.png", "alt_text": "a"}],
    "keywords": ["lumen"],
    "engagement": {"likes": 1},
    "quotedTweet": {"id": 2, "rawContent": "b", "quotedTweet": {"id": 3, "retweetedTweet": {}}},
    "retweetedTweet": None,
    "inReplyToTweetId": 9,
    "missing": None,
}
THING: dict[str, Any] = {
    "kind": "t3",
    "data": {
        "id": "a",
        "title": "b",
        "selftext": "c",
        "created_utc": 1.5,
        "author": "mira_draws",
        "url": "https://p.example/a.png",
        "gallery_data": {"items": [{"media_id": "m", "caption": "a"}]},
        "media_metadata": {"m": {"e": "Image", "s": {"u": "https://p.example/a.png"}}},
        "preview": {"images": [{"source": {"url": "https://p.example/a.png"}}]},
        "crosspost_parent": "t3_b",
        "comments": [{"id": "c", "body": "d", "link_id": "t3_a", "parent_id": "t3_a"}],
    },
}
ITEM: dict[str, Any] = {
    "id": 1,
    "type": "story",
    "title": "a",
    "author": "mira_draws",
    "points": 1,
    "created_at": "2026-03-02T17:12:40Z",
    "children": [{"id": 2, "type": "comment", "text": "<p>b", "parent_id": 1, "children": []}],
}
EXPORT: dict[str, Any] = {
    "guild": {"id": "1"},
    "channel": {"id": "2"},
    "messages": [
        {
            "id": "3",
            "type": "Reply",
            "content": "a",
            "author": {"name": "mira_draws"},
            "attachments": [{"url": "https://p.example/a.png", "fileName": "a.png"}],
            "reference": {"messageId": "4"},
        }
    ],
}


def places(value: Any) -> list[tuple[Any, ...]]:
    """The path to each node of a JSON value."""
    found: list[tuple[Any, ...]] = [()]
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    for key, child in inner:
        found.extend((key, *path) for path in places(child))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A JSON value with another value in one place."""
    if not path:
        return new
    if isinstance(value, dict):
        return {**value, path[0]: replaced(value[path[0]], path[1:], new)}
    changed = list(value)
    changed[path[0]] = replaced(value[path[0]], path[1:], new)
    return changed


SPOILED = st.one_of(
    *(
        st.tuples(st.just(whole), st.sampled_from(places(whole)), JSON).map(
            lambda parts: replaced(*parts)
        )
        for whole in (PAGE, PAGE["data"][0], LINE, THING, ITEM, EXPORT)
    )
)


@pytest.mark.parametrize("source", SOURCES)
@given(lines=st.lists(JSON | SPOILED, max_size=3), keywords=st.lists(st.just("lumen"), max_size=1))
def test_no_record_breaks_a_source_and_none_is_lost(
    collect: Collect,
    record_table: Callable[..., pa.Table],
    source: str,
    lines: list[Any],
    keywords: list[str],
) -> None:
    """Any JSON at all gives at least one output row a record, each with a reason or an address."""
    table = record_table(source, [json.dumps(line) for line in lines], keywords)
    rows = collect(table).to_pylist()

    assert {place for row in rows for place in row["_parent"]} == set(table["place"].to_pylist())
    for row in rows:
        if row["_status"] == "kept":
            assert row["url"].startswith(("https://", "http://"))
            for image in row["pictures"]:
                assert (image["url"] or "http").startswith("http")
        else:
            assert row["_reason"] in [*Reject, *Notice]
            assert row["_detail"]


@pytest.mark.parametrize("source", SOURCES)
@given(text=st.text())
def test_no_line_breaks_a_source(
    collect: Collect, record_table: Callable[..., pa.Table], source: str, text: str
) -> None:
    """Any text at all is a record, or blank."""
    clean = text.encode("utf-8", "replace").decode()
    table = record_table(source, [clean])

    assert table.num_rows == (1 if clean.strip().removeprefix("\ufeff") else 0)
    assert collect(table).num_rows >= table.num_rows


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("depth", [100, 480, 700, 900, 985, 995, 5000])
@pytest.mark.parametrize("around", ['{"data": [%s], "meta": 1}', '{"id": "1", "url": %s}', "%s"])
def test_depth_breaks_no_source(
    collect: Collect, record_table: Callable[..., pa.Table], source: str, depth: int, around: str
) -> None:
    """A record nested as deep as the decoder goes, or deeper, is told like any other bad one."""
    deep = around % ('{"quotedTweet":' * depth + '{"id": "1"}' + "}" * depth)
    table = record_table(source, [deep])
    parents = {place for row in collect(table).to_pylist() for place in row["_parent"]}

    assert parents == set(table["place"].to_pylist()) != set()


def test_sources_are_found_by_name() -> None:
    """The names that a config may use."""
    assert set(SOURCES) <= set(source_names())
    for name in SOURCES:
        assert hasattr(make_source(name), "posts")


def test_lines_are_numbered_from_one_and_blank_ones_left_out() -> None:
    """The number is that of the line in the file."""
    lines = ["a\n", "\n", " b \r\n", "\ufeff\n", "\ufeffc"]

    assert list(numbered_lines(lines)) == [(":1", "a"), (":3", "b"), (":5", "c")]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], []),
        (["1", "2"], [(":1", "1"), (":2", "2")]),
        (["", "{", '"a": 1', "}"], [(":2", '{\n"a": 1\n}')]),
        (["[", "1,", "", "2]"], [(":1", "[\n1,\n2]")]),
        (["{", "2"], [(":1", "{"), (":2", "2")]),
        (["1", "{", "3"], [(":1", "1"), (":2", "{"), (":3", "3")]),
    ],
)
def test_a_file_is_lines_or_one_document(lines: list[str], expected: list[tuple[str, str]]) -> None:
    """A pretty-printed file is one document; one spoiled line makes no file of lines one."""
    assert list(json_documents(lines)) == expected
