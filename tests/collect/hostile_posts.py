"""The same posts in the form of every source, so that each is tried with the same hostile ones."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.collect.sources.test_bluesky import ADDRESS as POST
from tests.collect.sources.test_bluesky import URI, view
from tests.collect.sources.test_mastodon import ADDRESS as STATUS
from tests.collect.sources.test_mastodon import status

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


def x_archive(posts: Sequence[Said]) -> str:
    written = [
        {
            "tweet": {
                "id_str": str(one.number + FIRST),
                "full_text": one.text,
                "created_at": "Mon Mar 02 17:12:40 +0000 2026",
                "in_reply_to_status_id_str": None
                if one.parent is None
                else str(one.parent + FIRST),
                "entities": {"media": [{"type": "photo", "media_url_https": one.image}]}
                if one.image
                else {},
            }
        }
        for one in posts
    ]
    return lines(written)


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
    def shown(one: Said) -> dict[str, Any]:
        images = {"$type": "app.bsky.embed.images#view", "images": [{"fullsize": one.image}]}
        return view(
            one.number,
            one.text,
            None if one.parent is None else URI(one.parent),
            author={"did": "did:plc:mira", "handle": one.author},
            replyCount=one.replies,
            indexedAt=TIME,
            **({"embed": images} if one.image else {}),
        )

    return lines({"posts": [*map(shown, posts)]})


def mastodon(posts: Sequence[Said]) -> str:
    def shown(one: Said) -> dict[str, Any]:
        media = [{"id": "1", "type": "image", "url": one.image}] if one.image else []
        return status(
            one.number + FIRST,
            None if one.parent is None else one.parent + FIRST,
            created_at=TIME,
            content=f"<p>{html.escape(one.text)}</p>",
            account={"acct": one.author, "username": one.author},
            media_attachments=media,
            replies_count=one.replies,
        )

    return lines({"accounts": [], "statuses": [*map(shown, posts)], "hashtags": []})


def on_mastodon(number: int) -> str:
    return STATUS(number + FIRST)


def example(number: int) -> str:
    return f"https://posts.example/{number}"


def on_x(number: int) -> str:
    return f"https://x.com/i/status/{number + FIRST}"


FORMS = {
    "bluesky": Form(bluesky, POST),
    "jsonl": Form(jsonl, example),
    "mastodon": Form(mastodon, on_mastodon),
    "mastodon_unlisted": Form(mastodon, on_mastodon),
    "reddit": Form(reddit, "https://www.reddit.com/comments/fox/_/{}".format, replies=False),
    "snscrape": Form(snscrape, on_x),
    "table": Form(table, example, columns=COLUMNS),
    "x": Form(x, on_x),
    "x_archive": Form(x_archive, on_x, replies=False),
}
