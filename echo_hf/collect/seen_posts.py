"""The posts that a crawl has seen, and those that must not be collected again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echo_hf.collect.platforms.base import Question
from echo_hf.collect.sources.base import Post
from echo_hf.collect.urls import canonical_url, post_id_of, x_status_url
from echo_hf.errors import RunError
from echo_hf.reasons import Missing

TOMBSTONES = "forgotten.jsonl"
STAND_IN = "urn:sha256:"


@dataclass(frozen=True)
class Tombstones:
    """The hashes of all posts that are forgotten."""

    hashes: frozenset[str] = frozenset()

    def __contains__(self, url: str) -> bool:
        return hashed(url) in self.hashes

    def stand_in(self, url: str | None) -> str | None:
        """What is written in the place of an address: the address, or its hash if forgotten."""
        return STAND_IN + hashed(url) if url is not None and url in self else url

    def cleared(self, post: Post) -> Post:
        """A post without what is to be forgotten."""
        parent, quoted = self.stand_in(post.parent_url), self.stand_in(post.quoted_url)
        if post.url in self:
            place = STAND_IN + hashed(post.url)
            post = Post(place, place, post.platform, missing=Missing.REMOVED.value)
        return dataclasses.replace(post, parent_url=parent, quoted_url=quoted)

    def are_named_in(self, record: Any) -> bool:
        """Whether a decoded record holds the address or the number of a forgotten post."""
        waiting = [record] if self.hashes else []
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value
            elif any(name in self for name in _addresses(value)):
                return True
        return False


def hashed(url: str) -> str:
    """Sha256 of an address."""
    return hashlib.sha256(url.encode()).hexdigest()


def read_tombstones(path: Path) -> Tombstones:
    """Reads the tombstones of a run."""
    if not path.exists():
        return Tombstones()
    lines = path.read_text("utf-8").splitlines()
    return Tombstones(frozenset(_hash(path, number, line) for number, line in enumerate(lines, 1)))


def add_tombstones(path: Path, urls: Iterable[str]) -> None:
    """Writes tombstones down; they outlive a killed process."""
    known = read_tombstones(path)
    new = dict.fromkeys(hashed(url) for url in urls if url not in known)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({"sha256": one}) + "\n" for one in new)
        file.flush()
        os.fsync(file.fileno())


def _addresses(value: Any) -> Iterator[str]:
    """The posts that a value may name: by an address, or by a number of X."""
    names = [x_status_url(value)]
    if isinstance(value, str):
        names += [canonical_url(value), canonical_url(value, fragment=True)]
    return (name for name in names if name)


def _hash(path: Path, number: int, line: str) -> str:
    try:
        found = json.loads(line)["sha256"]
        if len(found) == 64 and set(found) <= set("0123456789abcdef"):
            return str(found)
    except (ValueError, TypeError, KeyError):
        pass
    raise RunError(
        f"{str(path)!r}: line {number} is {line[:80]!r}, expected the hash of a forgotten post: "
        "mend or remove the line, and forget that post again"
    )


EVERY_ROUND = 2**31
MOST_REPLIES = 2**31  # whoever claims more is asked about all the same
# What has content beats what is missing, and may then be asked about once more.
ADD = """
insert into seen
    (platform, url, post_id, author, parent_url, quoted_url, replies, missing, found, round)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (platform, url) do update set
    post_id = coalesce(post_id, excluded.post_id),
    author = coalesce(author, excluded.author),
    parent_url = coalesce(parent_url, excluded.parent_url),
    quoted_url = coalesce(quoted_url, excluded.quoted_url),
    replies = max(coalesce(replies, excluded.replies), coalesce(excluded.replies, replies)),
    found = max(found, excluded.found),
    expanded = case when missing is not null and excluded.missing is null then 0 else expanded end,
    missing = case when missing is null or excluded.missing is null then null else missing end
"""
INCOMPLETE = """(missing is not null or replies is null
    or parent_url is not null and not exists (
        select 1 from seen as above where above.platform = post.platform
        and above.url = post.parent_url)
    or replies > (
        select count(*) from seen as below where below.platform = post.platform
        and below.parent_url = post.url))"""
PLACE = f"""id, round, url, post_id, platform, author, parent_url, quoted_url, replies, missing,
    {INCOMPLETE}"""
# A quote is no reply: what only quotes lead to waits until a term finds it, or a reply names it.
ONLY_QUOTED = """(not found and exists (
        select 1 from seen as quoting where quoting.platform = post.platform
        and quoting.quoted_url = post.url)
    and not exists (
        select 1 from seen as below where below.platform = post.platform
        and below.parent_url = post.url)
    and not exists (
        select 1 from seen as above where above.platform = post.platform
        and above.url = post.parent_url))"""
TO_EXPAND = f"""
select {PLACE} from seen as post where platform = ? and expanded = 0 and round < ?
and not {ONLY_QUOTED} order by id limit ?
"""  # noqa: S608
# A cycle has no top; to unite the same row twice ends it.
TOP = f"""
with recursive up (url, parent_url) as (
    select url, parent_url from seen where id = ?
    union select above.url, above.parent_url from seen as above, up
    where above.platform = ? and above.url = up.parent_url)
