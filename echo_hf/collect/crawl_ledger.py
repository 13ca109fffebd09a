"""The crawl's ledger: what was asked, how far each question is, and every answer as it came."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import io
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from echo_hf._infra.sqlite import Database
from echo_hf.collect.platforms.base import Answer, Kind, Question, TimeWindow
from echo_hf.collect.sources.base import Post, make_source
from echo_hf.collect.takedown import STAND_IN, hashed, page_source, without_posts
from echo_hf.collect.urls import canonical_url, post_id_of, x_status_url
from echo_hf.reasons import CrawlEnd, Missing

LEDGER = "collected.sqlite"
FIRST_LINE = ":1"  # a page as it came is one document: its line says nothing
EVERY_ROUND = 2**31
MOST_REPLIES = 2**31  # whoever claims more is asked about all the same
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
COLUMNS = "platform, kind, about, language, starts, ends, round, origin"
ASKED = "questions.id, questions.cursor, questions.attempt, questions.pages, " + ", ".join(
    f"questions.{name}" for name in COLUMNS.split(", ")
)
OPEN = f"select {ASKED} from questions where platform = ? and state = 'open' "  # noqa: S608
ADD_QUESTION = f"""insert or ignore into questions (key, state, {COLUMNS})
    values (?, 'open'{", ?" * 8})"""  # noqa: S608
ADD_ANSWER = """insert into answers (question, attempt, page, body, fetched_at)
    values (?, ?, ?, ?, ?)"""
TURN = """update questions set cursor = ?, state = ?, pages = pages + 1, requests = requests + 1,
    posts = posts + ?, cost_usd = cost_usd + ?, unpriced = unpriced + ?, error = null
    where id = ?"""
ASIDE = "update questions set state = ?, error = ? where id = ?"
AGAIN = "update questions set cursor = null, pages = 0, attempt = attempt + 1 where id = ?"
COVERED = """select ends from questions where platform = ? and kind = 'search' and about = ?
    and language is ? and starts = ? and ends <= ? order by ends desc limit 1"""
SPENT = """select coalesce(sum(requests), 0), coalesce(sum(posts), 0), coalesce(sum(cost_usd), 0),
    coalesce(sum(unpriced), 0), coalesce(sum(iif(kind = 'search', 0, posts)), 0)
    from questions where platform = ?"""
ERRORS = """select error, count(*) from questions where platform = ? and error is not null
    group by error order by count(*) desc, error limit 3"""
ANSWERS = f"""select answers.id, answers.attempt, answers.page, body, {ASKED}
    from answers join questions on question = questions.id
    where platform = ? order by questions.id, answers.attempt, answers.page"""  # noqa: S608
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
TO_EXPAND = f"""
select {PLACE} from seen as post where platform = ? and expanded = 0 and round < ?
and not (not found and exists (
        select 1 from seen as quoting where quoting.platform = post.platform
        and quoting.quoted_url = post.url)
    and not exists (
        select 1 from seen as below where below.platform = post.platform
        and below.parent_url = post.url)
    and not exists (
        select 1 from seen as above where above.platform = post.platform
        and above.url = post.parent_url)) order by id limit ?
"""  # noqa: S608
# A cycle has no top; to unite the same row twice ends it.
TOP = f"""
with recursive up (url, parent_url) as (
    select url, parent_url from seen where id = :row
    union select above.url, above.parent_url from seen as above, up
    where above.platform = :platform and above.url = up.parent_url)
select {PLACE} from seen as post where platform = :platform and url in (
    select url from up where parent_url is null or not exists (
        select 1 from seen as above where above.platform = :platform and above.url = up.parent_url))
"""  # noqa: S608
BELOW = f"""
with recursive down (url) as (
    select url from seen where id = :row
    union select below.url from seen as below, down
    where below.platform = :platform and below.parent_url = down.url)
