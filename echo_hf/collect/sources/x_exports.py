"""Posts of X in files of archiving tools, and in the archive of an account."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from echo_hf.collect.fields import Fields, Json, Lines, Pages, plain_text
from echo_hf.collect.platforms.x import x_status_url
from echo_hf.collect.sources.base import (
    Finding,
    Missing,
    Parsed,
    Post,
    PostImage,
    PostNotice,
    PostReject,
    register,
)
from echo_hf.collect.urls import canonical_url

SNSCRAPE_ENGAGEMENT_FIELDS = {
    "likes": "likeCount",
    "views": "viewCount",
    "reposts": "retweetCount",
    "replies": "replyCount",
}
BOOKMARK_KEYS = ("bookmarkedCount", "bookmarkCount")
NESTED = ("retweetedTweet", "quotedTweet")
CONTENT_KEYS = frozenset({"rawContent", "content", "date"})
# Every full post has at least one of these keys, which no other format has.
SNSCRAPE_KEYS = CONTENT_KEYS.union(NESTED, {"_type"})
ID_KEYS = frozenset({"id", "id_str"})
BARE_KEYS = ID_KEYS | {"url"}
TRAILING_LINK = re.compile(r"https://t\.co/\w+\s*\Z", re.ASCII)
ARCHIVE_ENGAGEMENT_FIELDS = {"likes": "favorite_count", "reposts": "retweet_count"}
ASSIGNMENT = re.compile(r"\s*window\.YTD\.\w+\.part\d+\s*=\s*", re.ASCII)
WHOLE_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
TIME_FORMAT = "%a %b %d %H:%M:%S %z %Y"  # Tue Mar 03 09:15:00 +0000 2026
REPOST_BEGINNING = re.compile(r"RT @(\w{1,15}):", re.ASCII)


@register("snscrape")
class SnscrapeSource(Lines):
    """Reads two dialects of archiving tools: `rawContent` or `content`, media by type or in a list.

    Posts of other people that are nested in one carry no keyword.
    """

    expected = "rawContent or content, date, and a post's number or address"

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        record, keys = fields.record, fields.record.keys()
        # A nested post may have few keys: the type marks it as of this format.
        nested = [
            {"_type": None, **record[name]} for name in NESTED if isinstance(record.get(name), dict)
        ]
        url = _read_snscrape_url(record)
        if not SNSCRAPE_KEYS & keys and not (ID_KEYS & keys and keys <= BARE_KEYS):
            yield self.reject(PostReject.NOT_A_POST, record)
            return
        if url is None:
            yield self.reject(PostReject.NO_URL, record, "id", "url")
        elif isinstance(record.get("retweetedTweet"), dict):
            yield Finding(PostReject.REPOST, f"of {_read_snscrape_url(record['retweetedTweet'])}")
        else:
            quoted = fields.part("quotedTweet").record
            parent_id = record.get("inReplyToTweetIdStr") or record.get("inReplyToTweetId")
            parent = x_status_url(parent_id)
            if parent_id is not None and parent is None:
                fields.note_bad("inReplyToTweetId", parent_id, "the number of a post")
            key = next((name for name in BOOKMARK_KEYS if name in record), BOOKMARK_KEYS[0])
            yield Post(
                url=url,
                platform="x",
                author=fields.part("user").text("username"),
                text=_read_snscrape_text(fields),
                timestamp=fields.moment("date"),
                lang=fields.text("lang"),
                keywords=keywords,
                pictures=_read_snscrape_images(fields),
                parent_url=parent,
                quoted_url=_read_snscrape_url(quoted) if quoted else None,
                engagement=fields.engagement({**SNSCRAPE_ENGAGEMENT_FIELDS, "bookmarks": key}),
                # Of a quoted post that is gone the file has only the number.
                missing=None if CONTENT_KEYS & keys else Missing.NOT_FETCHED,
            )
        yield from nested


def _read_snscrape_url(record: Json) -> str | None:
    number = x_status_url(record.get("id_str")) or x_status_url(record.get("id"))
    return number or canonical_url(record.get("url"))


def _read_snscrape_text(fields: Fields) -> str | None:
    text, media = fields.text("rawContent") or fields.text("content"), fields.record.get("media")
    if text is None:
        return None
    pairs = [(link.text("tcourl"), link.text("url")) for link in fields.parts("links")]
    links = {short: long for short, long in pairs if short and long}
    has_media = any(media.values()) if isinstance(media, dict) else bool(media)
    last = TRAILING_LINK.search(text)
    # X appends a link to a post's own images to its text, and does not list it.
    if last and has_media and last[0].strip() not in links:
        text = text[: last.start()]
    return plain_text(text, links)


def _read_snscrape_images(fields: Fields) -> list[PostImage]:
    if isinstance(fields.record.get("media"), dict):
        photos, address = fields.part("media").parts("photos"), "url"
    else:
        photos, address = fields.parts("media"), "fullUrl"
    return [
        PostImage(url=photo.link(address), alt_text=photo.text("altText"))
        for photo in photos
        if photo.record.get(address)
    ]


@register("x_archive")
class XArchiveSource(Pages):
    """Reads `tweets.js` of an account's archive, which does not say whose account it is."""

    expected = "a post of tweets.js, as the archive of an account of X holds it"

    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield one post per record."""
        stream = iter(lines)
        first = next(stream, "").removeprefix("\ufeff")
        # The file is a script that assigns the posts to a variable.
        yield from super().split(chain([ASSIGNMENT.sub("", first, count=1)], stream))

    def split_page(self, document: Any) -> Iterator[tuple[str, Any]] | None:
        if not isinstance(document, list):
            return None
        return ((f"#{at}", _extract_tweet(row)) for at, row in enumerate(document))

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        record = fields.record
        text, url = fields.text("full_text"), x_status_url(record.get("id_str") or record.get("id"))
        if text is None:
            yield self.reject(PostReject.NOT_A_POST, record)
        elif url is None:
            yield self.reject(PostReject.NO_URL, record, "id_str", "id")
        elif reposted := REPOST_BEGINNING.match(text):
            yield Finding(PostReject.REPOST, f"of a post by {reposted[1]}")
        else:
            parent_id = record.get("in_reply_to_status_id_str")
            parent = x_status_url(parent_id)
            if parent_id is not None and parent is None:
                fields.note_bad("in_reply_to_status_id_str", parent_id, "the number of a post")
            images = _read_archive_images(fields)
            links = {
                short: long
                for link in fields.part("entities").parts("urls")
                if (short := link.text("url")) and (long := link.text("expanded_url"))
            }
            own_media = fields.part("entities").parts("media")
            links |= {short: "" for media in own_media if (short := media.text("url"))}
            yield Post(
                url=url,
                platform="x",
                text=plain_text(text, links),
                timestamp=_read_archive_time(fields),
                lang=fields.text("lang"),
                keywords=keywords,
                pictures=images,
                parent_url=parent,
                engagement=_read_archive_counts(fields),
            )


def _extract_tweet(row: Any) -> Any:
    return row["tweet"] if isinstance(row, dict) and isinstance(row.get("tweet"), dict) else row


def _read_archive_time(fields: Fields) -> datetime.datetime | None:
    created = fields.text("created_at")
    try:
        if created is None:
            return None
        return datetime.datetime.strptime(created, TIME_FORMAT).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        fields.note_bad(
            "created_at", created, f"a time as {TIME_FORMAT!r}", PostNotice.BAD_TIMESTAMP
        )
        return None


def _read_archive_counts(fields: Fields) -> dict[str, int | None] | None:
    """Return the counts of a post, which an archive writes as texts."""
    counts = {name: fields.record.get(name) for name in ARCHIVE_ENGAGEMENT_FIELDS.values()}
    plain = {
        name: int(value) if isinstance(value, str) and WHOLE_NUMBER.fullmatch(value) else value
        for name, value in counts.items()
    }
    return Fields(plain, fields.findings).engagement(ARCHIVE_ENGAGEMENT_FIELDS)


def _read_archive_images(fields: Fields) -> list[PostImage]:
    """Return all photos of a post; without an extended list, the first."""
    name = "extended_entities" if fields.record.get("extended_entities") else "entities"
    return [
        PostImage(url=url, alt_text=media.text("ext_alt_text"))
        for media in fields.part(name).parts("media")
        if media.record.get("type") == "photo" and (url := media.link("media_url_https"))
    ]
