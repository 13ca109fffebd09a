"""The crawl's ledger: what was asked, how far each question is, and every answer as it came."""

from __future__ import annotations

import datetime
import json
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from echo_hf._infra.sqlite import Database
from echo_hf.collect.platforms.base import Answer, Kind, Question, Window
from echo_hf.collect.seen_posts import (
    Unexpanded,
    add_seen,
    is_incomplete,
    lacks_below,
    mark_expanded,
    not_asked_before,
    tops,
    unexpanded,
)
from echo_hf.collect.sources.base import Post

# A page is kept under the attempt that brought it: until a question that had to be asked again is
# done, what came before is better than nothing.
TABLES = """
create table if not exists questions (
    id integer primary key, platform text not null, key text not null, kind text not null,
    about text not null, language text, starts text, ends text, round integer not null,
    origin integer,
    state text not null, cursor text, attempt integer not null default 0,
    pages integer not null default 0, error text,
    requests integer not null default 0, posts integer not null default 0,
    cost_usd real not null default 0, unpriced integer not null default 0, unique (platform, key)
);
create index if not exists by_state on questions (platform, state, round, id);
create table if not exists answers (
    id integer primary key, question integer not null, attempt integer not null,
    page integer not null, body blob not null, fetched_at text not null,
    unique (question, attempt, page)
);
create table if not exists seen (
    id integer primary key, platform text not null, url text not null, post_id text, author text,
    parent_url text, quoted_url text, replies integer, missing text, found integer not null,
    round integer not null, expanded integer not null default 0, unique (platform, url)
);
create index if not exists by_parent on seen (platform, parent_url);
create index if not exists by_quoted on seen (platform, quoted_url) where quoted_url is not null;
create index if not exists by_post_id on seen (platform, post_id);
create index if not exists to_expand on seen (platform, id) where expanded = 0;
create table if not exists asked (
    platform text, kind text, identifier text, primary key (platform, kind, identifier)
) without rowid;
"""


def packed(body: str) -> bytes:
    """A page as the ledger keeps it."""
    return zlib.compress(body.encode("utf-8", "surrogatepass"))


def unpacked(data: bytes) -> str:
    """A page as it came."""
    return zlib.decompress(data).decode("utf-8", "surrogatepass")


COLUMNS = "platform, kind, about, language, starts, ends, round, origin"
ASKED = "questions.id, questions.cursor, questions.attempt, questions.pages, " + ", ".join(
    f"questions.{name}" for name in COLUMNS.split(", ")
)