select 1 from seen as post where platform = :platform and url in (select url from down)
and {INCOMPLETE} limit 1
"""  # noqa: S608
IS_INCOMPLETE = f"select 1 from seen as post where id = ? and {INCOMPLETE}"  # noqa: S608
HELD = f"""select 1 from seen where platform = ? and post_id = ?
    and (missing is null or missing <> '{Missing.NOT_FETCHED}') limit 1"""  # noqa: S608
ADD_ASKED = "insert or ignore into asked values (?, ?, ?)"
# The addresses and what takes their place, so that each table is read once for all of them.
GONE = "create temp table gone (url text primary key, name text not null) without rowid"
NAME = "(select name from gone where gone.url = seen.{})".format
UNSEEN = (
    f"""update or replace seen set url = {NAME("url")}, post_id = {NAME("url")}, author = null,
    parent_url = null, quoted_url = null, replies = 0, missing = '{Missing.REMOVED}', found = 0,
    expanded = 1 where url in (select url from gone)""",  # noqa: S608
    *(
        f"update seen set {one} = {NAME(one)} where {one} in (select url from gone)"  # noqa: S608
        for one in ("parent_url", "quoted_url")
    ),
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


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    id: int
    attempt: int
    page: int
    body: str
    asked: LedgerQuestion

    @property
    def place(self) -> str:
        question, window = self.asked.question, self.asked.question.window
        first, *others = question.about or ("",)
        said = f"{question.kind} {first}" + (f" and {len(others)} more" if others else "")
        if question.kind == "search":
            language = f" in {question.language}" if question.language else ""
            when = f" {_day(window.start)} to {_day(window.end)}" if window else ""
            said = f'search "{first}"{language}{when}'
        again = f" attempt {self.attempt + 1}" if self.attempt else ""
        return f"{self.asked.platform}/{said}{again} page {self.page + 1}"

    @property
    def keywords(self) -> tuple[str, ...]:
        question = self.asked.question
        return question.about if question.kind == "search" else ()

    @property
    def source(self) -> str:
        return page_source(self.body, self.asked.platform)[0]

    def records(self) -> Iterator[tuple[str, str]]:
        source, text = page_source(self.body, self.asked.platform)
        for place, record in make_source(source).split(io.StringIO(text, newline="\n")):
            line = place.removeprefix(FIRST_LINE) if text is self.body else place
            yield self.place + line, record


@dataclass(slots=True)
class Spent:
    requests: int = 0
    posts: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    by_replies: int = 0

    def add(self, posts: int, cost_usd: float | None, *, by_replies: bool) -> None:
        self.requests += 1
        self.posts += posts
        self.cost_usd += cost_usd or 0.0
        self.unpriced += cost_usd is None
        self.by_replies += posts if by_replies else 0

    @property
    def cost(self) -> str:
        rest = f" and what {self.unpriced:,} pages of unknown price cost" if self.unpriced else ""
        return f"${self.cost_usd:.2f}{rest}"


@dataclass(frozen=True, slots=True)
class CrawlStats:
    platform: str
    end: CrawlEnd
    by_terms: int
    by_replies: int
    missing: Mapping[str, int]
    questions: Mapping[str, int]
    errors: Mapping[str, int]
    spent: Spent
    waits: int = 0
    waited_s: float = 0.0
    seconds: float = 0.0

    @property
    def missed_by_terms(self) -> float | None:
        """The share of posts that search terms alone would have missed; null without posts."""
        every = self.by_terms + self.by_replies
        return self.by_replies / every if every else None


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

    def add_searches(self, platform: str, questions: Iterable[Question]) -> None:
        with self.transaction() as connection:
            for one in questions:
                _add(connection, platform, one, 0)

    def next_question(self, platform: str) -> LedgerQuestion | None:
        """The first question with pages left to ask for, null where there is none."""
        while rows := self.execute(f"{OPEN} order by round, id limit 1", platform):
            asked = _asked_of(rows[0])
            # Nobody is asked about a forgotten post.
            about = tuple(one for one in asked.question.about if not one.startswith(STAND_IN))
            # Others' answers may have brought the whole tree of a question's only post meanwhile.
            if about and (
                asked.origin is None or asked.pages or self.execute(IS_INCOMPLETE, asked.origin)
            ):
                question = dataclasses.replace(asked.question, about=about)
                return dataclasses.replace(asked, question=question)
            self.put_aside(asked, QuestionState.NEEDLESS)
        return None

    def open_searches(self, platform: str) -> list[LedgerQuestion]:
        return [_asked_of(row) for row in self.execute(f"{OPEN} and kind = 'search'", platform)]

    def keep(
        self, asked: LedgerQuestion, answer: Answer, posts: Iterable[Post], cost_usd: float | None
    ) -> None:
        """Writes a page down, with the cursor of the next one and the posts that it shows."""
        state = QuestionState.DONE if answer.cursor is None else QuestionState.OPEN
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        page = (asked.id, asked.attempt, asked.pages, _packed(answer.body), now)
        price = (cost_usd or 0.0, cost_usd is None)
        with self.transaction() as connection:
            connection.execute(ADD_ANSWER, page)
            seen = (_seen_row(asked.platform, post, asked.round) for post in posts)
            connection.executemany(ADD_SEEN, seen)
            connection.execute(TURN, (answer.cursor, state, answer.posts, *price, asked.id))
            if state is QuestionState.DONE:
                before = "delete from answers where question = ? and attempt < ?"
                connection.execute(before, (asked.id, asked.attempt))

    def begin_again(self, asked: LedgerQuestion) -> None:
        self.execute(AGAIN, asked.id)

    def put_aside(
        self, asked: LedgerQuestion, state: QuestionState, error: str | None = None
    ) -> None:
        """Asks a question no more: never, or not before `try_again`."""
        self.execute(ASIDE, state, error, asked.id)

    def try_again(self, platform: str) -> None:
        """Opens the questions that failed in an earlier run, or were not planned then."""
        waiting = "platform = ? and state in ('troubled', 'unplanned')"
        self.execute(f"update questions set state = 'open' where {waiting}", platform)  # noqa: S608

    def states(self, platform: str) -> dict[str, int]:
        counts = "select state, count(*) from questions where platform = ? group by 1 order by 1"
        return dict(self.execute(counts, platform))

    def unexpanded(self, platform: str, most: int, rounds: int | None = None) -> list[Unexpanded]:
        """Posts whose trees were not asked for yet, in the order in which they were seen."""
        until = EVERY_ROUND if rounds is None else rounds
        return [_unexpanded(row) for row in self.execute(TO_EXPAND, platform, until, most)]

    def lacks_below(self, platform: str, post: Unexpanded) -> bool:
        """Whether a post at the top of its tree has replies below it that are incomplete."""
        is_top = post.post.parent_url is None
        return is_top and bool(self.execute(BELOW, row=post.row, platform=platform))

    def tops(self, platform: str, posts: Sequence[Unexpanded]) -> list[Unexpanded]:
        """The topmost known posts above some, where they are others than these."""
        known = {one.row for one in posts}
        below = [one.row for one in posts if one.post.parent_url is not None]
        rows = (row for one in below for row in self.execute(TOP, row=one, platform=platform))
        tops = map(_unexpanded, rows)
        return list({one.row: one for one in tops if one.row not in known}.values())

    def expand(
        self,
        platform: str,
        posts: Sequence[Unexpanded],
        questions: Iterable[Question],
        origins: Mapping[str, int],
    ) -> int:
        """Writes down what to ask about posts, and that they need no more questions."""
        new, in_round = 0, 1 + max((post.round for post in posts), default=0)
        with self.transaction() as connection:
            for one in questions:
                about = one.about
                if one.kind != "search":
                    about = tuple(
                        name
                        for name in dict.fromkeys(one.about)
                        if STAND_IN not in name  # nobody is asked about a forgotten post
                        and not (one.kind == "posts" and self.execute(HELD, platform, name))
                        and connection.execute(ADD_ASKED, (platform, one.kind, name)).rowcount
                    )
                if about:
                    left = dataclasses.replace(one, about=about)
                    new += _add(connection, platform, left, in_round, origins.get(one.key))
            done = [(post.row,) for post in posts]
            connection.executemany("update seen set expanded = 1 where id = ?", done)
        return new

    def covered(self, platform: str, question: Question) -> datetime.datetime | None:
        """Until when earlier questions have asked for the beginning of a window; null for none."""
        if question.window is None:
            return None
        found: str | None = None
        start, end = map(_moment, (question.window.start, question.window.end))
        same = (platform, _names(question.about), question.language)
        while start < end and (rows := self.execute(COVERED, *same, start, end)):
            found = start = rows[0][0]
        return None if found is None else datetime.datetime.fromisoformat(found)

    def state(self, platform: str, question: Question) -> QuestionState | None:
        """How far a question is, null where it was never written down."""
        found = "select state from questions where platform = ? and key = ?"
        rows = self.execute(found, platform, question.key)
        return QuestionState(rows[0][0]) if rows else None

    def spent(self, platform: str) -> Spent:
        return Spent(*self.execute(SPENT, platform)[0])

    def stats(self, platform: str, end: CrawlEnd, **told: Any) -> CrawlStats:
        kinds = "coalesce(missing, iif(found, 'by_terms', 'by_replies'))"
        posts = f"select {kinds}, count(*) from seen where platform = ? group by 1 order by 1"  # noqa: S608
        missing = dict(self.execute(posts, platform))
        by_terms, by_replies = missing.pop("by_terms", 0), missing.pop("by_replies", 0)
        counts = self.states(platform), dict(self.execute(ERRORS, platform)), self.spent(platform)
        return CrawlStats(platform, end, by_terms, by_replies, missing, *counts, **told)

    def forget(self, urls: Iterable[str]) -> int:
        """Takes posts out of all pages, and puts hashes in their place, in the file's bytes too."""
        stand_ins = {url: STAND_IN + hashed(url) for url in urls}
        forgotten, changed = frozenset(stand_ins), list[tuple[bytes, int]]()
        self.execute("pragma temp_store = memory")
        with self.erasing() as connection:
            for (platform,) in self.execute("select distinct platform from questions"):
                for one in self.answers(platform):
                    left = without_posts(one.body, platform, forgotten, one.keywords)
                    if left != one.body:
                        changed.append((_packed(left), one.id))
            connection.executemany("update answers set body = ? where id = ?", changed)
            connection.execute(GONE)
            connection.executemany("insert into gone values (?, ?)", stand_ins.items())
            self._unname(connection, stand_ins)
            for change in UNSEEN:
                connection.execute(change)
        return len(changed)

    def answers(self, platform: str) -> Iterator[StoredAnswer]:
        with self.opened() as connection:
            for identifier, attempt, page, body, *asked in connection.execute(ANSWERS, (platform,)):
                text = zlib.decompress(body).decode("utf-8", "surrogatepass")
                yield StoredAnswer(identifier, attempt, page, text, _asked_of(tuple(asked)))

    def _unname(self, connection: sqlite3.Connection, stand_ins: Mapping[str, str]) -> None:
        """Takes forgotten posts out of questions; what is left of one is still to be asked."""
        named = "select platform, post_id, url from seen where url in (select url from gone)"
        post_ids = {(platform, one): url for platform, one, url in self.execute(named)}

        def stand_in(platform: str, identifier: str) -> str | None:
            addresses = [canonical_url(word) for word in identifier.split()]
            addresses.append(x_status_url(identifier) if platform == "x" else None)
            addresses.append(post_ids.get((platform, identifier)))
            return next((stand_ins[one] for one in addresses if one and one in stand_ins), None)

        asked_about = self.execute("select * from asked")
        gone = [row for row in asked_about if stand_in(row[0], row[2])]
        this = "(platform, kind, identifier) = (?, ?, ?)"
        connection.executemany(f"delete from asked where {this}", gone)  # noqa: S608
        about_posts = f"select {ASKED} from questions where kind <> 'search'"  # noqa: S608
        for asked in map(_asked_of, self.execute(about_posts)):
            about = tuple(stand_in(asked.platform, one) or one for one in asked.question.about)
            if about != asked.question.about:
                key = dataclasses.replace(asked.question, about=about).key
                change = "update questions set about = ?, key = ?, error = null where id = ?"
                connection.execute(change, (_names(about), key, asked.id))
                # A cursor belongs to the question as it was.
                connection.execute(f"{AGAIN} and cursor is not null", (asked.id,))


