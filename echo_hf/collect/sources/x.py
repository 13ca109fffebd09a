"""Posts of X: pages of its API v2, flattened pages, files of archiving tools, account archives."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any
from urllib.parse import parse_qs, urlsplit

from echo_hf.collect.fields import Fields, Json, Lines, Pages, as_name, plain_text, short_repr
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostImage, register
from echo_hf.collect.urls import canonical_url, x_status_url
from echo_hf.reasons import Missing, Notice, Reject

PAGE_KEYS = frozenset({"data", "includes", "errors", "meta"})
REFERENCE_KEYS = ("referenced_tweets", "referenced_posts")
INCLUDED_KEYS = ("tweets", "posts")
POST_RESOURCE_TYPES = ("tweet", "post")
COUNTS = {
    "likes": "like_count",
    "views": "impression_count",
    "reposts": "retweet_count",
    "replies": "reply_count",
    "bookmarks": "bookmark_count",
}
NOTE_KEYS = ("note_tweet", "note_post")
EDIT_HISTORY_KEYS = ("edit_history_tweet_ids", "edit_history_post_ids")
OTHER_FORMAT_KEYS = frozenset({"full_text", "rawContent", "content"})  # version 1.1, snscrape's
PHOTO_KEY = "3_"  # the prefix of the API's keys of photos
OWN_MEDIA = re.compile(r"/status/(\d+)/(?:photo|video)/\d+/?", re.ASCII)
# Words in the errors for missing posts; without any of them the reason is not known.
CAUSES = (
    (re.compile(r"suspend|withheld|blocked"), Missing.BLOCKED),
    (re.compile(r"authoriz|protected"), Missing.PROTECTED),
    (re.compile(r"deleted"), Missing.DELETED),
)
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


@register("x")
class XSource(Pages):
    expected = (
        "a post of version 2 of the X API, with its number: in a page, or flattened; sources "
        "'snscrape' and 'x_archive' read other forms"
    )
    keyword_sign = r"[?&]query="

    def split_page(self, document: Any) -> Iterator[tuple[str, Any]] | None:
        is_page = isinstance(document, dict) and "id" not in document
        return _flatten_page(document) if is_page and not PAGE_KEYS.isdisjoint(document) else None

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        record = fields.record
        if isinstance(record.get("_missing"), dict):
            yield self._read_missing(fields.part("_missing"))
            return
        references = [part.record for name in REFERENCE_KEYS for part in fields.parts(name)]
        by_type: dict[Any, Json] = {}
        for reference in references:
            if as_name(kind := reference.get("type")):
                by_type.setdefault(kind, reference)  # the first of each type counts
        url, text = x_status_url(record.get("id")), _read_text(fields)
        if "retweeted" in by_type:
            yield Finding(Reject.REPOST, f"of {x_status_url(by_type['retweeted'].get('id'))}")
        elif url is None:
            # Posts of this API have no address: a record with one is of another format.
            is_other = "url" in record and "id" not in record
            detail = f"id is {short_repr(record.get('id'))}, expected {self.expected}"
            reason = Reject.NOT_A_POST if is_other else Reject.NO_URL
            yield Finding(reason, f"{detail}: {short_repr(record)}")
        elif text is None and not OTHER_FORMAT_KEYS.isdisjoint(record):
            yield self.reject(Reject.NOT_A_POST, record)
        else:
            queries = [] if record.get("_included") else _read_query(fields)
            yield Post(
                url=url,
                platform="x",
                author=fields.part("author").text("username"),
                text=text,
                timestamp=fields.moment("created_at"),
                lang=fields.text("lang"),
                keywords=list(dict.fromkeys([*keywords, *queries])),
                pictures=_read_images(fields),
                parent_url=_read_url(fields, by_type.get("replied_to")),
                quoted_url=_read_url(fields, by_type.get("quoted")),
                engagement=fields.part("public_metrics").engagement(COUNTS),
            )
        for reference in references:
            if "text" in reference:  # drop the query: no search found a nested post
                yield {name: value for name, value in reference.items() if name != "__twarc"}

    def _read_missing(self, error: Fields) -> Parsed:
        url = x_status_url(error.record.get("resource_id") or error.record.get("value"))
        if url is None:
            return self.reject(Reject.NO_URL, error.record, "resource_id", "value")
        text = " ".join(error.text(name) or "" for name in ("title", "detail", "type")).lower()
        matching = (missing for words, missing in CAUSES if words.search(text))
        return Post(url=url, platform="x", missing=next(matching, Missing.NOT_FOUND))


def _flatten_page(page: Json) -> Iterator[tuple[str, Any]]:
    """Yield the posts of a page, each joined with its author, media and references."""
    fields, data = Fields(page), page.get("data")
    included = fields.part("includes")
    posts = [part.record for name in INCLUDED_KEYS for part in included.parts(name)]
    users = _map_by_name([part.record for part in included.parts("users")], "id")
    media = _map_by_name([part.record for part in included.parts("media")], "media_key")
    posts_by_id = _map_by_name(posts, "id")
    nested: set[str] = set()

    def flatten_post(post: Json) -> dict[str, Any]:
        attachments = post.get("attachments")
        keys = attachments.get("media_keys") if isinstance(attachments, dict) else None
        keys = keys if isinstance(keys, list) else []
        attached = [media[name] for key in keys if (name := as_name(key) or "") in media]
        author = users.get(as_name(post.get("author_id")) or "")
        return {**post, "author": author, "attachments": {"media_keys": keys, "media": attached}}

    def resolve(reference: Any) -> Any:
        name = as_name(reference.get("id")) if isinstance(reference, dict) else None
        if name is None or name not in posts_by_id:
            return reference
        nested.add(name)
        return {**flatten_post(posts_by_id[name]), **reference}

    for number, post in enumerate(data if isinstance(data, list) else [data]):
        if isinstance(post, dict):
            lists = [name for name in REFERENCE_KEYS if isinstance(post.get(name), list)]
            whole = {name: [resolve(reference) for reference in post[name]] for name in lists}
            yield f"#{number}", {**flatten_post(post), **whole, "__twarc": page.get("__twarc")}
        elif post is not None:
            yield f"#{number}", post
    for number, post in enumerate(posts):
        if as_name(post.get("id")) not in nested:
            yield f"#includes.{number}", {**flatten_post(post), "_included": True}
    for number, error in enumerate(fields.parts("errors")):
        if error.record.get("resource_type") in POST_RESOURCE_TYPES:
            yield f"#errors.{number}", {"_missing": error.record}
        elif error.record.get("resource_type") is None:
            yield f"#errors.{number}", error.record
    if fields.findings:
        yield "#page", {"_findings": [finding.detail for finding in fields.findings]}


def _map_by_name(records: Sequence[Json], key: str) -> dict[str, Json]:
    return {name: record for record in records if (name := as_name(record.get(key)))}


def _read_url(fields: Fields, reference: Json | None) -> str | None:
    url = x_status_url(reference.get("id")) if reference else None
    if reference and url is None:
        name = f"id of {reference['type']}"
        fields.note_bad(name, reference.get("id"), "the number of a post")
    return url


def _read_text(fields: Fields) -> str | None:
    """Return the text, from the note where the post's text is cut, with links in full."""
    name = next((name for name in NOTE_KEYS if fields.record.get(name) is not None), None)
    note = fields.part(name) if name else Fields({})
    text = note.text("text") or fields.text("text")
    if text is None:
        return None
    links: dict[str, str] = {}
    for link in [*fields.part("entities").parts("urls"), *note.part("entities").parts("urls")]:
        short, long = link.text("url"), link.text("expanded_url")
        if short and long:
            links[short] = "" if _is_own_media(link.record, long, fields.record) else long
    return plain_text(text, links)