class QuestionState(StrEnum):
    """How far a question is."""

    OPEN = "open"  # pages are left to ask for
    TROUBLED = "troubled"  # it failed in this run; the next one tries again
    REFUSED = "refused"  # it is never answered
    DONE = "done"
    UNPLANNED = "unplanned"  # the config asks it no more; one that does again goes on with it
    NEEDLESS = "needless"  # other answers brought all that it would have


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of the ledger, and how far it is."""

    id: int
    cursor: str | None
    attempt: int
    pages: int
    platform: str
    question: Question
    round: int
    origin: int | None = None


def row_of(platform: str, question: Question, in_round: int, origin: int | None) -> tuple[Any, ...]:
    """The values of `COLUMNS` for a question."""
    window = question.window
    times = (moment(window.start), moment(window.end)) if window else (None, None)
    return (
        platform,
        question.kind,
        names(question.about),
        question.language,
        *times,
        in_round,
        origin,
    )


def asked_of(row: tuple[Any, ...]) -> Asked:
    """A question from the columns `ASKED`."""
    number, cursor, attempt, pages, platform, kind, about, language, starts, ends, *last = row
    window = None if starts is None else Window(_time(starts), _time(ends))
    question = Question(cast("Kind", kind), tuple(json.loads(about)), window, language)
    return Asked(number, cursor, attempt, pages, platform, question, *last)


def moment(time: datetime.datetime) -> str:
    """A time as the ledger writes it: in UTC, so that equal times are equal texts."""
    return time.astimezone(datetime.UTC).isoformat()


def names(about: tuple[str, ...]) -> str:
    """What a question is about, as the ledger writes it."""
    return json.dumps(about, ensure_ascii=False)


def _time(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


SPENT = """select coalesce(sum(requests), 0), coalesce(sum(posts), 0), coalesce(sum(cost_usd), 0),
    coalesce(sum(unpriced), 0), coalesce(sum(iif(kind = 'search', 0, posts)), 0)
    from questions where platform = ?"""


@dataclass(frozen=True, slots=True)
class Spent:
    """What asking a platform has taken so far, in all runs."""

    requests: int
    posts: int
    cost_usd: float
    unpriced: int
    by_replies: int

    def plus(self, asked: Asked, answer: Answer, cost_usd: float | None) -> Spent:
        """The same after one more page."""
        return Spent(
            self.requests + 1,
            self.posts + answer.posts,
            self.cost_usd + (cost_usd or 0.0),
            self.unpriced + (cost_usd is None),
            self.by_replies + (answer.posts if asked.round else 0),
        )


LEDGER = "collected.sqlite"
ADD = f"""insert or ignore into questions (key, state, {COLUMNS})
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""  # noqa: S608
NEXT = f"""select {ASKED} from questions where platform = ? and state = 'open'
    order by round, id limit 1"""  # noqa: S608
KEEP = """insert into answers (question, attempt, page, body, fetched_at)
    values (?, ?, ?, ?, ?)"""
TURN = """update questions set cursor = ?, state = ?, pages = pages + 1, requests = requests + 1,
    posts = posts + ?, cost_usd = cost_usd + ?, unpriced = unpriced + ?, error = null
    where id = ?"""
BEFORE = "delete from answers where question = ? and attempt < ?"
AGAIN = "update questions set cursor = null, pages = 0, attempt = attempt + 1 where id = ?"
ASIDE = "update questions set state = ?, error = ? where id = ?"
REOPEN = """update questions set state = 'open'
    where platform = ? and state in ('troubled', 'unplanned')"""
SEARCHES = f"""select {ASKED} from questions where platform = ? and state = 'open'
    and kind = 'search'"""  # noqa: S608
TROUBLED = "select 1 from questions where platform = ? and state = 'troubled' limit 1"
UNFINISHED = """select count(*) from questions
    where platform = ? and state in ('open', 'troubled')"""
COVERED = """select ends from questions where platform = ? and kind = 'search' and about = ?
    and language is ? and starts = ? and ends <= ? order by ends desc limit 1"""
STATE = "select state from questions where platform = ? and key = ?"


