"""The crawl's ledger: what was asked, how far each question is, and every answer as it came."""

from __future__ import annotations

import dataclasses
import datetime
import json
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from echo_hf._infra.sqlite import Database
from echo_hf.collect.platforms.base import Answer, Kind, Question, TimeWindow
from echo_hf.collect.sources.base import Post
from echo_hf.collect.tombstones import STAND_IN
from echo_hf.collect.urls import post_id_of
from echo_hf.reasons import Missing

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
    return zlib.compress(body.encode("utf-8", "surrogatepass"))


def unpacked(data: bytes) -> str:
    return zlib.decompress(data).decode("utf-8", "surrogatepass")


COLUMNS = "platform, kind, about, language, starts, ends, round, origin"
ASKED = "questions.id, questions.cursor, questions.attempt, questions.pages, " + ", ".join(
    f"questions.{name}" for name in COLUMNS.split(", ")
)


class QuestionState(StrEnum):
    OPEN = "open"  # pages are left to ask for
    TROUBLED = "troubled"  # it failed in this run; the next one tries again
    REFUSED = "refused"  # it is never answered
    DONE = "done"
    UNPLANNED = "unplanned"  # the config asks it no more; one that does again goes on with it
    NEEDLESS = "needless"  # other answers brought all that it would have


@dataclass(frozen=True, slots=True)
class LedgerQuestion:
    id: int
    cursor: str | None
    attempt: int
    pages: int
    platform: str
    question: Question
    round: int
    origin: int | None = None


def asked_of(row: tuple[Any, ...]) -> LedgerQuestion:
    number, cursor, attempt, pages, platform, kind, about, language, starts, ends, *last = row
    read = datetime.datetime.fromisoformat
    window = None if starts is None else TimeWindow(read(starts), read(ends))
    question = Question(cast("Kind", kind), tuple(json.loads(about)), window, language)
    return LedgerQuestion(number, cursor, attempt, pages, platform, question, *last)


def moment(time: datetime.datetime) -> str:
    """A time as the ledger writes it: in UTC, so that equal times are equal texts."""
    return time.astimezone(datetime.UTC).isoformat()


def names(about: tuple[str, ...]) -> str:
    return json.dumps(about, ensure_ascii=False)


SPENT = """select coalesce(sum(requests), 0), coalesce(sum(posts), 0), coalesce(sum(cost_usd), 0),
    coalesce(sum(unpriced), 0), coalesce(sum(iif(kind = 'search', 0, posts)), 0)
    from questions where platform = ?"""


