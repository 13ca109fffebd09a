"""The crawl's ledger: what was asked, how far each question is, and every answer as it came.

A page is written in one transaction with the cursor of the next one and the posts that it shows, so
that a killed run loses no more than the page that was under way.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from echo_hf.collect.crawl_question import (
    ASKED,
    COLUMNS,
    Asked,
    QuestionState,
    asked_of,
    moment,
    names,
    row_of,
)
from echo_hf.collect.crawl_seen import (
    Unexpanded,
    add_seen,
    is_incomplete,
    lacks_below,
    mark_expanded,
    not_asked_before,
    tops,
    unexpanded,
)
from echo_hf.collect.crawl_spent import SPENT, Spent
from echo_hf.collect.crawl_tables import connected, explained, packed, transaction
from echo_hf.collect.platforms.base import Answer, Question
from echo_hf.collect.sources.base import Post

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


class CrawlLedger:
    """A ledger in a file; a context manager that closes it.

    Args:
        path: The SQLite file; made when it does not exist.

    Raises:
        StoreError: The file is no such ledger, or cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = connected(path)

    def add_searches(self, platform: str, questions: Iterable[Question]) -> int:
        """Writes questions of the plan down, except those that stand there already.

        Args:
            platform: Who is to be asked.
            questions: In the order in which they are to be asked.

        Returns:
            How many are new.
        """
        with self._transaction():
            return sum(self._add(platform, one, 0) for one in questions)

    def next_question(self, platform: str) -> Asked | None:
        """The first question with pages left to ask for, null where there is none."""
        with explained(self.path):
            row = self.connection.execute(NEXT, (platform,)).fetchone()
        return None if row is None else asked_of(row)

    def keep(
        self, asked: Asked, answer: Answer, posts: Iterable[Post], cost_usd: float | None
    ) -> None:
        """Writes a page down, with the cursor of the next one and the posts that it shows.

        Args:
            asked: The question, as `next_question` gave it.
            answer: The page.
            posts: The posts in it.
            cost_usd: What it cost, null where that is unknown.
        """
        state = QuestionState.DONE if answer.cursor is None else QuestionState.OPEN
        body = packed(answer.body)
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        price = (cost_usd or 0.0, cost_usd is None)
        with self._transaction():
            self.connection.execute(KEEP, (asked.id, asked.attempt, asked.pages, body, now))
            add_seen(self.connection, asked.platform, posts, asked.round)
            self.connection.execute(TURN, (answer.cursor, state, answer.posts, *price, asked.id))
            if state is QuestionState.DONE:
                self.connection.execute(BEFORE, (asked.id, asked.attempt))

    def begin_again(self, asked: Asked) -> None:
        """Lets a question be asked from its first page.

        What it has brought stays until it is done: half of an answer is better than none.
        """
        with self._transaction():
            self.connection.execute(AGAIN, (asked.id,))

    def put_aside(self, asked: Asked, state: QuestionState, error: str | None = None) -> None:
        """Asks a question no more: never, or not before `try_again`."""
        with self._transaction():
            self.connection.execute(ASIDE, (state, error, asked.id))

    def try_again(self, platform: str) -> None:
        """Opens the questions that failed in an earlier run, or were not planned then."""
        with self._transaction():
            self.connection.execute(REOPEN, (platform,))

    def open_searches(self, platform: str) -> list[Asked]:
        """The searches with pages left to ask for."""
        with explained(self.path):
            return [asked_of(row) for row in self.connection.execute(SEARCHES, (platform,))]

    def has_troubled(self, platform: str) -> bool:
        """Whether questions failed and wait for the next run."""
        with explained(self.path):
            return self.connection.execute(TROUBLED, (platform,)).fetchone() is not None

    def unexpanded(self, platform: str, most: int, rounds: int | None = None) -> list[Unexpanded]:
        """As `crawl_seen.unexpanded`."""
        with explained(self.path):
            return unexpanded(self.connection, platform, most, rounds)

    def lacks_below(self, platform: str, one: Unexpanded) -> bool:
        """As `crawl_seen.lacks_below`."""
        with explained(self.path):
            return lacks_below(self.connection, platform, one)

    def tops(self, platform: str, posts: Sequence[Unexpanded]) -> list[Unexpanded]:
        """As `crawl_seen.tops`."""
        with explained(self.path):
            return tops(self.connection, platform, posts)

    def is_needless(self, asked: Asked) -> bool:
        """Whether other answers have brought the whole tree of a question's only post."""
        if asked.origin is None or asked.pages:
            return False
        with explained(self.path):
            return not is_incomplete(self.connection, asked.origin)

    def expand(
        self,
        platform: str,
        posts: Sequence[Unexpanded],
        questions: Iterable[Question],
        origins: Mapping[str, int],
    ) -> int:
        """Writes down what to ask about posts, and that they need no more questions.

        Args:
            platform: Who is to be asked.
            posts: The posts.
            questions: About them; what was asked before is left out of them.
            origins: By key of a question the number of the only post that it is about.

        Returns:
            How many questions are new.
        """
        in_round = 1 + max((post.round for post in posts), default=0)
        with self._transaction():
            left = (not_asked_before(self.connection, platform, one) for one in questions)
            new = sum(
                self._add(platform, one, in_round, origins.get(one.key))
                for one in left
                if one is not None
            )
            mark_expanded(self.connection, [post.row for post in posts])
        return new

    def covered(self, platform: str, question: Question) -> datetime.datetime | None:
        """Until when earlier questions have asked for the beginning of a window; null for none."""
        if question.window is None:
            return None
        found: str | None = None
        start, end = moment(question.window.start), moment(question.window.end)
        while start < end:
            same = (platform, names(question.about), question.language, start, end)
            with explained(self.path):
                row = self.connection.execute(COVERED, same).fetchone()
            if row is None:
                break
            found = start = row[0]
        return None if found is None else datetime.datetime.fromisoformat(found)

    def count_open(self, platform: str) -> int:
        """How many questions have pages left to ask for."""
        with explained(self.path):
            return int(self.connection.execute(UNFINISHED, (platform,)).fetchone()[0])

    def state(self, platform: str, question: Question) -> QuestionState | None:
        """How far a question is, null where it was never written down."""
        with explained(self.path):
            row = self.connection.execute(STATE, (platform, question.key)).fetchone()
        return None if row is None else QuestionState(row[0])

    def spent(self, platform: str) -> Spent:
        """What asking a platform has taken so far."""
        with explained(self.path):
            return Spent(*self.connection.execute(SPENT, (platform,)).fetchone())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def _add(
        self, platform: str, question: Question, in_round: int, origin: int | None = None
    ) -> int:
        row = (question.key, QuestionState.OPEN, *row_of(platform, question, in_round, origin))
        return self.connection.execute(ADD, row).rowcount

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with explained(self.path), transaction(self.connection):
            yield
