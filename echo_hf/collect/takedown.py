"""Take a post's content and name out of the pages that a crawl has stored."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echo_hf.collect.crawl_answers import StoredAnswer, posts_in, rewrite_answers
from echo_hf.collect.crawl_ledger import (
    ASKED,
    CrawlLedger,
    LedgerQuestion,
    QuestionState,
    asked_of,
    names,
)
from echo_hf.collect.nested_json import deep_dumps, deep_loads
from echo_hf.collect.platforms.base import Question
from echo_hf.collect.sources.base import make_source
from echo_hf.collect.tombstones import STAND_IN, hashed
from echo_hf.collect.urls import canonical_url, post_id_of, x_status_url
from echo_hf.reasons import Missing

# The addresses and what takes their place, so that each table is read once for all of them.
GONE = "create temp table gone (url text primary key, name text not null) without rowid"
NAME = "(select name from gone where gone.url = seen.{})".format
SEEN = f"""update or replace seen set url = {NAME("url")}, post_id = {NAME("url")}, author = null,
    parent_url = null, quoted_url = null, replies = 0, missing = '{Missing.REMOVED}', found = 0,
    expanded = 1 where url in (select url from gone)"""  # noqa: S608
ANSWERS, QUOTES = (
    f"update seen set {one} = {NAME(one)} where {one} in (select url from gone)"  # noqa: S608
    for one in ("parent_url", "quoted_url")
)
POST_IDS = """select platform, post_id, url from seen
    where post_id is not null and url in (select url from gone)"""
EVERY_ASKED = "select platform, kind, identifier from asked"
NOT_ASKED = "delete from asked where platform = ? and kind = ? and identifier = ?"
QUESTIONS = f"select questions.state, {ASKED} from questions where kind <> 'search'"  # noqa: S608
UNNAMED = "update questions set about = ?, key = ?, error = null where id = ?"
NEEDLESS = "update questions set state = ?, cursor = null where id = ?"
AGAIN = """update questions set cursor = null, pages = 0, attempt = attempt + 1
    where id = ? and pages > 0"""
UNFINISHED = (QuestionState.OPEN, QuestionState.TROUBLED)


def forget_names(path: Path, urls: Iterable[str]) -> None:
    """Puts hashes in the place of posts, in the file's bytes as well."""
    if not path.exists():
        return
    stand_ins = {url: STAND_IN + hashed(url) for url in urls}
    with CrawlLedger(path) as ledger:
        ledger.execute("pragma temp_store = memory")
        with ledger.erasing() as connection:
            connection.execute(GONE)
            connection.executemany("insert into gone values (?, ?)", stand_ins.items())
            theirs = _Theirs(stand_ins, _post_ids(connection))
            _forget_asked(connection, theirs)
            _forget_questions(connection, theirs)
            for change in (SEEN, ANSWERS, QUOTES):
                connection.execute(change)


@dataclass(frozen=True)
class _Theirs:
    stand_ins: Mapping[str, str]
    post_ids: Mapping[tuple[str, str], str]

    def stand_in(self, platform: str, identifier: str) -> str | None:
        """What takes the place of an identifier, null when it is nobody's of them."""
        addresses = [canonical_url(word) for word in identifier.split()]
        if platform == "x":
            addresses.append(x_status_url(identifier))
        addresses.append(self.post_ids.get((platform, identifier)))
        return next(
            (self.stand_ins[one] for one in addresses if one and one in self.stand_ins), None
        )


def _post_ids(connection: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """What platforms call the posts, and their addresses."""
    found = connection.execute(POST_IDS)
    return {(platform, post_id): url for platform, post_id, url in found}


def _forget_asked(connection: sqlite3.Connection, theirs: _Theirs) -> None:
    for platform, kind, identifier in connection.execute(EVERY_ASKED).fetchall():
        if theirs.stand_in(platform, identifier) is not None:
            connection.execute(NOT_ASKED, (platform, kind, identifier))


def _forget_questions(connection: sqlite3.Connection, theirs: _Theirs) -> None:
    for state, *row in connection.execute(QUESTIONS).fetchall():
        asked = asked_of(tuple(row))
        about = asked.question.about
        named = [theirs.stand_in(asked.platform, one) for one in about]
        if any(named):
            _unname(connection, asked, named, is_left=state in UNFINISHED)


def _unname(
    connection: sqlite3.Connection, asked: LedgerQuestion, named: list[str | None], *, is_left: bool
) -> None:
    """Takes forgotten posts out of a question; what is left of it is still to be asked."""
    pairs = list(zip(asked.question.about, named, strict=True))
    rest = tuple(own for own, name in pairs if name is None)
    about = rest if is_left and rest else tuple(name or own for own, name in pairs)
    key = Question(asked.question.kind, about, None, asked.question.language).key
    connection.execute(UNNAMED, (names(about), key, asked.id))
    if is_left and rest:
        connection.execute(AGAIN, (asked.id,))  # a cursor belongs to the question as it was
    elif is_left:
        connection.execute(NEEDLESS, (QuestionState.NEEDLESS, asked.id))


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
    """Takes posts out of the stored pages of a crawl, and their names out of its ledger."""
    forgotten = frozenset(urls)

    def change(answer: StoredAnswer) -> str | None:
        return without_posts(answer.body, answer.asked.platform, forgotten)

    changed = rewrite_answers(path, change)
    forget_names(path, forgotten)
    return changed


def without_posts(body: str, platform: str, urls: frozenset[str]) -> str | None:
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
    """Drops authors and images that only the forgotten posts named."""
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