@dataclass(frozen=True, slots=True)
class Spent:
    requests: int
    posts: int
    cost_usd: float
    unpriced: int
    by_replies: int

    @property
    def cost(self) -> str:
        rest = f" and what {self.unpriced:,} pages of unknown price cost" if self.unpriced else ""
        return f"${self.cost_usd:.2f}{rest}"

    def plus(self, question: LedgerQuestion, answer: Answer, cost_usd: float | None) -> Spent:
        return Spent(
            self.requests + 1,
            self.posts + answer.posts,
            self.cost_usd + (cost_usd or 0.0),
            self.unpriced + (cost_usd is None),
            self.by_replies + (answer.posts if question.round else 0),
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


EXPANDED = "update seen set expanded = 1 where id = ?"
EVERY_ROUND = 2**31
MOST_REPLIES = 2**31  # whoever claims more is asked about all the same
# What has content beats what is missing, and may then be asked about once more.
ADD_SEEN = """
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
ADD_ASKED = "insert or ignore into asked values (?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Unexpanded:
    row: int
    round: int
    post: Post
    incomplete: bool


class CrawlLedger(Database):
    name = "ledger of collected posts"
    remedy = "ask for the posts again"
    schema = TABLES
    damage = (sqlite3.DatabaseError, zlib.error)

    def add_searches(self, platform: str, questions: Iterable[Question]) -> int:
        """Writes questions of the plan down, except those that stand there already."""
        with self.transaction() as connection:
            return sum(_add(connection, platform, one, 0) for one in questions)

    def next_question(self, platform: str) -> LedgerQuestion | None:
        """The first question with pages left to ask for, null where there is none."""
        return next((asked_of(row) for row in self.execute(NEXT, platform)), None)

    def keep(
        self, asked: LedgerQuestion, answer: Answer, posts: Iterable[Post], cost_usd: float | None
    ) -> None:
        """Writes a page down, with the cursor of the next one and the posts that it shows."""
        state = QuestionState.DONE if answer.cursor is None else QuestionState.OPEN
        body = packed(answer.body)
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        price = (cost_usd or 0.0, cost_usd is None)
        with self.transaction() as connection:
            connection.execute(KEEP, (asked.id, asked.attempt, asked.pages, body, now))
            seen = (_seen_row(asked.platform, post, asked.round) for post in posts)
            connection.executemany(ADD_SEEN, seen)
            connection.execute(TURN, (answer.cursor, state, answer.posts, *price, asked.id))
            if state is QuestionState.DONE:
                connection.execute(BEFORE, (asked.id, asked.attempt))

    def begin_again(self, asked: LedgerQuestion) -> None:
        """Lets a question be asked from its first page."""
        self.execute(AGAIN, asked.id)

    def put_aside(
        self, asked: LedgerQuestion, state: QuestionState, error: str | None = None
    ) -> None:
        """Asks a question no more: never, or not before `try_again`."""
        self.execute(ASIDE, state, error, asked.id)

    def try_again(self, platform: str) -> None:
        """Opens the questions that failed in an earlier run, or were not planned then."""
        self.execute(REOPEN, platform)

    def open_searches(self, platform: str) -> list[LedgerQuestion]:
        return [asked_of(row) for row in self.execute(SEARCHES, platform)]

    def has_troubled(self, platform: str) -> bool:
        """Whether questions failed and wait for the next run."""
        return bool(self.execute(TROUBLED, platform))

    def unexpanded(self, platform: str, most: int, rounds: int | None = None) -> list[Unexpanded]:
        """Posts whose trees were not asked for yet, in the order in which they were seen."""
        until = EVERY_ROUND if rounds is None else rounds
        return [_unexpanded(row) for row in self.execute(TO_EXPAND, platform, until, most)]

    def lacks_below(self, platform: str, post: Unexpanded) -> bool:
        """Whether a post at the top of its tree has replies below it that are incomplete."""
        rows = self.execute(BELOW, post.row, platform, platform)
        return post.post.parent_url is None and bool(rows)

    def tops(self, platform: str, posts: Sequence[Unexpanded]) -> list[Unexpanded]:
        """The topmost known posts above some, where they are others than these."""
        known = {one.row for one in posts}
        found = (
            _unexpanded(row)
            for one in posts
            if one.post.parent_url is not None
            for row in self.execute(TOP, one.row, platform, platform, platform)
        )
        return list({one.row: one for one in found if one.row not in known}.values())

    def is_needless(self, asked: LedgerQuestion) -> bool:
        """Whether other answers have brought the whole tree of a question's only post."""
        if asked.origin is None or asked.pages:
            return False
        return not self.execute(IS_INCOMPLETE, asked.origin)

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
            left = (self._not_asked_before(platform, one) for one in questions)
            new = sum(
                _add(connection, platform, one, in_round, origins.get(one.key))
                for one in left
                if one is not None
            )
            connection.executemany(EXPANDED, [(post.row,) for post in posts])
        return new

    def covered(self, platform: str, question: Question) -> datetime.datetime | None:
        """Until when earlier questions have asked for the beginning of a window; null for none."""
        if question.window is None:
            return None
        found: str | None = None
        start, end = moment(question.window.start), moment(question.window.end)
        while start < end:
            same = (platform, names(question.about), question.language, start, end)
            rows = self.execute(COVERED, *same)
            if not rows:
                break
            found = start = rows[0][0]
        return None if found is None else datetime.datetime.fromisoformat(found)

    def count_open(self, platform: str) -> int:
        return int(self.execute(UNFINISHED, platform)[0][0])

    def state(self, platform: str, question: Question) -> QuestionState | None:
        """How far a question is, null where it was never written down."""
        rows = self.execute(STATE, platform, question.key)
        return QuestionState(rows[0][0]) if rows else None

    def spent(self, platform: str) -> Spent:
        return Spent(*self.execute(SPENT, platform)[0])

    def _not_asked_before(self, platform: str, question: Question) -> Question | None:
        """What is left of a question without the identifiers that were asked about before."""
        if question.kind == "search":
            return question
        with self.opened() as connection:
            left = tuple(
                one
                for one in dict.fromkeys(question.about)
                if STAND_IN not in one  # nobody is asked about a forgotten post
                and not (question.kind == "posts" and self.execute(HELD, platform, one))
                and connection.execute(ADD_ASKED, (platform, question.kind, one)).rowcount
            )
        return dataclasses.replace(question, about=left) if left else None


def _add(
    connection: sqlite3.Connection,
    platform: str,
    question: Question,
    in_round: int,
    origin: int | None = None,
) -> int:
    window = question.window
    times = (moment(window.start), moment(window.end)) if window else (None, None)
    asked = (platform, question.kind, names(question.about), question.language, *times)
    row = (question.key, QuestionState.OPEN, *asked, in_round, origin)
    return connection.execute(ADD, row).rowcount


def _unexpanded(row: tuple[Any, ...]) -> Unexpanded:
    number, in_round, url, post_id, platform, author, parent, quoted, replies, missing, rest = row
    known = None if replies is None else {"replies": replies}
    post = Post(url, post_id, platform, author, parent_url=parent, quoted_url=quoted)
    post.engagement, post.missing = known, missing
    return Unexpanded(number, in_round, post, bool(rest))


def _seen_row(platform: str, post: Post, in_round: int) -> tuple[object, ...]:
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
