"""The crawl's ledger: the questions, how far each of them is, and every page as it came."""

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
from echo_hf.collect.platforms.base import Page, Question, QuestionKind, TimeWindow
from echo_hf.collect.sources.base import Missing, Post, make_source
from echo_hf.collect.takedown import STAND_IN, detect_page_source, hash_url, remove_posts
from echo_hf.collect.urls import canonical_url, identified_urls, post_id_of
from echo_hf.reasons import Reason


class CrawlEnd(Reason):
    """Why a platform is asked no more for now."""

    NOTHING_LEFT = "nothing_left", "every query is answered, and nothing new came of the replies"
    POSTS_SPENT = "posts_spent", "the budget of posts is used up; a larger one resumes from here"
    DOLLARS_SPENT = "dollars_spent", "the budget of money is used up; a larger one resumes here"
    ROUNDS_DONE = "rounds_done", "reply trees were followed as often as expand.rounds says"
    EXPANSION_FULL = "expansion_full", "as many posts came by reply trees as expand.posts says"
    SOME_FAILED = "some_failed", "some questions failed and wait for the next run"
    TOLD_TO_WAIT = "told_to_wait", "the platform wants to be left alone for long; come back then"
    KEY_REFUSED = "key_refused", "the platform refuses the key or its use; a next run resumes here"
    OUT_OF_REACH = "out_of_reach", "signing in or several questions failed; a next run tries again"


CRAWL_LEDGER_FILE = "collected.sqlite"
FIRST_LINE = ":1"  # a page is one document, so its line number is left out of its place
ALL_ROUNDS = 2**31
MAX_REPLIES = 2**31  # a larger claim would overflow the column, and changes nothing
# A page is stored with its attempt: until the new attempt at a question is complete, the pages
# of the attempt before it are kept.
SCHEMA_SQL = """
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
QUESTION_FIELDS = (
    "questions.id, questions.cursor, questions.attempt, questions.pages, "
    + ", ".join(f"questions.{name}" for name in COLUMNS.split(", "))
)
SELECT_OPEN = f"select {QUESTION_FIELDS} from questions where platform = ? and state = 'open' "  # noqa: S608
ADD_QUESTION = f"""insert or ignore into questions (key, state, {COLUMNS})
    values (?, 'open'{", ?" * 8})"""  # noqa: S608
ADD_PAGE = """insert into answers (question, attempt, page, body, fetched_at)
    values (?, ?, ?, ?, ?)"""
UPDATE_PAGE = """update questions set cursor = ?, state = ?, pages = pages + 1,
    requests = requests + 1, posts = posts + ?, cost_usd = cost_usd + ?, unpriced = unpriced + ?,
    error = null where id = ?"""
UPDATE_STATE = "update questions set state = ?, error = ? where id = ?"
RESTART = "update questions set cursor = null, pages = 0, attempt = attempt + 1 where id = ?"
SELECT_COVERED_END = """select ends from questions where platform = ? and kind = 'search'
    and about = ? and language is ? and starts = ? and ends <= ? order by ends desc limit 1"""
SELECT_COST = """select coalesce(sum(requests), 0), coalesce(sum(posts), 0),
    coalesce(sum(cost_usd), 0), coalesce(sum(unpriced), 0),
    coalesce(sum(iif(kind = 'search', 0, posts)), 0) from questions where platform = ?"""
SELECT_ERRORS = """select error, count(*) from questions where platform = ? and error is not null
    group by error order by count(*) desc, error limit 3"""
SELECT_PAGES = f"""select answers.id, answers.attempt, answers.page, body, {QUESTION_FIELDS}
    from answers join questions on question = questions.id
    where platform = ? order by questions.id, answers.attempt, answers.page"""  # noqa: S608
# A post with content replaces a missing one, and its tree may be asked for once more.
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
INCOMPLETE_CONDITION = """(missing is not null or replies is null
    or parent_url is not null and not exists (
        select 1 from seen as above where above.platform = post.platform
        and above.url = post.parent_url)
    or replies > (
        select count(*) from seen as below where below.platform = post.platform
        and below.parent_url = post.url))"""
SEEN_POST_COLUMNS = f"""id, round, url, post_id, platform, author, parent_url, quoted_url, replies,
    missing, {INCOMPLETE_CONDITION}"""
# A quoted post is not expanded until a search finds it or a reply names it: quotes are no replies.
TO_EXPAND = f"""
select {SEEN_POST_COLUMNS} from seen as post where platform = ? and expanded = 0 and round < ?
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
# A cycle of parents has no top; `union` ends the recursion at a row that it has met already.
TOPS = f"""
with recursive up (url, parent_url) as (
    select url, parent_url from seen where id = :row
    union select above.url, above.parent_url from seen as above, up
    where above.platform = :platform and above.url = up.parent_url)
select {SEEN_POST_COLUMNS} from seen as post where platform = :platform and url in (
    select url from up where parent_url is null or not exists (
        select 1 from seen as above where above.platform = :platform and above.url = up.parent_url))
"""  # noqa: S608
SELECT_BELOW = f"""
with recursive down (url) as (
    select url from seen where id = :row
    union select below.url from seen as below, down
    where below.platform = :platform and below.parent_url = down.url)
select 1 from seen as post where platform = :platform and url in (select url from down)
and {INCOMPLETE_CONDITION} limit 1
"""  # noqa: S608
IS_INCOMPLETE = f"select 1 from seen as post where id = ? and {INCOMPLETE_CONDITION}"  # noqa: S608
SELECT_KNOWN_POST = f"""select 1 from seen where platform = ? and post_id = ?
    and (missing is null or missing <> '{Missing.NOT_FETCHED}') limit 1"""  # noqa: S608
