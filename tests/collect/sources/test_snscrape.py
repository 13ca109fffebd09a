"""Posts of X as command-line archiving tools write them, in both dialects."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from echo_hf.tables import POSTS

Json = dict[str, Any]
CollectLines = Callable[..., list[Json]]
ROOT = "1649191520250245121"
ADDRESS = "https://x.com/i/status/{}".format
NEWER: Json = {
    "id": 7,
    "id_str": "7",
    "url": "https://x.com/mira_draws/status/7",
    "date": "2026-03-02 17:12:40+00:00",
    "user": {"username": "mira_draws"},
    "lang": "en",
    "rawContent": "a &amp; b https://t.co/a https://t.co/p",
    "links": [{"url": "https://a.example/", "tcourl": "https://t.co/a"}],
    "media": {"photos": [{"url": "https://p.example/a", "altText": "a prompt"}], "videos": []},
    "likeCount": 3,
    "viewCount": 9,
    "retweetCount": 0,
    "replyCount": 2,
    "bookmarkedCount": 1,
    "inReplyToTweetIdStr": "6",
    "quotedTweet": None,
    "retweetedTweet": None,
}
OLDER: Json = {
    "_type": "snscrape.modules.twitter.Tweet",
    "url": "https://twitter.com/mira_draws/status/7",
    "date": "2026-03-02T17:12:40+00:00",
    "content": "a &amp; b https://t.co/a https://t.co/p",
    "id": 7,
    "user": {"username": "mira_draws"},
    "lang": "en",
    "links": [{"url": "https://a.example/", "tcourl": "https://t.co/a"}],
    "media": [
        {"fullUrl": "https://p.example/a", "altText": "a prompt"},
        {"thumbnailUrl": "https://p.example/v", "variants": []},
    ],
    "likeCount": 3,
    "viewCount": 9,
    "retweetCount": 0,
    "replyCount": 2,
    "bookmarkCount": 1,
    "inReplyToTweetId": 6,
}


@pytest.fixture
def real(test_data: Path) -> Path:
    path = test_data / "posts" / "x_thread_snscrape" / "thread.snscrape_style.jsonl"
    if not path.is_file():
        pytest.skip(f"no file {str(path)!r}")
    return path


def test_fields_of_the_real_conversation_are_those_of_the_raw_file(
    real: Path, collect_file: Callable[..., Any]
) -> None:
    raw = {post["id_str"]: post for post in map(json.loads, real.read_text().splitlines())}
    posts, _ = collect_file("snscrape", real)
    for post in posts:
        source = raw[post["post_id"]]
        assert post["author"] == source["user"]["username"]
        assert post["timestamp"].isoformat(" ") == source["date"]
        assert post["engagement"]["likes"] == source["likeCount"]
        assert post["engagement"]["views"] == source["viewCount"]
        assert [one["url"] for one in post["pictures"]] == [
            one["url"] for one in source["media"]["photos"]
        ]
        if "https://t.co/" not in source["rawContent"]:
            assert post["text"] == source["rawContent"]
        assert "https://t.co/" not in post["text"]


@pytest.mark.parametrize("record", [NEWER, OLDER], ids=["newer", "older"])
def test_both_dialects_are_the_same_post(record: Json, collect_lines: CollectLines) -> None:
    (row,) = collect_lines("snscrape", [json.dumps(record)], ["lumen"])

    assert {name: value for name, value in row.items() if name in POSTS.columns} == {
        "url": ADDRESS(7),
        "post_id": "7",
        "platform": "x",
        "author": "mira_draws",
        "text": "a & b https://a.example/",
        "timestamp": row["timestamp"],
        "lang": "en",
        "keywords": ["lumen"],
        "pictures": [{"sha256": None, "url": "https://p.example/a", "alt_text": "a prompt"}],
        "parent_url": ADDRESS(6),
        "quoted_url": None,
        "engagement": {"likes": 3, "views": 9, "reposts": 0, "replies": 2, "bookmarks": 1},
        "missing": None,
        "relevance": None,
    }
    assert row["timestamp"].isoformat() == "2026-03-02T17:12:40+00:00"


def test_a_last_link_stays_where_there_is_no_image(collect_lines: CollectLines) -> None:
    media: Json = {"photos": [], "videos": [], "animated": []}
    rows = collect_lines("snscrape", [json.dumps({**NEWER, "media": media})])

    assert rows[0]["text"] == "a & b https://a.example/ https://t.co/p"


def test_quoted_posts_are_posts_of_their_own(collect_lines: CollectLines) -> None:
    inner = {"id": 2, "rawContent": "b", "quotedTweet": {"id": 3}}
    line = json.dumps({"id": 1, "rawContent": "a", "quotedTweet": inner})
    rows = collect_lines("snscrape", [line], ["lumen"])
    names = ("post_id", "text", "keywords", "quoted_url", "parent_url", "missing")

    assert [tuple(row[name] for name in names) for row in rows] == [
        ("1", "a", ["lumen"], ADDRESS(2), None, None),
        ("2", "b", [], ADDRESS(3), None, None),
        ("3", None, [], None, None, "not_fetched"),
    ]


@pytest.mark.parametrize(
    ("change", "reason", "kept"),
    [
        ({"id_str": None, "id": None, "url": None}, "no_url", False),
        ({"id_str": "seven", "id": 7.5, "url": "x"}, "no_url", False),
        ({"date": "Monday"}, "bad_timestamp", True),
        ({"inReplyToTweetIdStr": None, "inReplyToTweetId": 1.6e18}, "bad_field", True),
        ({"user": "mira"}, "bad_field", True),
        ({"media": "a"}, "bad_field", True),
        ({"media": {"photos": [{"url": "file:///a"}]}}, "bad_field", True),
        ({"likeCount": "many"}, "bad_field", True),
        ({"quotedTweet": "a"}, "bad_field", True),
    ],
)
def test_what_is_wrong_is_said(
    change: Json, reason: str, kept: bool, collect_lines: CollectLines
) -> None:
    rows = collect_lines("snscrape", [json.dumps({**NEWER, **change})])

    assert [row["_reason"] for row in rows] == ([None] if kept else []) + [reason]


OURS: Json = {
    "url": "https://x.com/mira_draws/status/7",
    "author": "mira_draws",
    "text": "a prompt",
    "timestamp": "2026-03-02T17:12:40+00:00",
    "lang": "en",
}
OF_THE_API: Json = {"id": "7", "text": "a prompt", "created_at": "2026-03-02T17:12:40.000Z"}
OLD_API: Json = {"id": 7, "id_str": "7", "full_text": "a prompt", "user": {"screen_name": "mira"}}


@pytest.mark.parametrize(
    "record", [OURS, OF_THE_API, OLD_API, {"url": ADDRESS(7)}, {}], ids=lambda one: ",".join(one)
)
def test_posts_of_another_format_are_rejected(record: Json, collect_lines: CollectLines) -> None:
    (row,) = collect_lines("snscrape", [json.dumps(record)])

    assert (row["_status"], row["_reason"]) == ("rejected", "not_a_post")
    assert "expected rawContent or content" in row["_detail"]


@pytest.mark.parametrize(
    "record",
    [
        {"_type": "snscrape.modules.twitter.TweetRef", "id": 7},
        {"_type": "snscrape.modules.twitter.Tombstone", "id": 7, "text": "This Post was deleted"},
        {"id": 7},
        {"id_str": "7", "url": ADDRESS(7)},
    ],
    ids=["reference", "tombstone", "number", "address"],
)
def test_a_reference_alone_is_a_missing_post(record: Json, collect_lines: CollectLines) -> None:
    (row,) = collect_lines("snscrape", [json.dumps(record)])

    assert (row["url"], row["text"], row["missing"]) == (ADDRESS(7), None, "not_fetched")