class CrawlLedger(Database):
    """A ledger in a file."""

    name = "ledger of collected posts"
    remedy = "ask for the posts again"
    schema = TABLES
    damage = (zlib.error,)

    def add_searches(self, platform: str, questions: Iterable[Question]) -> int:
        """Writes questions of the plan down, except those that stand there already."""
        with self.transaction() as connection:
            return sum(_add(connection, platform, one, 0) for one in questions)

    def next_question(self, platform: str) -> Asked | None:
        """The first question with pages left to ask for, null where there is none."""
        return next((asked_of(row) for row in self.rows(NEXT, platform)), None)

    def keep(
        self, asked: Asked, answer: Answer, posts: Iterable[Post], cost_usd: float | None
    ) -> None:
        """Writes a page down, with the cursor of the next one and the posts that it shows."""
        state = QuestionState.DONE if answer.cursor is None else QuestionState.OPEN
        body = packed(answer.body)
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        price = (cost_usd or 0.0, cost_usd is None)
        with self.transaction() as connection:
            connection.execute(KEEP, (asked.id, asked.attempt, asked.pages, body, now))
            add_seen(connection, asked.platform, posts, asked.round)
            connection.execute(TURN, (answer.cursor, state, answer.posts, *price, asked.id))
            if state is QuestionState.DONE:
                connection.execute(BEFORE, (asked.id, asked.attempt))

    def begin_again(self, asked: Asked) -> None:
        """Lets a question be asked from its first page."""
        with self.transaction() as connection:
            connection.execute(AGAIN, (asked.id,))

    def put_aside(self, asked: Asked, state: QuestionState, error: str | None = None) -> None:
        """Asks a question no more: never, or not before `try_again`."""
        with self.transaction() as connection:
            connection.execute(ASIDE, (state, error, asked.id))

    def try_again(self, platform: str) -> None:
        """Opens the questions that failed in an earlier run, or were not planned then."""
        with self.transaction() as connection:
            connection.execute(REOPEN, (platform,))

    def open_searches(self, platform: str) -> list[Asked]:
        """The searches with pages left to ask for."""
        return [asked_of(row) for row in self.rows(SEARCHES, platform)]

    def has_troubled(self, platform: str) -> bool:
        """Whether questions failed and wait for the next run."""
        return bool(self.rows(TROUBLED, platform))

    def unexpanded(self, platform: str, most: int, rounds: int | None = None) -> list[Unexpanded]:
        """As `crawl_seen.unexpanded`."""
        with self.opened() as connection:
            return unexpanded(connection, platform, most, rounds)

    def lacks_below(self, platform: str, one: Unexpanded) -> bool:
        """As `crawl_seen.lacks_below`."""
        with self.opened() as connection:
            return lacks_below(connection, platform, one)

    def tops(self, platform: str, posts: Sequence[Unexpanded]) -> list[Unexpanded]:
        """As `crawl_seen.tops`."""
        with self.opened() as connection:
            return tops(connection, platform, posts)

    def is_needless(self, asked: Asked) -> bool:
        """Whether other answers have brought the whole tree of a question's only post."""
        if asked.origin is None or asked.pages:
            return False
        with self.opened() as connection:
            return not is_incomplete(connection, asked.origin)

    def expand(
        self,
        platform: str,
        posts: Sequence[Unexpanded],
        questions: Iterable[Question],
        origins: Mapping[str, int],
    ) -> int:
        """Writes down what to ask about posts, and that they need no more questions."""
        in_round = 1 + max((post.round for post in posts), default=0)
        with self.transaction() as connection:
            left = (not_asked_before(connection, platform, one) for one in questions)
            new = sum(
                _add(connection, platform, one, in_round, origins.get(one.key))
                for one in left
                if one is not None
            )
            mark_expanded(connection, [post.row for post in posts])
        return new

    def covered(self, platform: str, question: Question) -> datetime.datetime | None:
        """Until when earlier questions have asked for the beginning of a window; null for none."""
        if question.window is None:
            return None
        found: str | None = None
        start, end = moment(question.window.start), moment(question.window.end)
        while start < end:
            same = (platform, names(question.about), question.language, start, end)
            rows = self.rows(COVERED, *same)
            if not rows:
                break
            found = start = rows[0][0]
        return None if found is None else datetime.datetime.fromisoformat(found)

    def count_open(self, platform: str) -> int:
        """How many questions have pages left to ask for."""
        return int(self.rows(UNFINISHED, platform)[0][0])

    def state(self, platform: str, question: Question) -> QuestionState | None:
        """How far a question is, null where it was never written down."""
        rows = self.rows(STATE, platform, question.key)
        return QuestionState(rows[0][0]) if rows else None

    def spent(self, platform: str) -> Spent:
        """What asking a platform has taken so far."""
        return Spent(*self.rows(SPENT, platform)[0])


def _add(
    connection: sqlite3.Connection,
    platform: str,
    question: Question,
    in_round: int,
    origin: int | None = None,
) -> int:
    row = (question.key, QuestionState.OPEN, *row_of(platform, question, in_round, origin))
    return connection.execute(ADD, row).rowcount
