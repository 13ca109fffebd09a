"""Posts of X as command-line archiving tools write them, in both dialects."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.collect.conftest import Case, Json, Reads, Real

ADDRESS = "https://x.com/i/status/{}".format
SHARED: Json = {
    "id": 7,
    "user": {"username": "mira_draws"},
    "lang": "en",
    "links": [{"url": "https://a.example/", "tcourl": "https://t.co/a"}],
    "likeCount": 3,
    "viewCount": 9,
    "retweetCount": 0,
    "replyCount": 2,
}
TEXT = "a &amp; b https://t.co/a https://t.co/p"
NEWER: Json = {
    **SHARED,
    "id_str": "7",
    "url": "https://x.com/mira_draws/status/7",
    "date": "2026-03-02 17:12:40+00:00",
    "rawContent": TEXT,
    "media": {"photos": [{"url": "https://p.example/a", "altText": "a prompt"}], "videos": []},
    "bookmarkedCount": 1,
    "inReplyToTweetIdStr": "6",
    "quotedTweet": None,
    "retweetedTweet": None,
}
OLDER: Json = {
    **SHARED,
    "_type": "snscrape.modules.twitter.Tweet",
    "url": "https://twitter.com/mira_draws/status/7",
    "date": "2026-03-02T17:12:40+00:00",
    "content": TEXT,
    "media": [
        {"fullUrl": "https://p.example/a", "altText": "a prompt"},
        {"thumbnailUrl": "https://p.example/v", "variants": []},
    ],
    "bookmarkCount": 1,
    "inReplyToTweetId": 6,
}
WHOLE: Json = {
    "url": ADDRESS(7),
    "post_id": "7",
    "platform": "x",
    "author": "mira_draws",
    "text": "a & b https://a.example/",
    "timestamp": "2026-03-02T17:12:40+00:00",
    "lang": "en",
    "keywords": ["fox"],
    "pictures": [("https://p.example/a", "a prompt")],
    "parent_url": ADDRESS(6),
    "quoted_url": None,
    "engagement": {"likes": 3, "views": 9, "reposts": 0, "replies": 2, "bookmarks": 1},
    "missing": None,
    "relevance": None,
}
NO_MEDIA: Json = {**NEWER, "media": {"photos": [], "videos": [], "animated": []}}
NESTED = {"id": 2, "rawContent": "b", "quotedTweet": {"id": 3}}
LOST = {"7": {"url": ADDRESS(7), "text": None, "missing": "not_fetched"}}
TOMBSTONE = {"_type": "snscrape.modules.twitter.Tombstone", "id": 7, "text": "It was deleted"}
OURS: Json = {"url": "https://x.com/mira_draws/status/7", "author": "mira_draws", "text": "a fox"}


def spoiled(reason: str, **change: Any) -> Case:
    return {**NEWER, **change}, {} if reason == "no_url" else {"7": {}}, [reason]


CASES: dict[str, Case] = {
    "newer": (NEWER, {"7": WHOLE}, []),
    "older": (OLDER, {"7": WHOLE}, []),
    "a last link stays where there is no image": (
        NO_MEDIA,
        {"7": {"text": "a & b https://a.example/ https://t.co/p"}},
        [],
    ),
    "quoted posts are posts of their own": (
        {"id": 1, "rawContent": "a", "quotedTweet": NESTED},
        {
            "1": {"text": "a", "keywords": ["fox"], "quoted_url": ADDRESS(2), "missing": None},
            "2": {"text": "b", "keywords": [], "quoted_url": ADDRESS(3), "missing": None},
            "3": {"text": None, "keywords": [], "quoted_url": None, "missing": "not_fetched"},
        },
        [],
    ),
    "a repost": (
        {"id": 1, "rawContent": "RT", "retweetedTweet": {"id": 7, "rawContent": "a"}},
        {"7": {"text": "a", "keywords": []}},
        ["repost"],
    ),
    "a tombstone": (TOMBSTONE, LOST, []),
    "a number and an address": ({"id_str": "7", "url": ADDRESS(7)}, LOST, []),
    "no address": spoiled("no_url", id_str=None, id=None, url=None),
    "a rounded parent": spoiled("bad_field", inReplyToTweetIdStr=None, inReplyToTweetId=1.6e18),
    "our own format": (OURS, {}, ["not_a_post"]),
    "the API's": ({"id": "7", "text": "a", "created_at": "2026-03-02"}, {}, ["not_a_post"]),
}


@pytest.mark.parametrize(("document", "posts", "said"), CASES.values(), ids=CASES)
def test_a_line_is_read(document: Any, posts: Any, said: list[str], reads: Reads) -> None:
    reads("snscrape", document, posts, said)


def test_fields_of_the_real_conversation_are_those_of_the_raw_file(
    real: Real, collect_file: Callable[..., Any]
) -> None:
    file = real("x_thread_snscrape/thread.snscrape_style.jsonl")
    raw = {post["id_str"]: post for post in map(json.loads, file.read_text().splitlines())}
    posts, _ = collect_file("snscrape", file)
    assert posts
    for post in posts:
        source = raw[post["post_id"]]
        photos = [one["url"] for one in source["media"]["photos"]]
        assert post["author"] == source["user"]["username"]
        assert post["timestamp"].isoformat(" ") == source["date"]
        assert post["engagement"]["likes"] == source["likeCount"]
        assert post["engagement"]["views"] == source["viewCount"]
        assert [one["url"] for one in post["pictures"]] == photos
        assert "https://t.co/" not in post["text"]
        assert "https://t.co/" in source["rawContent"] or post["text"] == source["rawContent"]
