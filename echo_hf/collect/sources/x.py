"""X API v2: pages as they come, and posts in the flattened form of archiving tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from echo_hf.collect.fields import Fields, plain_text, short_repr
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostImage, json_documents, register
from echo_hf.collect.urls import x_status_url
from echo_hf.reasons import Missing, Notice, Reject

Json = Mapping[str, Any]

PARTS = frozenset({"data", "includes", "errors", "meta"})
REFERENCES = ("referenced_tweets", "referenced_posts")
INCLUDED = ("tweets", "posts")
KINDS = ("tweet", "post")


def is_page(document: Any) -> bool:
    return isinstance(document, dict) and "id" not in document and not PARTS.isdisjoint(document)


def flattened(page: Json) -> Iterator[tuple[str, Any]]:
    fields = Fields(page)
    inside = _Includes.of(fields)
    data = page.get("data")
    for number, post in enumerate(data if isinstance(data, list) else [data]):
        if isinstance(post, dict):
            yield f"#{number}", {**inside.complete(post), "__twarc": page.get("__twarc")}
        elif post is not None:
            yield f"#{number}", post
    for number, post in enumerate(inside.posts):
        if name_of(post.get("id")) not in inside.nested:
            yield f"#includes.{number}", {**inside.flat(post), "_included": True}
    for number, error in enumerate(fields.objects("errors")):
        if error.get("resource_type") in KINDS:
            yield f"#errors.{number}", {"_missing": error}
        elif error.get("resource_type") is None:
            yield f"#errors.{number}", error
    if fields.findings:
        yield "#page", {"_findings": [finding.detail for finding in fields.findings]}


@dataclass
class _Includes:
    """What a page says beside its posts: who wrote them, their media, posts they refer to."""

    users: Mapping[str, Json]
    media: Mapping[str, Json]
    posts: Sequence[Json]
    by_id: Mapping[str, Json]
    nested: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, page: Fields) -> _Includes:
        given = Fields(page.object("includes"), page.findings)
        posts = [one for name in INCLUDED for one in given.objects(name)]
        users, media = given.objects("users"), given.objects("media")
        return cls(_by(users, "id"), _by(media, "media_key"), posts, _by(posts, "id"))

    def flat(self, post: Json) -> dict[str, Any]:
        attached = post.get("attachments")
        given = attached.get("media_keys") if isinstance(attached, dict) else None
        keys = given if isinstance(given, list) else []
        media = [one for key in keys if (one := self.media.get(name_of(key) or "")) is not None]
        author = self.users.get(name_of(post.get("author_id")) or "")
        return {**post, "author": author, "attachments": {"media_keys": keys, "media": media}}

    def complete(self, post: Json) -> dict[str, Any]:
        whole = self.flat(post)
        for name in REFERENCES:
            if isinstance(post.get(name), list):
                whole[name] = [self._reference(one) for one in post[name]]
        return whole

    def _reference(self, reference: Any) -> Any:
        name = name_of(reference.get("id")) if isinstance(reference, dict) else None
        if name is None or name not in self.by_id:
            return reference
        self.nested.add(name)
        return {**self.flat(self.by_id[name]), **reference}


def name_of(identifier: Any) -> str | None:
    """An identifier as a text, whether it came as a text or as a number; null when it is none."""
    usable = isinstance(identifier, str | int) and not isinstance(identifier, bool)
    return str(identifier) if usable else None


def _by(objects: Sequence[Json], key: str) -> dict[str, Json]:
    named = ((name_of(one.get(key)), one) for one in objects)
    return {name: one for name, one in named if name is not None}


COUNTS = {
    "likes": "like_count",
    "views": "impression_count",
    "reposts": "retweet_count",
    "replies": "reply_count",
    "bookmarks": "bookmark_count",
}
NOTES = ("note_tweet", "note_post")
HISTORIES = ("edit_history_tweet_ids", "edit_history_post_ids")
OTHER_FORMS = {
    "full_text": "a post of version 1.1 of the API",
    "rawContent": "a post as snscrape writes it",
    "content": "a post as snscrape writes it",
}
PHOTO_KEY = "3_"  # how the API begins the names of photos
OWN_MEDIA = re.compile(r"/status/(\d+)/(?:photo|video)/\d+/?", re.ASCII)


@register("x")
class XPages:
    keyword_sign = r"[?&]query="

    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        """One flattened post a record; what is no JSON stays as it is, to be rejected by name."""
        for place, text in json_documents(lines):
            page = _loaded(text)
            if not is_page(page):
                yield place, text
                continue
            for part, post in flattened(page):
                yield f"{place}{part}", _dumped(post)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        if not isinstance(record, dict):
            yield Finding(Reject.NOT_A_POST, f"{short_repr(record)}, expected a post of the X API")
        elif "_findings" in record:
            for detail in Fields(record).texts("_findings"):
                yield Finding(Notice.BAD_FIELD, detail)
        elif isinstance(record.get("_missing"), dict):
            yield from _missing(Fields(record["_missing"]))
        else:
            found = () if record.get("_included") else (*keywords, *_query(record))
            yield from _read(record, found)
            waiting = _references(Fields(record))
            while waiting:  # a quote of a quote of a quote
                nested = waiting.pop(0)
                if "text" in nested:
                    yield from _read(nested, ())
                    waiting.extend(_references(Fields(nested)))


def _read(record: Json, keywords: Sequence[str]) -> Iterator[Parsed]:
    fields = Fields(record)
    references = _references(fields)
    reposted = _of_type("retweeted", references)
    url = x_status_url(record.get("id"))
    if reposted is not None:
        yield Finding(Reject.REPOST, f"of {x_status_url(reposted.get('id'))}")
        return
    if url is None:
        given = f"id is {short_repr(record.get('id'))}, expected the number of a post"
        # Posts of this API have an address nowhere: what has one is of another format.
        reason = Reject.NOT_A_POST if "url" in record and "id" not in record else Reject.NO_URL
        yield Finding(reason, f"{given}: {short_repr(record)}")
        return
    text = _text(fields)
    other = next((form for key, form in OTHER_FORMS.items() if key in record), None)
    if text is None and other is not None:
        yield Finding(Reject.NOT_A_POST, f"{other}, expected version 2 of the API")
        return
    yield Post(
        url=url,
        platform="x",
        author=Fields(fields.object("author"), fields.findings, "author.").text("username"),
        text=text,
        timestamp=fields.moment("created_at"),
        lang=fields.text("lang"),
        keywords=list(dict.fromkeys(keywords)),
        pictures=_images(fields),
        parent_url=_address(fields, _of_type("replied_to", references)),
        quoted_url=_address(fields, _of_type("quoted", references)),
        engagement=_engagement(fields),
    )
    yield from fields.findings


def _references(fields: Fields) -> list[Json]:
    return [one for name in REFERENCES for one in fields.objects(name)]


def _of_type(kind: str, references: Sequence[Json]) -> Json | None:
    return next((one for one in references if one.get("type") == kind), None)


def _address(fields: Fields, reference: Json | None) -> str | None:
    if reference is None:
        return None
    url = x_status_url(reference.get("id"))
    if url is None:
        name = f"id of {reference['type']}"
        fields.find(Notice.BAD_FIELD, name, reference.get("id"), "the number of a post")
    return url


def _text(fields: Fields) -> str | None:
    note = _note(fields)
    # The text is cut where a note goes on.
    text = note.text("text") or fields.text("text")
    if text is None:
        return None
    return plain_text(text, {**_links(fields, fields), **_links(note, fields)})


def _note(fields: Fields) -> Fields:
    name = next((name for name in NOTES if fields.record.get(name) is not None), NOTES[0])
    return Fields(fields.object(name), fields.findings, f"{name}.")


def _links(holder: Fields, post: Fields) -> dict[str, str]:
    links = {}
    for one in Fields(holder.object("entities"), post.findings).objects("urls"):
        link = Fields(one, post.findings)
        short, long = link.text("url"), link.text("expanded_url")
        if short and long:
            links[short] = "" if _is_own_media(one, long, post.record) else long
    return links


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
    media = Fields(fields.object("attachments"), fields.findings).objects("media")
    photos = [Fields(one, fields.findings, "media.") for one in media if one.get("type") == "photo"]
    given = [PostImage(url=one.link("url"), alt_text=one.text("alt_text")) for one in photos]
    known = [
        one.record.get("media_key") for one, image in zip(photos, given, strict=True) if image.url
    ]
    for key in Fields(fields.object("attachments")).texts("media_keys"):
        if key.startswith(PHOTO_KEY) and key not in known:
            fields.findings.append(Finding(Notice.IMAGE_WITHOUT_ADDRESS, key))
    return [image for image in given if image.url]


def _engagement(fields: Fields) -> dict[str, int | None] | None:
    given = Fields(fields.object("public_metrics"), fields.findings, "public_metrics.")
    return {ours: given.count(theirs) for ours, theirs in COUNTS.items()} if given.record else None


def _query(record: Json) -> list[str]:
    url = Fields(Fields(record).object("__twarc")).text("url") or ""
    try:
        return parse_qs(urlsplit(url).query).get("query", [])
    except ValueError:
        return []


def _missing(error: Fields) -> Iterator[Parsed]:
    given = error.record.get("resource_id") or error.record.get("value")
    url = x_status_url(given)
    if url is None:
        yield Finding(
            Reject.NO_URL, f"an error about {short_repr(given)}, expected a post's number"
        )
        return
    yield Post(url=url, platform="x", missing=_why(error))
    yield from error.findings


def _why(error: Fields) -> str:
    said = " ".join(error.text(name) or "" for name in ("title", "detail", "type")).lower()
    if "suspend" in said or "withheld" in said or "blocked" in said:
        return Missing.BLOCKED
    if "authoriz" in said or "protected" in said:
        return Missing.PROTECTED
    return Missing.DELETED if "deleted" in said else Missing.NOT_FOUND


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _dumped(post: Any) -> str:
    try:
        return json.dumps(post)
    except RecursionError:
        return json.dumps(f"nested too deeply: {short_repr(post)}")
