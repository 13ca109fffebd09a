"""Take a post's content out of the pages that a crawl has stored, and leave the pages readable.

A page holds several posts, and often more than once: the post itself, an author and pictures beside
it, a repost with the same words. What stays of a forgotten post are the names by which others refer
to it, so that their places in the tree are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from echo_hf.collect.crawl_answers import StoredAnswer, posts_in, rewrite_answers
from echo_hf.collect.crawl_unnamed import forget_names
from echo_hf.collect.deep_dump import deep_dumps
from echo_hf.collect.deep_json import deep_loads
from echo_hf.collect.platforms.base import Question
from echo_hf.collect.sources.base import make_source
from echo_hf.collect.urls import canonical_url, post_id_of, x_status_url

ADDRESSES = ("uri", "url")
NUMBERS = ("id", "id_str")  # which name a post of X, and anything else elsewhere
NAMING = frozenset({"$type", "type", "kind", "cid", "objectID", "visibility", "in_reply_to_id",
                    "parent_id", "link_id", "conversation_id", *NUMBERS, "uri"})  # fmt: skip
PLACES = frozenset({"reply", "parent", "root", "record", "referenced_tweets", "referenced_posts"})
OTHERS = frozenset({"children", "replies", "comments"})  # posts below it, in the same object
REPEATED = ("reblog",)
REFERENCES = ("referenced_tweets", "referenced_posts")
BESIDE = "includes"
BESIDE_NAMES = ("id", "media_key")
DEEPEST = 6  # no platform names a post's parent farther inside
WORD = re.compile(r"[\w~-]+")
Json = dict[str, Any]


def forget_answers(path: Path, urls: Iterable[str]) -> int:
    """Takes posts out of the stored pages of a crawl, and their names out of its ledger.

    Args:
        path: The file of its ledger; one that does not exist is left so.
        urls: Their canonical addresses.

    Returns:
        How many pages were changed.

    Raises:
        StoreError: The file is no such ledger, or cannot be used.
    """
    forgotten = frozenset(urls)

    def change(answer: StoredAnswer) -> str | None:
        return without_posts(answer.body, answer.asked.platform, forgotten)

    changed = rewrite_answers(path, change)
    forget_names(path, forgotten)
    return changed


def without_posts(body: str, platform: str, urls: frozenset[str]) -> str | None:
    """A page without the content of some posts.

    Args:
        body: The JSON text of a page.
        platform: Name of the platform that gave it.
        urls: Canonical addresses of the posts.

    Returns:
        The page; the very same text where it holds none of them, null for one that names them and
        cannot be read.

    Example:
        >>> page = '{"posts": [{"uri": "at://did:plc:a/app.bsky.feed.post/3k", "text": "mine"}]}'
        >>> url = "https://bsky.app/profile/did:plc:a/post/3k"
        >>> without_posts(page, "bluesky", frozenset({url}))
        '{"posts": [{"uri": "at://did:plc:a/app.bsky.feed.post/3k"}]}'
    """
    names = {words[-1] for url in urls if (words := WORD.findall(url))}
    if names.isdisjoint(WORD.findall(body)):
        return body
    try:
        page = deep_loads(body)
    except ValueError:
        return None
    theirs = [one for one in _objects(page) if _is_theirs(one, platform, urls)]
    if not theirs:  # a platform that gives posts no address
        told = _told(body, platform, urls)
        theirs = [one for one in _objects(page) if str(one.get("id")) in told]
    lost = _empty(theirs)
    _take_beside(page, lost)
    left = deep_dumps(page) if lost else body
    # Of a page in a form that nobody knows, nothing is better than a part.
    return None if _told(left, platform, urls) else left


def _told(body: str, platform: str, urls: frozenset[str]) -> frozenset[str]:
    """What the platform calls those of the posts of which its reader finds content in a page."""
    posts = posts_in(body, Question("posts", ()), make_source(platform))
    return frozenset(
        post.post_id or post_id_of(post.url)
        for post in posts
        if post.url in urls and (post.text or post.pictures)
    )


def _empty(objects: Iterable[Json]) -> set[str]:
    """Takes all but names out of objects; gives what was in them."""
    lost: set[str] = set()
    for one in objects:
        left = _left(one)
        if left != one:
            lost.update(_scalars(one))
            one.clear()
            one.update(left)
    return lost


def _objects(page: Any) -> Iterator[Json]:
    waiting = [page]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
            yield value
        elif isinstance(value, list):
            waiting += value


def _is_theirs(one: Json, platform: str, urls: frozenset[str]) -> bool:
    """Whether an object is one of the posts, or repeats its words."""
    if _names(one, platform, urls):
        return True
    for name in REPEATED:
        if isinstance(one.get(name), dict) and _names(one[name], platform, urls):
            return True
    return any(
        reference.get("type") == "retweeted" and _names(reference, platform, urls)
        for name in REFERENCES
        if isinstance(one.get(name), list)
        for reference in one[name]
        if isinstance(reference, dict)
    )


def _names(one: Mapping[str, Any], platform: str, urls: frozenset[str]) -> bool:
    given = (one.get(name) for name in ADDRESSES)
    found = {canonical_url(value) for value in given if isinstance(value, str)}
    if platform == "x":
        found |= {x_status_url(one.get(name)) for name in NUMBERS}
    return not urls.isdisjoint(found - {None})


def _left(one: Json, deep: int = 0) -> Json:
    """What is kept of a post: what others call it, where it stands, and the posts below it."""
    kept: Json = {}
    for name, value in one.items():
        is_inner = isinstance(value, dict | list)
        if (name in OTHERS and is_inner and deep == 0) or (name in NAMING and not is_inner):
            kept[name] = value
        elif name in PLACES and deep < DEEPEST and isinstance(value, dict):
            kept[name] = _left(value, deep + 1)
        elif name in PLACES and deep < DEEPEST and isinstance(value, list):
            kept[name] = [_left(inner, deep + 1) for inner in value if isinstance(inner, dict)]
    if not kept.keys() & {*NUMBERS, "uri"} and isinstance(one.get("url"), str):
        kept["url"] = one["url"]
    return kept


def _take_beside(page: Any, lost: set[str]) -> None:
    """Drops authors and pictures that only the forgotten posts named."""
    beside = page.get(BESIDE) if isinstance(page, dict) else None
    if not lost or not isinstance(beside, dict):
        return
    rest = {name: value for name, value in page.items() if name != BESIDE}
    posts = [beside[name] for name in ("tweets", "posts") if name in beside]
    named = set(_scalars([rest, posts]))
    for kind, entries in beside.items():
        if kind in ("tweets", "posts") or not isinstance(entries, list):
            continue
        beside[kind] = [one for one in entries if not _called(one) & (lost - named)]


def _called(entry: Any) -> set[str]:
    given = [entry.get(name) for name in BESIDE_NAMES] if isinstance(entry, dict) else []
    return {str(one) for one in given if isinstance(one, str | int)}


def _scalars(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, str | int):
            yield str(one)