ADD_ASKED = "insert or ignore into asked values (?, ?, ?)"
# The addresses and their stand-ins, in a table, so that each other table is read only once.
CREATE_FORGOTTEN = "create temp table gone (url text primary key, name text not null) without rowid"


def _stand_in_of(column: str) -> str:
    return f"(select name from gone where gone.url = seen.{column})"  # noqa: S608


FORGET_SEEN_POSTS = (
    f"""update or replace seen set url = {_stand_in_of("url")}, post_id = {_stand_in_of("url")},
    author = null, parent_url = null, quoted_url = null, replies = 0,
    missing = '{Missing.REMOVED}', found = 0, expanded = 1 where url in (select url from gone)""",  # noqa: S608
    *(
        f"update seen set {name} = {_stand_in_of(name)} where {name} in (select url from gone)"  # noqa: S608
        for name in ("parent_url", "quoted_url")
    ),
)


class QuestionState(StrEnum):
    OPEN = "open"  # more pages are to be asked for
    TROUBLED = "troubled"  # it failed in this run; the next run asks again
    REFUSED = "refused"  # the platform will never answer it
    DONE = "done"
    UNPLANNED = "unplanned"  # the config no longer asks it; it resumes if a config does again
    NEEDLESS = "needless"  # other pages brought everything that it would bring


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
class StoredPage:
    id: int
    attempt: int
    page: int
    body: str
    ledger_row: LedgerQuestion

    @property
    def place(self) -> str:
        question, window = self.ledger_row.question, self.ledger_row.question.window
        first, *others = question.about or ("",)
        description = f"{question.kind} {first}" + (f" and {len(others)} more" if others else "")
        if question.kind == "search":
            language = f" in {question.language}" if question.language else ""
            period = f" {_format_day(window.start)} to {_format_day(window.end)}" if window else ""
            description = f'search "{first}"{language}{period}'
        attempt = f" attempt {self.attempt + 1}" if self.attempt else ""
        return f"{self.ledger_row.platform}/{description}{attempt} page {self.page + 1}"

    @property
    def keywords(self) -> tuple[str, ...]:
        question = self.ledger_row.question
        return question.about if question.kind == "search" else ()

    @property
    def source(self) -> str:
        return detect_page_source(self.body, self.ledger_row.platform)[0]

    def split_records(self) -> Iterator[tuple[str, str]]:
        source, text = detect_page_source(self.body, self.ledger_row.platform)
        for place, record in make_source(source).split(io.StringIO(text, newline="\n")):
            line = place.removeprefix(FIRST_LINE) if text is self.body else place
            yield self.place + line, record


@dataclass(slots=True)
class CrawlCost:
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
        note = f" and what {self.unpriced:,} pages of unknown price cost" if self.unpriced else ""
        return f"${self.cost_usd:.2f}{note}"


@dataclass(frozen=True, slots=True)
class CrawlStats:
    platform: str
    end: CrawlEnd
    by_terms: int
    by_replies: int
    missing: Mapping[str, int]
    questions: Mapping[str, int]
    errors: Mapping[str, int]
    spent: CrawlCost
    waits: int = 0
    waited_s: float = 0.0
    seconds: float = 0.0

    @property
    def missed_by_terms(self) -> float | None:
        """The share of posts that search terms alone would have missed; null without posts."""
        total = self.by_terms + self.by_replies
        return self.by_replies / total if total else None