select {PLACE} from seen as post where platform = ? and url in (
    select url from up where parent_url is null or not exists (
        select 1 from seen as above where above.platform = ? and above.url = up.parent_url))
"""  # noqa: S608
BELOW = f"""
with recursive down (url) as (
    select url from seen where id = ?
    union select below.url from seen as below, down
    where below.platform = ? and below.parent_url = down.url)
select 1 from seen as post where platform = ? and url in (select url from down) and {INCOMPLETE}
limit 1
"""  # noqa: S608
IS_INCOMPLETE = f"select 1 from seen as post where id = ? and {INCOMPLETE}"  # noqa: S608
HELD = f"""select 1 from seen where platform = ? and post_id = ?
    and (missing is null or missing <> '{Missing.NOT_FETCHED}') limit 1"""  # noqa: S608
ASKED = "insert or ignore into asked values (?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Unexpanded:
    """A post whose tree was not asked for yet."""

    row: int
    round: int
    post: Post
    incomplete: bool


def add_seen(
    connection: sqlite3.Connection, platform: str, posts: Iterable[Post], in_round: int
) -> None:
    """Takes posts in, within the caller's transaction."""
    connection.executemany(ADD, (_row(platform, post, in_round) for post in posts))


def unexpanded(
    connection: sqlite3.Connection, platform: str, most: int, rounds: int | None = None
) -> list[Unexpanded]:
    """Posts whose trees were not asked for yet, in the order in which they were seen."""
    until = EVERY_ROUND if rounds is None else rounds
    return [_unexpanded(row) for row in connection.execute(TO_EXPAND, (platform, until, most))]


def tops(
    connection: sqlite3.Connection, platform: str, posts: Sequence[Unexpanded]
) -> list[Unexpanded]:
    """The topmost known posts above some, where they are others than these."""
    known = {one.row for one in posts}
    found = (
        _unexpanded(row)
        for one in posts
        if one.post.parent_url is not None
        for row in connection.execute(TOP, (one.row, platform, platform, platform))
    )
    return list({one.row: one for one in found if one.row not in known}.values())


def is_incomplete(connection: sqlite3.Connection, row: int) -> bool:
    """Whether an ancestor or replies of a post are unknown still, by its number in the ledger."""
    return connection.execute(IS_INCOMPLETE, (row,)).fetchone() is not None


def lacks_below(connection: sqlite3.Connection, platform: str, one: Unexpanded) -> bool:
    """Whether a post at the top of its tree has replies below it that are incomplete."""
    if one.post.parent_url is not None:
        return False
    return connection.execute(BELOW, (one.row, platform, platform)).fetchone() is not None


def not_asked_before(
    connection: sqlite3.Connection, platform: str, question: Question
) -> Question | None:
    """What is left of a question without the identifiers that were asked about before."""
    if question.kind == "search":
        return question
    left = tuple(
        one
        for one in dict.fromkeys(question.about)
        if STAND_IN not in one  # nobody is asked about a forgotten post
        and not (question.kind == "posts" and _is_held(connection, platform, one))
        and connection.execute(ASKED, (platform, question.kind, one)).rowcount
    )
    return Question(question.kind, left, question.window, question.language) if left else None


def mark_expanded(connection: sqlite3.Connection, rows: Sequence[int]) -> None:
    """Writes down that the trees of posts are asked for."""
    connection.executemany("update seen set expanded = 1 where id = ?", [(row,) for row in rows])


def _unexpanded(row: tuple[Any, ...]) -> Unexpanded:
    number, in_round, *place, incomplete = row
    return Unexpanded(number, in_round, _post(*place), bool(incomplete))


def _is_held(connection: sqlite3.Connection, platform: str, identifier: str) -> bool:
    return connection.execute(HELD, (platform, identifier)).fetchone() is not None


def _row(platform: str, post: Post, in_round: int) -> tuple[object, ...]:
    # Who does not know what a post answers has to ask about it, as if its replies were unknown.
    replies = None if post.unnamed_parent else (post.engagement or {}).get("replies")
    return (
        platform,
        _text(post.url),
        _text(post.post_id or post_id_of(post.url)),
        _text(post.author),
        _text(post.parent_url),
        _text(post.quoted_url),
        None if replies is None else min(replies, MOST_REPLIES),
        post.missing,
        bool(post.keywords),
        in_round,
    )


def _text(text: str | None) -> str | None:
    # Half characters are no text to SQLite.
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


def _post(
    url: str,
    post_id: str | None,
    platform: str,
    author: str | None,
    parent_url: str | None,
    quoted_url: str | None,
    replies: int | None,
    missing: str | None,
) -> Post:
    return Post(
        url=url,
        post_id=post_id,
        platform=platform,
        author=author,
        parent_url=parent_url,
        quoted_url=quoted_url,
        engagement=None if replies is None else {"replies": replies},
        missing=missing,
    )