def stored_answers(path: Path, platform: str) -> Iterator[StoredAnswer]:
    if path.exists():
        with CrawlLedger(path) as ledger:
            yield from ledger.answers(platform)


def answers_digest(path: Path, platform: str) -> str:
    """Sha256 of the pages of a platform, without when they came."""
    sha256 = hashlib.sha256()
    for answer in stored_answers(path, platform):
        sha256.update(json.dumps([answer.place, answer.body]).encode() + b"\n")
    return sha256.hexdigest()


def forget_answers(path: Path, urls: Iterable[str]) -> int:
    """Takes posts out of a crawl, where there was one; gives the number of pages that changed."""
    if not path.exists():
        return 0
    with CrawlLedger(path) as ledger:
        return ledger.forget(urls)


def _add(
    connection: sqlite3.Connection,
    platform: str,
    question: Question,
    in_round: int,
    origin: int | None = None,
) -> int:
    window = question.window
    times = (_moment(window.start), _moment(window.end)) if window else (None, None)
    about = (platform, question.kind, _names(question.about), question.language, *times)
    return connection.execute(ADD_QUESTION, (question.key, *about, in_round, origin)).rowcount


def _packed(body: str) -> bytes:
    return zlib.compress(body.encode("utf-8", "surrogatepass"))


