"""X API v2: pages as they come, and posts in the flattened form of archiving tools.

Both spellings of the API are read (`note_tweet` and `note_post`, `referenced_tweets` and
`referenced_posts`, `includes.tweets` and `includes.posts`). A page is first taken apart into
flattened posts, so that both forms take one path. Posts of `includes` were not found by the
search: they carry no keyword. Videos and animations are no pictures here.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from echo_hf.collect.fields import Fields
from echo_hf.collect.sources.base import Finding, Parsed, Picture, Post, json_documents, register
from echo_hf.collect.urls import canonical_url
from echo_hf.reasons import Missing, Reject

COUNTS = {
    "likes": "like_count",
    "views": "impression_count",
    "reposts": "retweet_count",
    "replies": "reply_count",
    "bookmarks": "bookmark_count",
}
NOTES = ("note_tweet", "note_post")
REFERENCES = ("referenced_tweets", "referenced_posts")
INCLUDED = ("tweets", "posts")
Json = Mapping[str, Any]


@register("x")
class XPages:
    """Posts of the X API, version 2."""

    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        """One flattened post a record; what is no JSON stays as it is, to be rejected by name."""
        for place, text in json_documents(lines):
            page = _loaded(text)
            if not isinstance(page, dict) or not ({"data", "includes", "errors"} & set(page)):
                yield place, text
                continue
            for part, post in _flattened(page):
                yield f"{place}{part}", json.dumps(post)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        """The post of a record and those nested in it."""
        if isinstance(record, dict) and "_missing" in record:
            yield from _missing(record["_missing"])
            return
        if not isinstance(record, dict) or not _status(record.get("id")):
            yield Finding(
                Reject.NO_URL if isinstance(record, dict) else Reject.NOT_A_POST,
                "no post with an id, expected the X API's form",
            )
            return
        found = () if record.get("_included") else (*keywords, *_query(record))
        yield from _read(record, found)
        for nested in _references(record):
            if "text" in nested:
                yield from _read(nested, ())


def _read(record: Json, keywords: Sequence[str]) -> Iterator[Parsed]:
    reposted = next((one for one in _references(record) if one.get("type") == "retweeted"), None)
    if reposted is not None:
        yield Finding(Reject.REPOST, f"of {_status(reposted.get('id'))}")
        return
    fields = Fields(record)
    referenced = {one.get("type"): _status(one.get("id")) for one in _references(record)}
    url = _status(record.get("id"))
    if url is None:
        yield Finding(Reject.NO_URL, f"id is {record.get('id')!r:.80}, expected a number")
        return
    yield Post(
        url=url,
        post_id=str(record["id"]),
        platform="x",
        author=Fields(fields.object("author")).text("username"),
        text=_text(fields),
        timestamp=fields.moment("created_at"),
        lang=fields.text("lang"),
        keywords=list(dict.fromkeys(keywords)),
        pictures=_pictures(fields),
        parent_url=referenced.get("replied_to"),
        quoted_url=referenced.get("quoted"),
        engagement=_engagement(fields),
    )
    yield from fields.findings


def _text(fields: Fields) -> str | None:
    note: Json = next((fields.object(name) for name in NOTES if fields.record.get(name)), {})
    holder = Fields(note, fields.findings) if note.get("text") else fields
    text = holder.text("text")
    if text is None:
        return None
    media_keys = set(Fields(fields.object("attachments")).texts("media_keys"))
    for link in Fields(holder.object("entities")).objects("urls"):
        short, long = link.get("url"), link.get("expanded_url")
        if not isinstance(short, str) or not short:
            continue
        picture = link.get("media_key") in media_keys or _is_own_picture(long)
        text = text.replace(short, "" if picture or not isinstance(long, str) else long)
    return html.unescape(text).strip()


def _is_own_picture(url: Any) -> bool:
    return isinstance(url, str) and bool(re.search(r"/status/\d+/(photo|video)/\d+/?$", url))


def _pictures(fields: Fields) -> list[Picture]:
    media = Fields(fields.object("attachments"), fields.findings).objects("media")
    shown = [Fields(one, fields.findings) for one in media if one.get("type") == "photo"]
    return [Picture(url=one.text("url"), alt_text=one.text("alt_text")) for one in shown]


def _engagement(fields: Fields) -> dict[str, int | None] | None:
    given = Fields(fields.object("public_metrics"), fields.findings)
    return {ours: given.count(theirs) for ours, theirs in COUNTS.items()} if given.record else None


def _references(record: Json) -> list[Json]:
    return [one for name in REFERENCES for one in Fields(record).objects(name)]


def _query(record: Json) -> Iterator[str]:
    url = Fields(Fields(record).object("__twarc")).text("url")
    if url:
        yield from parse_qs(urlsplit(url).query).get("query", [])


def _status(number: Any) -> str | None:
    return canonical_url(f"https://x.com/i/status/{number}") if str(number).isdigit() else None


def _missing(error: Json) -> Iterator[Parsed]:
    url = _status(error.get("resource_id") or error.get("value"))
    if url is None:
        yield Finding(Reject.NO_URL, "an error that names no post")
        return
    yield Post(url=url, platform="x", missing=_why(error))


def _why(error: Json) -> str:
    said = f"{error.get('title')} {error.get('detail')} {error.get('type')}".lower()
    if "suspend" in said or "withheld" in said or "blocked" in said:
        return Missing.BLOCKED
    if "authoriz" in said or "protected" in said:
        return Missing.PROTECTED
    return Missing.DELETED if "deleted" in said else Missing.NOT_FOUND


def _flattened(page: Json) -> Iterator[tuple[str, dict[str, Any]]]:
    includes = Fields(Fields(page).object("includes"))
    users = {one.get("id"): one for one in includes.objects("users")}
    media = {one.get("media_key"): one for one in includes.objects("media")}
    every = [one for name in INCLUDED for one in includes.objects(name)]
    by_id = {one.get("id"): one for one in every}
    data = page.get("data")
    found = data if isinstance(data, list) else [data] if isinstance(data, dict) else []
    nested: set[Any] = set()

    def flat(post: Json) -> dict[str, Any]:
        keys = Fields(Fields(post).object("attachments")).texts("media_keys")
        own = {"media_keys": keys, "media": [media[key] for key in keys if key in media]}
        return {**post, "author": users.get(post.get("author_id")), "attachments": own}

    def with_references(post: Json) -> dict[str, Any]:
        whole = flat(post)
        for name in REFERENCES:
            if name in post:
                whole[name] = [
                    {**flat(by_id.get(one.get("id"), {})), **one}
                    for one in Fields(post).objects(name)
                ]
                nested.update(one.get("id") for one in Fields(post).objects(name))
        return whole

    for number, post in enumerate(found):
        if isinstance(post, dict):
            yield f"#{number}", {**with_references(post), "__twarc": page.get("__twarc")}
        else:
            yield f"#{number}", {"not a post": post}
    for number, post in enumerate(every):
        if post.get("id") not in nested:
            yield f"#includes.{number}", {**flat(post), "_included": True}
    for number, error in enumerate(Fields(page).objects("errors")):
        if error.get("resource_type") in ("tweet", "post"):
            yield f"#errors.{number}", {"_missing": error}


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
