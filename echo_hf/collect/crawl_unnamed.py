"""Leave of forgotten posts no name in a crawl's ledger but the hash of their address.

The ledger names posts outside of its pages, too: those that it has seen, what they answer and
quote, and which of them a platform was asked about. A hash keeps their place in the trees.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from echo_hf.collect.crawl_question import ASKED, Asked, QuestionState, asked_of, names
from echo_hf.collect.crawl_tables import connected, explained, transaction
from echo_hf.collect.platforms.base import Question
from echo_hf.collect.tombstones import STAND_IN, hashed
from echo_hf.collect.urls import canonical_url, x_status_url
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
    """Puts hashes in the place of posts, in the file's bytes as well, and asks about them no more.

    Args:
        path: The file of the ledger; one that does not exist is left so.
        urls: Their canonical addresses.

    Raises:
        StoreError: The file is no such ledger, or cannot be used.
    """
    if not path.exists():
        return
    stand_ins = {url: STAND_IN + hashed(url) for url in urls}
    with closing(connected(path)) as connection, explained(path):
        connection.execute("pragma secure_delete = on")
        connection.execute("pragma temp_store = memory")
        connection.execute(GONE)
        connection.executemany("insert into gone values (?, ?)", stand_ins.items())
        with transaction(connection):
            theirs = _Theirs(stand_ins, _post_ids(connection))
            _forget_asked(connection, theirs)
            _forget_questions(connection, theirs)
            for change in (SEEN, ANSWERS, QUOTES):
                connection.execute(change)
        connection.execute("pragma wal_checkpoint(truncate)").fetchall()


@dataclass(frozen=True)
class _Theirs:
    """Tells the identifiers of forgotten posts from others.

    Attributes:
        stand_ins: By address what takes its place.
        post_ids: Addresses by platform and what it calls the post.
    """

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
    connection: sqlite3.Connection, asked: Asked, named: list[str | None], *, is_left: bool
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
