"""Remember which posts were taken down, and take them out of the pages that a crawl stores."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echo_hf.collect.fields import read_json
from echo_hf.collect.sources.base import Post, make_source, posts_in
from echo_hf.collect.urls import canonical_url, post_id_of, x_status_url
from echo_hf.errors import RunError
from echo_hf.reasons import Missing

TOMBSTONES = "forgotten.jsonl"
STAND_IN = "urn:sha256:"
HASH = re.compile(r"[0-9a-f]{64}")
NUMBERS = ("id", "id_str")  # which name a post of X, and anything else elsewhere
NAMING = frozenset({"$type", "type", "kind", "cid", "objectID", "visibility", "in_reply_to_id",
                    "parent_id", "link_id", "conversation_id", *NUMBERS, "uri"})  # fmt: skip
REFERENCES = ("referenced_tweets", "referenced_posts")
PLACES = frozenset({"reply", "parent", "root", "record", *REFERENCES})
OTHERS = frozenset({"children", "replies", "comments"})  # posts below it, in the same object
BESIDE = "includes"
DEEPEST = 6  # no platform names a post's parent farther inside
WORD = re.compile(r"[\w~-]+")
Json = dict[str, Any]


@dataclass(frozen=True)
class Tombstones:
    hashes: frozenset[str] = frozenset()

    def __contains__(self, url: str) -> bool:
        return hashed(url) in self.hashes

    def stand_in(self, url: str | None) -> str | None:
        """What is written in the place of an address: the address, or its hash if forgotten."""
        return STAND_IN + hashed(url) if url is not None and url in self else url

    def cleared(self, post: Post) -> Post:
        if not self.hashes:
            return post
        parent, quoted = self.stand_in(post.parent_url), self.stand_in(post.quoted_url)
        if post.url in self:
            place = STAND_IN + hashed(post.url)
            post = Post(place, place, post.platform, missing=Missing.REMOVED.value)
        return dataclasses.replace(post, parent_url=parent, quoted_url=quoted)

    def are_named_in(self, record: Any) -> bool:
        """Whether a record names one of the posts: by an address, or by a number of X."""
        return any(
            name in self
            for value in (_inside(record) if self.hashes else ())
            for name in (
                x_status_url(value),
                canonical_url(value),
                canonical_url(value, fragment=True),
            )
            if name
        )


def hashed(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()


def read_tombstones(path: Path) -> Tombstones:
    hashes = set()
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    for number, line in enumerate(lines, 1):
        read = read_json(line)
        found = read.get("sha256") if isinstance(read, dict) else None
        if not isinstance(found, str) or not HASH.fullmatch(found):
            raise RunError(
                f"{str(path)!r}: line {number} is {line[:80]!r}, expected the hash of a forgotten "
                "post: fix or remove the line, and forget that post again"
            )
        hashes.add(found)
    return Tombstones(frozenset(hashes))


def add_tombstones(path: Path, hashes: Iterable[str]) -> None:
    """Writes tombstones down; they outlive a killed process."""
    known = read_tombstones(path).hashes
    new = dict.fromkeys(one for one in hashes if one not in known)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({"sha256": one}) + "\n" for one in new)
        file.flush()
        os.fsync(file.fileno())


def without_posts(body: str, platform: str, urls: frozenset[str]) -> str | None:
    """A page without the content of posts; null where nothing of it is safe to keep."""
    names = {words[-1] for url in urls if (words := WORD.findall(url))}
    if names.isdisjoint(WORD.findall(body)):
        return body
    source = make_source(platform)
    try:
        page = json.loads(body)
    except (ValueError, RecursionError):
        return None

    def told(text: str) -> frozenset[str]:
        """What the platform calls those of the posts of which its reader finds content."""
        return frozenset(
            post.post_id or post_id_of(post.url)
            for post in posts_in(text, source)
            if post.url in urls and (post.text or post.pictures)
        )

    objects = [one for one in _inside(page) if isinstance(one, dict)]
    theirs = [one for one in objects if _is_theirs(one, platform, urls)]
    if not theirs:  # a platform that gives posts no address
        known = told(body)
        theirs = [one for one in objects if str(one.get("id")) in known]
    lost: set[str] = set()
    for one in theirs:
        left = _left(one)
        if left != one:
            lost.update(_scalars(one))
            one.clear()
            one.update(left)
    if lost:
        _take_beside(page, lost)
        body = json.dumps(page)
    # Of a page in a form that nobody knows, nothing is better than a part.
    return None if told(body) else body


def _inside(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one, dict | list):
            waiting += one.values() if isinstance(one, dict) else one


def _scalars(value: Any) -> Iterator[str]:
    return (str(one) for one in _inside(value) if isinstance(one, str | int))


def _is_theirs(one: Json, platform: str, urls: frozenset[str]) -> bool:
    """Whether an object is one of the posts, or repeats its words."""
    lists = [one[name] for name in REFERENCES if isinstance(one.get(name), list)]
    references = [each for some in lists for each in some if isinstance(each, dict)]
    repeated = [each for each in references if each.get("type") == "retweeted"]
    for each in (one, one.get("reblog"), *repeated):
        if isinstance(each, dict):
            found = {canonical_url(each.get(name)) for name in ("uri", "url")}
            if platform == "x":
                found |= {x_status_url(each.get(name)) for name in NUMBERS}
            if not urls.isdisjoint(found - {None}):
                return True
    return False


def _left(one: Json, deep: int = 0) -> Json:
    """What is kept of a post: what others call it, where it stands, and the posts below it."""
    kept: Json = {}
    for name, value in one.items():
        is_inner = isinstance(value, dict | list)
        if (name in OTHERS and is_inner and deep == 0) or (name in NAMING and not is_inner):
            kept[name] = value
        elif name in PLACES and is_inner and deep < DEEPEST:
            inner = value if isinstance(value, list) else [value]
            left = [_left(each, deep + 1) for each in inner if isinstance(each, dict)]
            kept[name] = left if isinstance(value, list) else left[0]
    if not kept.keys() & {*NUMBERS, "uri"} and isinstance(one.get("url"), str):
        kept["url"] = one["url"]
    return kept


def _take_beside(page: Any, lost: set[str]) -> None:
    """Drops authors and images that only the forgotten posts named."""
    beside = page.get(BESIDE) if isinstance(page, dict) else None
    if not isinstance(beside, dict):
        return
    rest = {name: value for name, value in page.items() if name != BESIDE}
    posts = [beside[name] for name in ("tweets", "posts") if name in beside]
    gone = lost - set(_scalars([rest, posts]))

    for kind, entries in beside.items():
        if kind not in ("tweets", "posts") and isinstance(entries, list):
            beside[kind] = [
                one
                for one in entries
                if not isinstance(one, dict)
                or gone.isdisjoint(_scalars([one.get("id"), one.get("media_key")]))
            ]
