"""The same posts in the form of every source, so that each is tried with the same hostile ones."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

TIME = "2026-03-02T17:12:40Z"
FIRST = 10_000  # numbers of posts have as many digits as platforms give them
COLUMNS = {
    "url": "link",
    "text": "text",
    "author": "author",
    "timestamp": "time",
    "parent_url": "above",
    "pictures": "picture",
    "replies": "replies",
}


@dataclass(frozen=True)
class Said:
    number: int
    parent: int | None = None
    text: str = "a fox"
    image: str | None = None
    replies: Any = None
    author: str = "mira_draws"


@dataclass(frozen=True)
class Form:
    write: Callable[[Sequence[Said]], str]
    url: Callable[[int], str]
    replies: bool = True
    columns: dict[str, str] | None = None


def lines(*records: Any) -> str:
    return "".join(json.dumps(one) + "\n" for one in records)


def jsonl(posts: Sequence[Said]) -> str:
    def line(one: Said) -> dict[str, Any]:
        return {
            "url": example(one.number),
            "text": one.text,
            "author": one.author,
            "timestamp": TIME,
            "parent_url": None if one.parent is None else example(one.parent),
            "pictures": [{"url": one.image}] if one.image else [],
            "engagement": {"replies": one.replies},
        }

    return lines(*map(line, posts))


def table(posts: Sequence[Said]) -> str:
    def row(one: Said) -> dict[str, Any]:
        above = None if one.parent is None else example(one.parent)
        values = (example(one.number), one.text, one.author, TIME, above, one.image, one.replies)
        return dict(zip(COLUMNS.values(), values, strict=True))

    return lines(*map(row, posts))


def x(posts: Sequence[Said]) -> str:
    media = [
        {"media_key": f"3_{one.number}", "type": "photo", "url": one.image}
        for one in posts if one.image
    ]  # fmt: skip
    authors = [{"id": str(one.number), "username": one.author} for one in posts]
    data = [
        {
            "id": str(one.number + FIRST),
            "author_id": str(one.number),
            "text": one.text,
            "created_at": TIME,
            "attachments": {"media_keys": [f"3_{one.number}"]} if one.image else {},
            "referenced_tweets": []
            if one.parent is None
            else [{"type": "replied_to", "id": str(one.parent + FIRST)}],
            "public_metrics": {"reply_count": one.replies},
        }
        for one in posts
    ]
    return lines({"data": data, "includes": {"users": authors, "media": media}, "meta": {}})


def snscrape(posts: Sequence[Said]) -> str:
    return lines(*(
        {
            "id": one.number + FIRST,
            "rawContent": one.text,
            "date": TIME,
            "user": {"username": one.author},
            "inReplyToTweetId": None if one.parent is None else one.parent + FIRST,
            "media": {"photos": [{"url": one.image}] if one.image else []},
            "replyCount": one.replies,
        }
        for one in posts
    ))  # fmt: skip


def reddit(posts: Sequence[Said]) -> str:
    children = [
        {
            "kind": "t1",
            "data": {
                "id": str(one.number),
                "link_id": "t3_fox",
                "parent_id": "t3_fox" if one.parent is None else f"t1_{one.parent}",
                "body": one.text,
                "author": one.author,
                "created_utc": 1772471560,
                "media_metadata": {"m": {"e": "Image", "s": {"u": one.image}}}
                if one.image
                else None,
            },
        }
        for one in posts
    ]
    return lines({"kind": "Listing", "data": {"children": children}})


def bluesky(posts: Sequence[Said]) -> str:
    return lines({"posts": [_post_view(one) for one in posts]})


def _post_view(one: Said) -> dict[str, Any]:
    above = {"uri": _uri(one.parent), "cid": "c"} if one.parent is not None else None
    images = {
        "$type": "app.bsky.embed.images#view",
        "images": [{"thumb": one.image, "fullsize": one.image, "alt": ""}],
    }
    return {
        "uri": _uri(one.number),
        "cid": "c",
        "author": {"did": "did:plc:fox", "handle": one.author},
        "record": {
            "$type": "app.bsky.feed.post",
            "text": one.text,
            "createdAt": TIME,
            **({"reply": {"parent": above, "root": above}} if above else {}),
        },
        **({"embed": images} if one.image else {}),
        "replyCount": one.replies,
        "indexedAt": TIME,
    }


def _uri(number: int | None) -> str:
    return f"at://did:plc:fox/app.bsky.feed.post/{number}"


def mastodon(posts: Sequence[Said]) -> str:
    statuses = [
        {
            "id": str(one.number + FIRST),
            "uri": _status(one.number),
            "url": _status(one.number),
            "visibility": "public",
            "created_at": TIME,
            "content": f"<p>{html.escape(one.text)}</p>",
            "account": {"acct": one.author, "username": one.author},
            "in_reply_to_id": None if one.parent is None else str(one.parent + FIRST),
            "media_attachments": [{"id": "1", "type": "image", "url": one.image}]
            if one.image
            else [],
            "replies_count": one.replies,
        }
        for one in posts
    ]
    return lines({"accounts": [], "statuses": statuses, "hashtags": []})


def _status(number: int) -> str:
    return f"https://social.example/users/mira_draws/statuses/{number + FIRST}"


def example(number: int) -> str:
    return f"https://posts.example/{number}"


def on_x(number: int) -> str:
    return f"https://x.com/i/status/{number + FIRST}"


FORMS = {
    "bluesky": Form(bluesky, "https://bsky.app/profile/did:plc:fox/post/{}".format),
    "jsonl": Form(jsonl, example),
    "mastodon": Form(mastodon, _status),
    "reddit": Form(reddit, "https://www.reddit.com/comments/fox/_/{}".format, replies=False),
    "snscrape": Form(snscrape, on_x),
    "table": Form(table, example, columns=COLUMNS),
    "x": Form(x, on_x),
}