@dataclass(frozen=True, slots=True)
class Unexpanded:
    row: int
    round: int
    post: Post
    incomplete: bool


class CrawlLedger(Database):
    name = "ledger of collected posts"
    remedy = "ask for the posts again"
    schema = SCHEMA_SQL
    damage = (sqlite3.DatabaseError, zlib.error)

    def add_searches(self, platform: str, questions: Iterable[Question]) -> None:
        with self.write() as connection:
            for question in questions:
                _add(connection, platform, question, 0)

    def next_question(self, platform: str) -> LedgerQuestion | None:
        """Return the first question with pages left to ask for; null where there is none."""
        while rows := self.execute(f"{SELECT_OPEN} order by round, id limit 1", platform):
            pending = _read_question(rows[0])
            # Nobody is asked about a forgotten post.
            about = tuple(name for name in pending.question.about if not name.startswith(STAND_IN))
            # Other pages may have completed the tree of the question's only post meanwhile.
            if about and (
                pending.origin is None
                or pending.pages
                or self.execute(IS_INCOMPLETE, pending.origin)
            ):
                question = dataclasses.replace(pending.question, about=about)
                return dataclasses.replace(pending, question=question)
            self.put_aside(pending, QuestionState.NEEDLESS)
        return None

    def open_searches(self, platform: str) -> list[LedgerQuestion]:
        rows = self.execute(f"{SELECT_OPEN} and kind = 'search'", platform)
        return [_read_question(row) for row in rows]

    def store_page(
        self, pending: LedgerQuestion, page: Page, posts: Iterable[Post], cost_usd: float | None
    ) -> None:
        """Store a page, the cursor of the next one and the posts that it shows."""
        state = QuestionState.DONE if page.cursor is None else QuestionState.OPEN
        time = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        row = (pending.id, pending.attempt, pending.pages, _pack(page.body), time)
        with self.write() as connection:
            connection.execute(ADD_PAGE, row)
            seen_rows = (_make_seen_row(pending.platform, post, pending.round) for post in posts)
            connection.executemany(ADD_SEEN, seen_rows)
            cost = (cost_usd or 0.0, cost_usd is None)
            connection.execute(UPDATE_PAGE, (page.cursor, state, page.posts, *cost, pending.id))
            if state is QuestionState.DONE:
                delete_earlier = "delete from answers where question = ? and attempt < ?"
                connection.execute(delete_earlier, (pending.id, pending.attempt))

    def restart_question(self, pending: LedgerQuestion) -> None:
        self.execute(RESTART, pending.id)

    def put_aside(
        self, pending: LedgerQuestion, state: QuestionState, error: str | None = None
    ) -> None:
        """Stop asking a question: for good, or until `resume_questions`."""
        self.execute(UPDATE_STATE, state, error, pending.id)

    def resume_questions(self, platform: str) -> None:
        """Open the questions that failed in an earlier run or were not planned then."""
        condition = "platform = ? and state in ('troubled', 'unplanned')"
        self.execute(f"update questions set state = 'open' where {condition}", platform)  # noqa: S608

    def count_states(self, platform: str) -> dict[str, int]:
        sql = "select state, count(*) from questions where platform = ? group by 1 order by 1"
        return dict(self.execute(sql, platform))

    def find_unexpanded(
        self, platform: str, limit: int, rounds: int | None = None
    ) -> list[Unexpanded]:
        """Return posts whose trees were not asked for yet, in the order in which they were seen."""
        until = ALL_ROUNDS if rounds is None else rounds
        return [_read_unexpanded(row) for row in self.execute(TO_EXPAND, platform, until, limit)]

    def lacks_below(self, platform: str, post: Unexpanded) -> bool:
        """Return whether a post at the top of its tree has incomplete replies below it."""
        is_top = post.post.parent_url is None
        return is_top and bool(self.execute(SELECT_BELOW, row=post.row, platform=platform))

    def find_tops(self, platform: str, posts: Sequence[Unexpanded]) -> list[Unexpanded]:
        """Return the topmost known posts above these, without these."""
        known_rows = {post.row for post in posts}
        below = [post.row for post in posts if post.post.parent_url is not None]
        tops: dict[int, Unexpanded] = {}
        for row in below:
            for top in map(_read_unexpanded, self.execute(TOPS, row=row, platform=platform)):
                if top.row not in known_rows:
                    tops[top.row] = top
        return list(tops.values())

    def expand(
        self,
        platform: str,
        posts: Sequence[Unexpanded],
        questions: Iterable[Question],
        origins: Mapping[str, int],
    ) -> int:
        """Write down what to ask about posts, and that nothing more is to be asked about them."""
        added, in_round = 0, 1 + max((post.round for post in posts), default=0)
        with self.write() as connection:
            for question in questions:
                if about := self._take_unasked(connection, platform, question):
                    unasked = dataclasses.replace(question, about=about)
                    origin = origins.get(question.key)
                    added += _add(connection, platform, unasked, in_round, origin)
            done = [(post.row,) for post in posts]
            connection.executemany("update seen set expanded = 1 where id = ?", done)
        return added

    def _take_unasked(
        self, connection: sqlite3.Connection, platform: str, question: Question
    ) -> tuple[str, ...]:
        """Return what of a question nobody was asked about yet, and mark it as asked."""
        if question.kind == "search":
            return question.about
        unasked = []
        for name in dict.fromkeys(question.about):
            is_known = question.kind == "posts" and self.execute(SELECT_KNOWN_POST, platform, name)
            if STAND_IN in name or is_known:  # forgotten, or collected already
                continue
            if connection.execute(ADD_ASKED, (platform, question.kind, name)).rowcount:
                unasked.append(name)
        return tuple(unasked)

    def find_covered_end(self, platform: str, question: Question) -> datetime.datetime | None:
        """Return until when earlier questions cover the beginning of a window; null for none."""
        if question.window is None:
            return None
        covered_until: str | None = None
        start, end = map(_format_time, (question.window.start, question.window.end))
        params = (platform, _dump_names(question.about), question.language)
        while start < end and (rows := self.execute(SELECT_COVERED_END, *params, start, end)):
            covered_until = start = rows[0][0]
        return None if covered_until is None else datetime.datetime.fromisoformat(covered_until)

    def get_state(self, platform: str, question: Question) -> QuestionState | None:
        """Return how far a question is; null where it was never written down."""
        sql = "select state from questions where platform = ? and key = ?"
        rows = self.execute(sql, platform, question.key)
        return QuestionState(rows[0][0]) if rows else None

    def cost_of(self, platform: str) -> CrawlCost:
        return CrawlCost(*self.execute(SELECT_COST, platform)[0])

    def summarize(self, platform: str, end: CrawlEnd, **times: Any) -> CrawlStats:
        kinds = "coalesce(missing, iif(found, 'by_terms', 'by_replies'))"
        sql = f"select {kinds}, count(*) from seen where platform = ? group by 1 order by 1"  # noqa: S608
        missing = dict(self.execute(sql, platform))
        by_terms, by_replies = missing.pop("by_terms", 0), missing.pop("by_replies", 0)
        states, cost = self.count_states(platform), self.cost_of(platform)
        errors = dict(self.execute(SELECT_ERRORS, platform))
        found = (by_terms, by_replies, missing)
        return CrawlStats(platform, end, *found, states, errors, cost, **times)

    def forget(self, urls: Iterable[str]) -> int:
        """Replace posts by hashes in all pages, and in the bytes of the file."""
        stand_ins = {url: STAND_IN + hash_url(url) for url in urls}
        forgotten, changed = frozenset(stand_ins), list[tuple[bytes, int]]()
        self.execute("pragma temp_store = memory")
        with self.erase() as connection:
            for (platform,) in self.execute("select distinct platform from questions"):
                for page in self.read_pages(platform):
                    cleared_body = remove_posts(page.body, platform, forgotten, page.keywords)
                    if cleared_body != page.body:
                        changed.append((_pack(cleared_body), page.id))
            connection.executemany("update answers set body = ? where id = ?", changed)
            connection.execute(CREATE_FORGOTTEN)
            connection.executemany("insert into gone values (?, ?)", stand_ins.items())
            self._clear(connection, stand_ins)
            for change in FORGET_SEEN_POSTS:
                connection.execute(change)
        return len(changed)

    def read_pages(self, platform: str) -> Iterator[StoredPage]:
        with self.connect() as connection:
            pages = connection.execute(SELECT_PAGES, (platform,))
            for identifier, attempt, page, body, *row in pages:
                text = zlib.decompress(body).decode("utf-8", "surrogatepass")
                yield StoredPage(identifier, attempt, page, text, _read_question(tuple(row)))

    def _clear(self, connection: sqlite3.Connection, stand_ins: Mapping[str, str]) -> None:
        """Replace forgotten posts in questions by stand-ins, and drop what was asked about them."""
        sql = "select platform, post_id, url from seen where url in (select url from gone)"
        post_ids = {(platform, post_id): url for platform, post_id, url in self.execute(sql)}

        def find_stand_in(platform: str, identifier: str) -> str | None:
            addresses = [canonical_url(word) for word in identifier.split()]
            addresses += identified_urls(identifier, platform)
            addresses.append(post_ids.get((platform, identifier)))
            return next((stand_ins[url] for url in addresses if url and url in stand_ins), None)

        asked_rows = self.execute("select * from asked")
        forgotten_rows = [row for row in asked_rows if find_stand_in(row[0], row[2])]
        condition = "(platform, kind, identifier) = (?, ?, ?)"
        connection.executemany(f"delete from asked where {condition}", forgotten_rows)  # noqa: S608
        select_questions = f"select {QUESTION_FIELDS} from questions where kind <> 'search'"  # noqa: S608
        for asked in map(_read_question, self.execute(select_questions)):
            question = asked.question
            about = tuple(find_stand_in(asked.platform, name) or name for name in question.about)
            if about != question.about:
                key = dataclasses.replace(question, about=about).key
                change = "update questions set about = ?, key = ?, error = null where id = ?"
                connection.execute(change, (_dump_names(about), key, asked.id))
                # The cursor belongs to the old question.
                connection.execute(f"{RESTART} and cursor is not null", (asked.id,))


