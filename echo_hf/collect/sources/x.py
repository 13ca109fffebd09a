"""Posts of X: pages of its API v2, their flattened form, archivers' lines, accounts' archives."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any
from urllib.parse import parse_qs, urlsplit

from echo_hf.collect.fields import Fields, Json, Lines, Pages, name_of, plain_text, short_repr
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostImage, register
from echo_hf.collect.urls import canonical_url, x_status_url
from echo_hf.reasons import Missing, Notice, Reject

PARTS = frozenset({"data", "includes", "errors", "meta"})
REFERENCES = ("referenced_tweets", "referenced_posts")
INCLUDED = ("tweets", "posts")
KINDS = ("tweet", "post")
COUNTS = {
    "likes": "like_count",
    "views": "impression_count",
    "reposts": "retweet_count",
    "replies": "reply_count",
    "bookmarks": "bookmark_count",
}
NOTES = ("note_tweet", "note_post")
HISTORIES = ("edit_history_tweet_ids", "edit_history_post_ids")
OTHER_FORMS = frozenset({"full_text", "rawContent", "content"})  # version 1.1, snscrape's
PHOTO_KEY = "3_"  # how the API begins the names of photos
OWN_MEDIA = re.compile(r"/status/(\d+)/(?:photo|video)/\d+/?", re.ASCII)
# What errors say of posts that are gone; without any of these words nothing is known.
CAUSES = (
    (re.compile(r"suspend|withheld|blocked"), Missing.BLOCKED),
    (re.compile(r"authoriz|protected"), Missing.PROTECTED),
    (re.compile(r"deleted"), Missing.DELETED),
)


@register("x")
class XPages(Pages):
    expected = (
        "a post of version 2 of the X API, with its number: in a page, or flattened; sources "
        "'snscrape' and 'x_archive' read other forms"
    )
    keyword_sign = r"[?&]query="

    def parts(self, document: Any) -> Iterator[tuple[str, Any]] | None:
        is_page = isinstance(document, dict) and "id" not in document
        return _flattened(document) if is_page and not PARTS.isdisjoint(document) else None

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        record = fields.record
        if isinstance(record.get("_missing"), dict):
            yield self._missing(fields.part("_missing"))
            return
        references = [one.record for name in REFERENCES for one in fields.parts(name)]
        of_kind = {one.get("type"): one for one in reversed(references) if name_of(one.get("type"))}
        url, text = x_status_url(record.get("id")), _text(fields)
        if "retweeted" in of_kind:
            found = f"of {x_status_url(of_kind['retweeted'].get('id'))}"
            yield Finding(Reject.REPOST, found)
        elif url is None:
            # Posts of this API have an address nowhere: what has one is of another format.
            is_other = "url" in record and "id" not in record
            detail = f"id is {short_repr(record.get('id'))}, expected {self.expected}"
            reason = Reject.NOT_A_POST if is_other else Reject.NO_URL
            yield Finding(reason, f"{detail}: {short_repr(record)}")
        elif text is None and not OTHER_FORMS.isdisjoint(record):
            yield self.refused(Reject.NOT_A_POST, record)
        else:
            included = record.get("_included")
            yield Post(
                url=url,
                platform="x",
                author=fields.part("author").text("username"),
                text=text,
                timestamp=fields.moment("created_at"),
                lang=fields.text("lang"),
                keywords=list(dict.fromkeys([*keywords, *(() if included else _query(fields))])),
                pictures=_images(fields),
                parent_url=_address(fields, of_kind.get("replied_to")),
                quoted_url=_address(fields, of_kind.get("quoted")),
                engagement=fields.part("public_metrics").engagement(COUNTS),
            )
        for one in references:
            if "text" in one:  # no search found it, whatever it says itself
                yield {name: value for name, value in one.items() if name != "__twarc"}

    def _missing(self, error: Fields) -> Parsed:
        url = x_status_url(error.record.get("resource_id") or error.record.get("value"))
        if url is None:
            return self.refused(Reject.NO_URL, error.record, "resource_id", "value")
        said = " ".join(error.text(name) or "" for name in ("title", "detail", "type")).lower()
        why = next((why for words, why in CAUSES if words.search(said)), Missing.NOT_FOUND)
        return Post(url=url, platform="x", missing=why)


def _flattened(page: Json) -> Iterator[tuple[str, Any]]:
    """The posts of a page, each with what the page says of it beside: author, media, references."""
    fields, data = Fields(page), page.get("data")
    beside = fields.part("includes")
    posts = [one.record for name in INCLUDED for one in beside.parts(name)]
    users, media, by_id = (
        {name: one for one in objects if (name := name_of(one.get(key)))}
        for objects, key in (
            ([one.record for one in beside.parts("users")], "id"),
            ([one.record for one in beside.parts("media")], "media_key"),
            (posts, "id"),
        )
    )
    nested: set[str] = set()

    def flat(post: Json) -> dict[str, Any]:
        attached = post.get("attachments")
        keys = attached.get("media_keys") if isinstance(attached, dict) else None
        keys = keys if isinstance(keys, list) else []
        shown = [media[name] for key in keys if (name := name_of(key) or "") in media]
        author = users.get(name_of(post.get("author_id")) or "")
        return {**post, "author": author, "attachments": {"media_keys": keys, "media": shown}}

    def referred(reference: Any) -> Any:
        name = name_of(reference.get("id")) if isinstance(reference, dict) else None
        if name is None or name not in by_id:
            return reference
        nested.add(name)
        return {**flat(by_id[name]), **reference}

    for number, post in enumerate(data if isinstance(data, list) else [data]):
        if isinstance(post, dict):
            lists = [name for name in REFERENCES if isinstance(post.get(name), list)]
            whole = {name: [referred(one) for one in post[name]] for name in lists}
            yield f"#{number}", {**flat(post), **whole, "__twarc": page.get("__twarc")}
        elif post is not None:
            yield f"#{number}", post
    for number, post in enumerate(posts):
        if name_of(post.get("id")) not in nested:
            yield f"#includes.{number}", {**flat(post), "_included": True}
    for number, one in enumerate(fields.parts("errors")):
        if one.record.get("resource_type") in KINDS:
            yield f"#errors.{number}", {"_missing": one.record}
        elif one.record.get("resource_type") is None:
            yield f"#errors.{number}", one.record
    if fields.findings:
        yield "#page", {"_findings": [finding.detail for finding in fields.findings]}


def _address(fields: Fields, reference: Json | None) -> str | None:
    url = x_status_url(reference.get("id")) if reference else None
    if reference and url is None:
        name = f"id of {reference['type']}"
        fields.bad(name, reference.get("id"), "the number of a post")
    return url


def _text(fields: Fields) -> str | None:
    """The text, which is cut where a note goes on, with links in full."""
    name = next((name for name in NOTES if fields.record.get(name) is not None), None)
    note = fields.part(name) if name else Fields({})
    text = note.text("text") or fields.text("text")
    if text is None:
        return None
    links: dict[str, str] = {}
    for one in [*fields.part("entities").parts("urls"), *note.part("entities").parts("urls")]:
        short, long = one.text("url"), one.text("expanded_url")
        if short and long:
            links[short] = "" if _is_own_media(one.record, long, fields.record) else long
    return plain_text(text, links)


def _is_own_media(link: Json, long: str, post: Json) -> bool:
    attached = post.get("attachments")
    keys = attached.get("media_keys") if isinstance(attached, dict) else None
    if link.get("media_key") is not None and isinstance(keys, list):
        return link["media_key"] in keys
    found = OWN_MEDIA.search(long)
    # The link of an edited post may name its first version.
    versions = (post.get(name) for name in HISTORIES)
    own = [post.get("id"), *(one for some in versions if isinstance(some, list) for one in some)]
    return found is not None and found[1] in map(name_of, own)


def _images(fields: Fields) -> list[PostImage]:
    attached = fields.part("attachments")
    known, images = set(), []
    for one in attached.parts("media"):
        if one.record.get("type") == "photo":
            url, alt_text = one.link("url"), one.text("alt_text")
            if url:
                images.append(PostImage(url=url, alt_text=alt_text))
                known.add(name_of(one.record.get("media_key")))
    for key in attached.texts("media_keys"):
        if key.startswith(PHOTO_KEY) and key not in known:
            fields.note(Notice.IMAGE_WITHOUT_ADDRESS, key)
    return images


def _query(fields: Fields) -> list[str]:
    try:
        url = urlsplit(fields.part("__twarc").text("url") or "")
        return parse_qs(url.query).get("query", [])
    except ValueError:
        return []


SAVED_COUNTS = {
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
    """Both dialects of archiving tools: `rawContent` or `content`, media in parts or as a list.

    Posts of other people that are nested in one carry no keyword.
    """

    expected = "rawContent or content, date, and a post's number or address"

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        record, keys = fields.record, fields.record.keys()
        # Of a post in another one little may be said: it is of this format all the same.
        nested = [
            {"_type": None, **record[name]} for name in NESTED if isinstance(record.get(name), dict)
        ]
        url = _saved_url(record)
        if not OWN & keys and not (NUMBERS & keys and keys <= REFERENCE):
            yield self.refused(Reject.NOT_A_POST, record)
            return
        if url is None:
            yield self.refused(Reject.NO_URL, record, "id", "url")
        elif isinstance(record.get("retweetedTweet"), dict):
            yield Finding(Reject.REPOST, f"of {_saved_url(record['retweetedTweet'])}")
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
                text=_saved_text(fields),
                timestamp=fields.moment("date"),
                lang=fields.text("lang"),
                keywords=keywords,
                pictures=_saved_images(fields),
                parent_url=parent,
                quoted_url=_saved_url(quoted) if quoted else None,
                engagement=fields.engagement({**SAVED_COUNTS, "bookmarks": saved}),
                # Of a quoted post that is gone only its number is written.
                missing=None if CONTENT & keys else Missing.NOT_FETCHED,
            )
        yield from nested


def _saved_url(record: Json) -> str | None:
    number = x_status_url(record.get("id_str")) or x_status_url(record.get("id"))
    return number or canonical_url(record.get("url"))


def _saved_text(fields: Fields) -> str | None:
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


def _saved_images(fields: Fields) -> list[PostImage]:
    if isinstance(fields.record.get("media"), dict):
        photos, address = fields.part("media").parts("photos"), "url"
    else:
        photos, address = fields.parts("media"), "fullUrl"
    return [
        PostImage(url=one.link(address), alt_text=one.text("altText"))
        for one in photos
        if one.record.get(address)
    ]


ARCHIVE_COUNTS = {"likes": "favorite_count", "reposts": "retweet_count"}
ASSIGNED = re.compile(r"\s*window\.YTD\.\w+\.part\d+\s*=\s*", re.ASCII)
WHOLE = re.compile(r"\d{1,18}", re.ASCII)
ARCHIVED = "%a %b %d %H:%M:%S %z %Y"  # Tue Mar 03 09:15:00 +0000 2026
REPOSTED = re.compile(r"RT @(\w{1,15}):", re.ASCII)


@register("x_archive")
class XArchive(Pages):
    """`tweets.js` of the archive that an account can ask for; it does not say whose it is."""

    expected = "a post of tweets.js, as the archive of an account of X holds it"

    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        """One post a record."""
        rest = iter(lines)
        first = next(rest, "").removeprefix("\ufeff")
        # A script that assigns the posts to a variable.
        yield from super().split(chain([ASSIGNED.sub("", first, count=1)], rest))

    def parts(self, document: Any) -> Iterator[tuple[str, Any]] | None:
        if not isinstance(document, list):
            return None
        return ((f"#{at}", _tweet_of(one)) for at, one in enumerate(document))

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        record = fields.record
        text, url = fields.text("full_text"), x_status_url(record.get("id_str") or record.get("id"))
        if text is None:
            yield self.refused(Reject.NOT_A_POST, record)
        elif url is None:
            yield self.refused(Reject.NO_URL, record, "id_str", "id")
        elif reposted := REPOSTED.match(text):
            yield Finding(Reject.REPOST, f"of a post by {reposted[1]}")
        else:
            answers = record.get("in_reply_to_status_id_str")
            parent = x_status_url(answers)
            if answers is not None and parent is None:
                fields.bad("in_reply_to_status_id_str", answers, "the number of a post")
            images = _archived_images(fields)
            links = {
                short: long
                for link in fields.part("entities").parts("urls")
                if (short := link.text("url")) and (long := link.text("expanded_url"))
            }
            own = fields.part("entities").parts("media")
            links |= {short: "" for media in own if (short := media.text("url"))}
            yield Post(
                url=url,
                platform="x",
                text=plain_text(text, links),
                timestamp=_archived_moment(fields),
                lang=fields.text("lang"),
                keywords=keywords,
                pictures=images,
                parent_url=parent,
                engagement=_archived_counts(fields),
            )


def _tweet_of(row: Any) -> Any:
    return row["tweet"] if isinstance(row, dict) and isinstance(row.get("tweet"), dict) else row


def _archived_moment(fields: Fields) -> datetime.datetime | None:
    written = fields.text("created_at")
    try:
        if written is None:
            return None
        return datetime.datetime.strptime(written, ARCHIVED).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        fields.bad("created_at", written, f"a time as {ARCHIVED!r}", Notice.BAD_TIMESTAMP)
        return None


def _archived_counts(fields: Fields) -> dict[str, int | None] | None:
    """Its counts, which an archive writes as texts."""
    counts = {name: fields.record.get(name) for name in ARCHIVE_COUNTS.values()}
    plain = {
        name: int(value) if isinstance(value, str) and WHOLE.fullmatch(value) else value
        for name, value in counts.items()
    }
    return Fields(plain, fields.findings).engagement(ARCHIVE_COUNTS)


def _archived_images(fields: Fields) -> list[PostImage]:
    """All photos of a post; without an extended list, the first."""
    name = "extended_entities" if fields.record.get("extended_entities") else "entities"
    return [
        PostImage(url=url, alt_text=media.text("ext_alt_text"))
        for media in fields.part(name).parts("media")
        if media.record.get("type") == "photo" and (url := media.link("media_url_https"))
    ]
