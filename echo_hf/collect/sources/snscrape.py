"""Posts of X as command-line archiving tools write them: one JSON object a line.

Both dialects are read: `rawContent` or `content`, pictures under `media.photos` or as a list of
media with `fullUrl` and `altText`, numbers as numbers or as texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from echo_hf.collect.fields import Fields
from echo_hf.collect.sources.base import Finding, Parsed, Picture, Post, numbered_lines, register
from echo_hf.collect.urls import canonical_url
from echo_hf.reasons import Reject

COUNTS = {
    "likes": ("likeCount",),
    "views": ("viewCount",),
    "reposts": ("retweetCount",),
    "replies": ("replyCount",),
    "bookmarks": ("bookmarkedCount", "bookmarkCount"),
}
Json = Mapping[str, Any]


@register("snscrape")
class Snscrape:
    """Posts of X in the form of snscrape and its successors."""

    split = staticmethod(numbered_lines)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        """The post of a line, those it quotes or repeats, and what was wrong with it."""
        if not isinstance(record, dict):
            yield Finding(Reject.NOT_A_POST, f"{type(record).__name__}, expected an object")
            return
        waiting: list[tuple[Json, Sequence[str]]] = [(record, keywords)]
        while waiting:
            post, found = waiting.pop(0)
            yield from _read(post, found)
            nested = (post.get(name) for name in ("retweetedTweet", "quotedTweet"))
            waiting.extend((one, ()) for one in nested if isinstance(one, dict))


def _read(record: Json, keywords: Sequence[str]) -> Iterator[Parsed]:
    url = _url(record)
    if url is None:
        yield Finding(Reject.NO_URL, f"url is {record.get('url')!r:.80}, expected a web address")
        return
    if isinstance(record.get("retweetedTweet"), dict):
        yield Finding(Reject.REPOST, f"of {_url(record['retweetedTweet'])}")
        return
    fields = Fields(record)
    text = fields.text("rawContent") or fields.text("content")
    quoted = fields.object("quotedTweet")
    yield Post(
        url=url,
        platform="x",
        author=Fields(fields.object("user"), fields.findings).text("username"),
        text=text,
        timestamp=fields.moment("date"),
        lang=fields.text("lang"),
        keywords=list(keywords),
        pictures=_pictures(fields),
        parent_url=_status(record.get("inReplyToTweetIdStr") or record.get("inReplyToTweetId")),
        quoted_url=_url(quoted) if quoted else None,
        engagement=_engagement(fields),
    )
    yield from fields.findings


def _url(record: Json) -> str | None:
    number = _status(record.get("id_str") or record.get("id"))
    given = record.get("url")
    return number or (canonical_url(given) if isinstance(given, str) else None)


def _status(number: Any) -> str | None:
    return canonical_url(f"https://x.com/i/status/{number}") if str(number).isdigit() else None


def _pictures(fields: Fields) -> list[Picture]:
    media = fields.record.get("media")
    if isinstance(media, dict):
        photos = [Fields(one, fields.findings) for one in Fields(media).objects("photos")]
        return [Picture(url=one.text("url"), alt_text=one.text("altText")) for one in photos]
    every = [Fields(one, fields.findings) for one in fields.objects("media")]
    photos = [one for one in every if one.record.get("fullUrl")]
    return [Picture(url=one.text("fullUrl"), alt_text=one.text("altText")) for one in photos]


def _engagement(fields: Fields) -> dict[str, int | None]:
    return {
        ours: next((fields.count(name) for name in names if name in fields.record), None)
        for ours, names in COUNTS.items()
    }
