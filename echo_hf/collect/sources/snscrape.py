"""Posts of X as command-line archiving tools write them: one JSON object a line.

Both dialects are read: `rawContent` or `content`, images under `media.photos` or as a list of
media with `fullUrl` and `altText`, identifiers as numbers or as texts. Posts of other people that
are nested in one carry no keyword.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from echo_hf.collect.fields import Fields, Json, Lines, plain_text
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostImage, register
from echo_hf.collect.urls import canonical_url, x_status_url
from echo_hf.reasons import Missing, Reject

COUNTS = {
    "likes": "likeCount",
    "views": "viewCount",
    "reposts": "retweetCount",
    "replies": "replyCount",
}
SAVED = ("bookmarkedCount", "bookmarkCount")
NESTED = ("retweetedTweet", "quotedTweet")
CONTENT = frozenset({"rawContent", "content", "date"})
# What every whole post has at least one of, and no other format of posts has.
OWN = CONTENT.union(NESTED, {"_type"})
NUMBERS = frozenset({"id", "id_str"})
REFERENCE = NUMBERS | {"url"}
LAST_LINK = re.compile(r"https://t\.co/\w+\s*\Z", re.ASCII)


@register("snscrape")
class Snscrape(Lines):
    expected = "rawContent or content, date, and a post's number or address"

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        record, keys = fields.record, fields.record.keys()
        # Of a post in another one little may be said: it is of this format all the same.
        nested = [
            {"_type": None, **record[name]} for name in NESTED if isinstance(record.get(name), dict)
        ]
        url = _url(record)
        if not OWN & keys and not (NUMBERS & keys and keys <= REFERENCE):
            yield self.refused(Reject.NOT_A_POST, record)
            return
        if url is None:
            yield self.refused(Reject.NO_URL, record, "id", "url")
        elif isinstance(record.get("retweetedTweet"), dict):
            yield Finding(Reject.REPOST, f"of {_url(record['retweetedTweet'])}")
        else:
            quoted = fields.part("quotedTweet").record
            answers = record.get("inReplyToTweetIdStr") or record.get("inReplyToTweetId")
            parent = x_status_url(answers)
            if answers is not None and parent is None:
                fields.bad("inReplyToTweetId", answers, "the number of a post")
            saved = next((name for name in SAVED if name in record), SAVED[0])
            yield Post(
                url=url,
                platform="x",
                author=fields.part("user").text("username"),
                text=_text(fields),
                timestamp=fields.moment("date"),
                lang=fields.text("lang"),
                keywords=keywords,
                pictures=_images(fields),
                parent_url=parent,
                quoted_url=_url(quoted) if quoted else None,
                engagement=fields.engagement({**COUNTS, "bookmarks": saved}),
                # Of a quoted post that is gone only its number is written.
                missing=None if CONTENT & keys else Missing.NOT_FETCHED,
            )
        yield from nested


def _url(record: Json) -> str | None:
    number = x_status_url(record.get("id_str")) or x_status_url(record.get("id"))
    return number or canonical_url(record.get("url"))


def _text(fields: Fields) -> str | None:
    text, media = fields.text("rawContent") or fields.text("content"), fields.record.get("media")
    if text is None:
        return None
    pairs = [(one.text("tcourl"), one.text("url")) for one in fields.parts("links")]
    links = {short: long for short, long in pairs if short and long}
    has_media = any(media.values()) if isinstance(media, dict) else bool(media)
    last = LAST_LINK.search(text)
    # X puts a link to a post's own images at the end of its text, and lists it nowhere.
    if last and has_media and last[0].strip() not in links:
        text = text[: last.start()]
    return plain_text(text, links)


def _images(fields: Fields) -> list[PostImage]:
    if isinstance(fields.record.get("media"), dict):
        photos, address = fields.part("media").parts("photos"), "url"
    else:
        photos, address = fields.parts("media"), "fullUrl"
    return [
        PostImage(url=one.link(address), alt_text=one.text("altText"))
        for one in photos
        if one.record.get(address)
    ]