def read_stored_pages(path: Path, platform: str) -> Iterator[StoredPage]:
    if path.exists():
        with CrawlLedger(path) as ledger:
            yield from ledger.read_pages(platform)


def digest_pages(path: Path, platform: str) -> str:
    """Return the sha256 of a platform's pages, which does not depend on when they came."""
    sha256 = hashlib.sha256()
    for page in read_stored_pages(path, platform):
        sha256.update(json.dumps([page.place, page.body]).encode() + b"\n")
    return sha256.hexdigest()


def forget_posts(path: Path, urls: Iterable[str]) -> int:
    """Take posts out of a crawl's ledger if there is one; return the number of changed pages."""
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
    times = (_format_time(window.start), _format_time(window.end)) if window else (None, None)
    about = (platform, question.kind, _dump_names(question.about), question.language, *times)
    return connection.execute(ADD_QUESTION, (question.key, *about, in_round, origin)).rowcount


def _pack(body: str) -> bytes:
    return zlib.compress(body.encode("utf-8", "surrogatepass"))


def _read_question(row: tuple[Any, ...]) -> LedgerQuestion:
    number, cursor, attempt, pages, platform, kind, about, language, starts, ends = row[:10]
    in_round, origin = row[10:]
    parse_time = datetime.datetime.fromisoformat
    window = None if starts is None else TimeWindow(parse_time(starts), parse_time(ends))
    question = Question(cast("QuestionKind", kind), tuple(json.loads(about)), window, language)
    return LedgerQuestion(number, cursor, attempt, pages, platform, question, in_round, origin)


