"""Posts of X as command-line archiving tools write them: one JSON object a line.

Both dialects are read: `rawContent` or `content`, images under `media.photos` or as a list of
media with `fullUrl` and `altText`, identifiers as numbers or as texts. Posts of other people that
are nested in one carry no keyword.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from echo_hf.collect.fields import Fields, plain_text, short_repr
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostImage, numbered_lines, register
from echo_hf.collect.urls import canonical_url, x_status_url
from echo_hf.reasons import Missing, Notice, Reject

COUNTS = {
    "likes": ("likeCount",),
    "views": ("viewCount",),
    "reposts": ("retweetCount",),
    "replies": ("replyCount",),
    "bookmarks": ("bookmarkedCount", "bookmarkCount"),
}
NESTED = ("retweetedTweet", "quotedTweet")
CONTENT = frozenset({"rawContent", "content", "date"})
# What every whole post has at least one of, and no other format of posts has.
OWN = CONTENT.union(NESTED, {"_type"})
NUMBERS = frozenset({"id", "id_str"})
REFERENCE = NUMBERS | {"url"}
LAST_LINK = re.compile(r"https://t\.co/\w+\s*\Z", re.ASCII)
Json = Mapping[str, Any]


@register("snscrape")
class Snscrape:
    split = staticmethod(numbered_lines)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        if not isinstance(record, dict):
            yield Finding(Reject.NOT_A_POST, f"{type(record).__name__}, expected an object")
            return
        if not _is_ours(record):
            given = f"keys are {short_repr(sorted(record))}"
            yield Finding(Reject.NOT_A_POST, f"{given}, expected rawContent or content, and date")
            return
        waiting: deque[tuple[Json, Sequence[str]]] = deque([(record, keywords)])
        while waiting:
            post, found = waiting.popleft()
            yield from _read(post, found)
            nested = (post.get(name) for name in NESTED)
            waiting.extend((one, ()) for one in nested if isinstance(one, dict))


def _is_ours(record: Json) -> bool:
    """Whether a record is a post of this format, or nothing but the number of one."""
    keys = record.keys()
    return bool(OWN & keys) or (bool(NUMBERS & keys) and keys <= REFERENCE)


def _read(record: Json, keywords: Sequence[str]) -> Iterator[Parsed]:
    url = _url(record)
    if url is None:
        given = f"id is {short_repr(record.get('id'))}, url {short_repr(record.get('url'))}"
        yield Finding(Reject.NO_URL, f"{given}, expected a post's number or address")
        return
    if isinstance(record.get("retweetedTweet"), dict):
        yield Finding(Reject.REPOST, f"of {_url(record['retweetedTweet'])}")
        return
    fields = Fields(record)
    quoted = fields.object("quotedTweet")
    yield Post(
        url=url,
        platform="x",
        author=Fields(fields.object("user"), fields.findings, "user.").text("username"),
        text=_text(fields),
        timestamp=fields.moment("date"),
        lang=fields.text("lang"),
        keywords=list(keywords),
        pictures=_images(fields),
        parent_url=_parent(fields),
        quoted_url=_url(quoted) if quoted else None,
        engagement=_engagement(fields),
        # Of a quoted post that is gone only its number is written.
        missing=None if CONTENT & record.keys() else Missing.NOT_FETCHED,
    )
    yield from fields.findings


def _url(record: Json) -> str | None:
    given = record.get("url")
    number = x_status_url(record.get("id_str")) or x_status_url(record.get("id"))
    return number or (canonical_url(given) if isinstance(given, str) else None)


def _parent(fields: Fields) -> str | None:
    given = fields.record.get("inReplyToTweetIdStr") or fields.record.get("inReplyToTweetId")
    parent = x_status_url(given)
    if given is not None and parent is None:
        fields.find(Notice.BAD_FIELD, "inReplyToTweetId", given, "the number of a post")
    return parent


def _text(fields: Fields) -> str | None:
    text = fields.text("rawContent") or fields.text("content")
    if text is None:
        return None
    links = {}
    for one in fields.objects("links"):
        link = Fields(one, fields.findings, "links.")
        short, long = link.text("tcourl"), link.text("url")
        if short and long:
            links[short] = long
    last = LAST_LINK.search(text)
    # X puts a link to a post's own images at the end of its text, and lists it nowhere.
    if last and _has_media(fields) and last[0].strip() not in links:
        text = text[: last.start()]
    return plain_text(text, links)


def _has_media(fields: Fields) -> bool:
    media = fields.record.get("media")
    return any(media.values()) if isinstance(media, dict) else bool(media)


def _images(fields: Fields) -> list[PostImage]:
    media = fields.record.get("media")
    if isinstance(media, dict):
        every, address = Fields(media, fields.findings, "media.").objects("photos"), "url"
    else:
        every, address = fields.objects("media"), "fullUrl"
    photos = [Fields(one, fields.findings, "media.") for one in every if one.get(address)]
    return [PostImage(url=one.link(address), alt_text=one.text("altText")) for one in photos]


def _engagement(fields: Fields) -> dict[str, int | None]:
    return {
        ours: next((fields.count(name) for name in names if name in fields.record), None)
        for ours, names in COUNTS.items()
    }
