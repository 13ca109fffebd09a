"""Posts of X: pages of its API as they come, the flattened form, and lines of archiving tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.collect.conftest import Case, CollectLines, Json, Reads, Real

ADDRESS = "https://x.com/i/status/{}".format
NEW_NAMES = {
    "referenced_tweets": "referenced_posts",
    "note_tweet": "note_post",
    "edit_history_tweet_ids": "edit_history_post_ids",
}
MEDIA = [
    {"media_key": "b", "type": "photo", "url": "https://p.example/b", "alt_text": "a prompt"},
    {"media_key": "a", "type": "photo", "url": "https://p.example/a"},
    {"media_key": "v", "type": "video", "url": "https://p.example/v"},
    {"media_key": "j", "type": "photo", "url": "javascript:alert(1)"},
]


def page(*data: Any, **rest: Any) -> Json:
    return {"data": list(data), **rest, "meta": {"result_count": len(data)}}


def post(number: int, text: str | None = None, **references: Any) -> Json:
    linked = [{"type": kind, "id": name} for kind, name in references.items()]
    return {"id": str(number), "text": text or f"post {number}", "referenced_tweets": linked}


def quoting(number: int, inner: Json) -> Json:
    return {"type": "quoted", **post(number), "referenced_tweets": [inner]}


def lost(missing: str, **error: Any) -> Case:
    named = {"resource_type": "post", "resource_id": "9", **error}
    gone = {"missing": missing, "text": None, "keywords": []}
    return page(post(1), errors=[{**named, "resource_type": "tweet"}]), {"1": {}, "9": gone}, []


CASES: dict[str, Case] = {
    "posts that came along carry no keyword": (
        page(
            post(1, replied_to="2"),
            includes={"tweets": [post(2), post(3)]},
            __twarc={"url": "https://api.example/search?max=9&query=lumen%20image"},
        ),
        {
            "1": {"keywords": ["fox", "lumen image"], "parent_url": ADDRESS(2)},
            "2": {"keywords": []},
            "3": {"keywords": []},
        },
        [],
    ),
    "a pure repost is rejected, and the original is there": (
        page(
            post(1, retweeted="2"),
            includes={
                "tweets": [{**post(2, "the original"), "author_id": "7"}],
                "users": [{"id": 7, "username": "mira_draws"}],
            },
        ),
        {"2": {"text": "the original", "author": "mira_draws"}},
        ["#0 repost"],
    ),
    "a quote is a post, a quoted repost is none": (
        page(post(1, quoted="2"), includes={"tweets": [post(2, retweeted="3"), post(3)]}),
        {"1": {"quoted_url": ADDRESS(2), "parent_url": None}, "3": {}},
        ["#0 repost"],
    ),
    "a quote within a quote is a post": (
        quoting(3, quoting(2, {"type": "quoted", **post(1)})),
        {
            "3": {"quoted_url": ADDRESS(2)},
            "2": {"quoted_url": ADDRESS(1)},
            "1": {"quoted_url": None},
        },
        [],
    ),
    "images are photos with their descriptions": (
        page(
            {**post(1), "attachments": {"media_keys": ["a", "b", "v", "j", "unknown"]}},
            includes={"media": MEDIA},
        ),
        {"1": {"pictures": [("https://p.example/a", None), ("https://p.example/b", "a prompt")]}},
        ["#0 bad_field"],
    ),
    "an answer that is an error": (
        {"errors": [{"message": "Too many requests"}]},
        {},
        ["#errors.0 no_url"],
    ),
    "ours": ({"url": "https://x.com/m/status/7", "text": "hello"}, {}, ["not_a_post"]),
    "snscrape": ({"id": 7, "rawContent": "hello"}, {}, ["not_a_post"]),
    "no data": ({"data": None, "meta": {}}, {}, []),
    "a text among posts": ({"data": ["a", post(1)]}, {"1": {}}, ["#0 not_a_post"]),
    "includes": ({"data": post(1), "includes": []}, {"1": {}}, ["#page bad_field"]),
    "no id": ({"data": [{"text": "a"}]}, {}, ["#0 no_url"]),
    "a bad reference": (page(post(1, replied_to=[])), {"1": {}}, ["#0 bad_field"]),
    "not found": lost("not_found", title="Not Found Error"),
    "protected": lost("protected", title="Authorization Error", detail="not authorized to see"),
    "suspended": lost("blocked", title="Forbidden", detail="User has been suspended"),
    "withheld": lost("blocked", title="Content Withheld"),
    "deleted": lost("deleted", detail="The post was deleted."),
}


@pytest.mark.parametrize(("document", "posts", "said"), CASES.values(), ids=CASES)
def test_a_page_is_read(document: Any, posts: Any, said: list[str], reads: Reads) -> None:
    reads("x", document, posts, said)


OWN = "https://twitter.com/m/status/1/photo/1"
ENDLESS = "a &eacute; &#38; &#" + "9" * 5000 + ";"


def link(expanded: Any, short: str = "https://t.co/a", **more: Any) -> Json:
    return {"url": short, "expanded_url": expanded, **more}


@pytest.mark.parametrize(
    ("text", "urls", "expected"),
    [
        # an address is not escaped, the text around it is
        ("1 &lt; 2 &amp;amp; https://t.co/a", [link("https://a.example/?b&lt=1")],
         "1 < 2 &amp; https://a.example/?b&lt=1"),
        # one link may begin like another, and may stand in the place of another
        ("https://t.co/ab https://t.co/a",
         [link("https://t.co/ab"), link("https://b.example/", "https://t.co/ab")],
         "https://b.example/ https://t.co/ab"),
        ("https://t.co/abc", [link("https://a.example/")], "https://t.co/abc"),
        ("(https://t.co/a).", [link("https://a.example/")], "(https://a.example/)."),
        # what cannot be expanded stays
        ("https://t.co/a", [link(5)], "https://t.co/a"),
        # its own images are not text, those of its first version neither; those of others are links
        ("mine https://t.co/a", [link(OWN)], "mine"),
        ("mine https://t.co/a", [link("https://x.com/m/status/8/video/1")], "mine"),
        ("other https://t.co/a", [link("https://x.com/m/status/2/photo/1")],
         "other https://x.com/m/status/2/photo/1"),
        ("mine https://t.co/a", [link("https://x.com/any", media_key="3_1")], "mine"),
        ("other https://t.co/a", [link("https://x.com/any", media_key="3_2")],
         "other https://x.com/any"),
        (ENDLESS, [], ENDLESS),
    ],
)  # fmt: skip
def test_texts_are_as_their_authors_wrote_them(
    text: str, urls: list[Json], expected: str, collect_lines: Callable[..., list[Json]]
) -> None:
    attached = {"attachments": {"media_keys": ["3_1"]}, "edit_history_tweet_ids": ["8", "1"]}
    whole = {"id": "1", "text": text, "entities": {"urls": urls}, **attached}
    row, *_ = collect_lines("x", [json.dumps(whole)])
    assert row["text"] == expected


def test_the_long_text_stands_for_the_cut_one(reads: Reads) -> None:
    long = "a prompt " * 60
    note = {"text": f"{long}https://t.co/a", "entities": {"urls": [link("https://a.example/")]}}
    for name in ("note_tweet", "note_post"):
        whole = {**post(1, long[:280]), name: note}
        reads("x", whole, {"1": {"text": f"{long}https://a.example/"}})


def renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [renamed(one) for one in value]
    if not isinstance(value, dict):
        return value
    new = {NEW_NAMES.get(name, name): renamed(inner) for name, inner in value.items()}
    if "users" in new and "tweets" in new:
        new["posts"] = new.pop("tweets")
    return new


def test_a_page_its_flattened_form_and_its_new_spelling_are_the_same_posts(
    real: Real, tmp_path: Path, collect_file: Callable[..., Any]
) -> None:
    file = real("x_api_v2/noflat.jsonl")
    new = renamed(json.loads(file.read_text()))
    assert any("referenced_posts" in one for one in new["data"])
    (tmp_path / "new.jsonl").write_text(json.dumps(new, indent=1))
    pages, read = collect_file("x", file)
    flat, flat_read = collect_file("x", real("x_api_v2/flat.jsonl"))
    assert pages == flat == collect_file("x", tmp_path / "new.jsonl")[0]
    assert read.stats.rejected == flat_read.stats.rejected == {"repost": 47}
    assert set(read.stats.noted) == set(flat_read.stats.noted) == {"picture_without_address"}


def test_fields_of_the_real_page_are_those_of_the_raw_file(
    real: Real, collect_file: Callable[..., Any]
) -> None:
    file = real("x_api_v2/noflat.jsonl")
    raw = json.loads(file.read_text())
    users = {one["id"]: one["username"] for one in raw["includes"]["users"]}
    media = {one["media_key"]: one for one in raw["includes"]["media"]}
    every = {one["id"]: one for one in [*raw["data"], *raw["includes"]["tweets"]]}
    linked = {
        name: {each["type"]: each["id"] for each in one.get("referenced_tweets", [])}
        for name, one in every.items()
    }
    found = {one["id"] for one in raw["data"]}
    posts, _ = collect_file("x", file)
    assert {one["post_id"] for one in posts} == {
        name for name in every if "retweeted" not in linked[name]
    }
    assert (len(every), len(found), len(posts)) == (164, 100, 117)
    for one in posts:
        name = one["post_id"]
        source = every[name]
        keys = source.get("attachments", {}).get("media_keys", [])
        photos = [media[key]["url"] for key in keys if media.get(key, {}).get("type") == "photo"]
        assert one["author"] == users[source["author_id"]]
        assert one["timestamp"].isoformat() == source["created_at"].replace(".000Z", "+00:00")
        for column, kind in (("parent_url", "replied_to"), ("quoted_url", "quoted")):
            assert one[column] == (ADDRESS(linked[name][kind]) if kind in linked[name] else None)
        assert one["engagement"]["likes"] == source["public_metrics"]["like_count"]
        assert [each["url"] for each in one["pictures"]] == photos
        assert one["keywords"] == (["obama"] if name in found else [])


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


SAVED: dict[str, Case] = {
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


@pytest.mark.parametrize(("document", "posts", "said"), SAVED.values(), ids=SAVED)
def test_a_line_of_an_archiver_is_read(
    document: Any, posts: Any, said: list[str], reads: Reads
) -> None:
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


def archived(number: int, **fields: Any) -> Json:
    """A post as the archive of an account holds it."""
    return {
        "tweet": {
            "id": str(number),
            "id_str": str(number),
            "created_at": "Tue Mar 03 09:15:00 +0000 2026",
            "full_text": f"{number} &amp; a fox",
            "lang": "en",
            "favorite_count": "3",
            "retweet_count": "0",
            "entities": {"urls": []},
            **fields,
        }
    }


def test_the_archive_of_an_account_is_read(reads: Reads) -> None:
    """A script that assigns posts to a variable; whose they are it does not say."""
    photo = {
        "type": "photo",
        "url": "https://t.co/p",
        "media_url_https": "https://pbs.twimg.com/a.jpg",
    }
    other = {**photo, "media_url_https": "https://pbs.twimg.com/b.jpg", "ext_alt_text": "a fox"}
    link = {"url": "https://t.co/l", "expanded_url": "https://example.org/fox"}
    answer = archived(
        2,
        full_text="see https://t.co/l https://t.co/p",
        in_reply_to_status_id_str="1",
        entities={"urls": [link], "media": [photo]},
        extended_entities={"media": [photo, other, {"type": "video"}]},
    )
    posts = [
        archived(1),
        answer,
        archived(3, full_text="RT @noor_k: look"),
        archived(4, created_at="now"),
        {"tweet": {"id": "5"}},
    ]
    counts = {"likes": 3, "views": None, "reposts": 0, "replies": None, "bookmarks": None}
    reads(
        "x_archive",
        f"window.YTD.tweets.part0 = {json.dumps(posts, indent=2)}",
        {
            "1": {
                "text": "1 & a fox",
                "timestamp": "2026-03-03T09:15:00+00:00",
                "author": None,
                "engagement": counts,
                "keywords": ["fox"],
            },
            "2": {
                "text": "see https://example.org/fox",
                "parent_url": "https://x.com/i/status/1",
                "pictures": [
                    ("https://pbs.twimg.com/a.jpg", None),
                    ("https://pbs.twimg.com/b.jpg", "a fox"),
                ],
            },
            "4": {"timestamp": None},
        },
        ["#2 repost", "#3 bad_timestamp", "#4 not_a_post"],
    )


@pytest.mark.parametrize("text", ["window.YTD.tweets.part0 = [{}]", "[5]", '{"tweet": {}}'])
def test_what_is_no_archive_is_rejected_by_name(text: str, collect_lines: CollectLines) -> None:
    rows = collect_lines("x_archive", [text])
    assert [row["_status"] for row in rows] == ["rejected"]
    assert "tweets.js" in rows[0]["_detail"]