def _is_own_media(link: Json, long: str, post: Json) -> bool:
    attached = post.get("attachments")
    keys = attached.get("media_keys") if isinstance(attached, dict) else None
    if link.get("media_key") is not None and isinstance(keys, list):
        return link["media_key"] in keys
    status = OWN_MEDIA.search(long)
    # A link in an edited post may have the id of its first version.
    own_ids = [post.get("id")]
    for name in EDIT_HISTORY_KEYS:
        own_ids += post[name] if isinstance(post.get(name), list) else []
    return status is not None and status[1] in map(as_name, own_ids)


def _read_images(fields: Fields) -> list[PostImage]:
    attachments = fields.part("attachments")
    known_keys, images = set(), []
    for media in attachments.parts("media"):
        if media.record.get("type") == "photo":
            url, alt_text = media.link("url"), media.text("alt_text")
            if url:
                images.append(PostImage(url=url, alt_text=alt_text))
                known_keys.add(as_name(media.record.get("media_key")))
    for key in attachments.texts("media_keys"):
        if key.startswith(PHOTO_KEY) and key not in known_keys:
            fields.note(Notice.IMAGE_WITHOUT_ADDRESS, key)
    return images


def _read_query(fields: Fields) -> list[str]:
    try:
        url = urlsplit(fields.part("__twarc").text("url") or "")
        return parse_qs(url.query).get("query", [])
    except ValueError:
        return []


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
            yield self.reject(Reject.NOT_A_POST, record)
            return
        if url is None:
            yield self.reject(Reject.NO_URL, record, "id", "url")
        elif isinstance(record.get("retweetedTweet"), dict):
            yield Finding(Reject.REPOST, f"of {_read_snscrape_url(record['retweetedTweet'])}")
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
            yield self.reject(Reject.NOT_A_POST, record)
        elif url is None:
            yield self.reject(Reject.NO_URL, record, "id_str", "id")
        elif reposted := REPOST_BEGINNING.match(text):
            yield Finding(Reject.REPOST, f"of a post by {reposted[1]}")
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
        fields.note_bad("created_at", created, f"a time as {TIME_FORMAT!r}", Notice.BAD_TIMESTAMP)
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