def _asked_of(row: tuple[Any, ...]) -> LedgerQuestion:
    number, cursor, attempt, pages, platform, kind, about, language, starts, ends, *last = row
    read = datetime.datetime.fromisoformat
    window = None if starts is None else TimeWindow(read(starts), read(ends))
    question = Question(cast("Kind", kind), tuple(json.loads(about)), window, language)
    return LedgerQuestion(number, cursor, attempt, pages, platform, question, *last)


def _day(time: datetime.datetime) -> str:
    # Windows that were cut end at a full hour, all others at midnight.
    return time.strftime("%Y-%m-%dT%H:%M" if time.hour or time.minute else "%Y-%m-%d")


def _moment(time: datetime.datetime) -> str:
    return time.astimezone(datetime.UTC).isoformat()


def _names(about: tuple[str, ...]) -> str:
    return json.dumps(about, ensure_ascii=False)


def _unexpanded(row: tuple[Any, ...]) -> Unexpanded:
    number, in_round, url, post_id, platform, author, parent, quoted, replies, missing, rest = row
    known = None if replies is None else {"replies": replies}
    post = Post(url, post_id, platform, author, parent_url=parent, quoted_url=quoted)
    post.engagement, post.missing = known, missing
    return Unexpanded(number, in_round, post, bool(rest))


def _seen_row(platform: str, post: Post, in_round: int) -> tuple[object, ...]:
    # Who does not know what a post answers has to ask about it, as if its replies were unknown.
    replies = None if post.unnamed_parent else (post.engagement or {}).get("replies")
    post_id = post.post_id or post_id_of(post.url)
    texts = (post.url, post_id, post.author, post.parent_url, post.quoted_url)
    # Half characters are no text to SQLite.
    written = (one and one.encode("utf-8", "backslashreplace").decode() for one in texts)
    claimed = None if replies is None else min(replies, MOST_REPLIES)
    return (platform, *written, claimed, post.missing, bool(post.keywords), in_round)