def _format_day(time: datetime.datetime) -> str:
    # A window that was cut short ends at a full hour, all others at midnight.
    return time.strftime("%Y-%m-%dT%H:%M" if time.hour or time.minute else "%Y-%m-%d")


def _format_time(time: datetime.datetime) -> str:
    return time.astimezone(datetime.UTC).isoformat()


def _dump_names(about: tuple[str, ...]) -> str:
    return json.dumps(about, ensure_ascii=False)


def _read_unexpanded(row: tuple[Any, ...]) -> Unexpanded:
    number, in_round, url, post_id, platform, author, parent, quoted, replies, missing, lacks = row
    engagement = None if replies is None else {"replies": replies}
    post = Post(url, post_id, platform, author, parent_url=parent, quoted_url=quoted)
    post.engagement, post.missing = engagement, missing
    return Unexpanded(number, in_round, post, bool(lacks))


def _make_seen_row(platform: str, post: Post, in_round: int) -> tuple[object, ...]:
    # Without its parent's address a post has to be asked about, as if its replies were unknown.
    replies = None if post.unnamed_parent else (post.engagement or {}).get("replies")
    post_id = post.post_id or post_id_of(post.url)
    texts = (post.url, post_id, post.author, post.parent_url, post.quoted_url)
    # SQLite stores no unpaired surrogates.
    encoded_texts = (text and text.encode("utf-8", "backslashreplace").decode() for text in texts)
    reply_count = None if replies is None else min(replies, MAX_REPLIES)
    return (platform, *encoded_texts, reply_count, post.missing, bool(post.keywords), in_round)
