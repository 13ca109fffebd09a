"""The answers that a crawl has stored, read as records, and counts of what it found."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from echo_hf._infra.atomic import replaced_file
from echo_hf.collect.crawl_ledger import (
    ASKED,
    CrawlLedger,
    LedgerQuestion,
    Spent,
    asked_of,
    packed,
    unpacked,
)
from echo_hf.collect.platforms.base import Question
from echo_hf.collect.sources.base import Post, Source
from echo_hf.reasons import CrawlEnd

ANSWERS = f"""select answers.id, answers.attempt, answers.page, body, {ASKED}
    from answers join questions on question = questions.id
    where platform = ? order by questions.id, answers.attempt, answers.page"""  # noqa: S608
PLATFORMS = "select distinct platform from questions order by platform"
WHOLE_FIRST_LINE = ":1"  # an answer is one document: its line says nothing


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    id: int
    attempt: int
    page: int
    body: str
    asked: LedgerQuestion

    @property
    def place(self) -> str:
        """Where its records come from, as a person reads it."""
        again = f" attempt {self.attempt + 1}" if self.attempt else ""
        return f"{self.asked.platform}/{_said(self.asked.question)}{again} page {self.page + 1}"

    @property
    def keywords(self) -> tuple[str, ...]:
        question = self.asked.question
        return question.about if question.kind == "search" else ()


def stored_answers(path: Path, platform: str) -> Iterator[StoredAnswer]:
    """The pages of a platform, by question, in the order in which they came."""
    if not path.exists():
        return
    with CrawlLedger(path) as ledger, ledger.opened() as connection:
        for identifier, attempt, page, body, *asked in connection.execute(ANSWERS, (platform,)):
            yield StoredAnswer(identifier, attempt, page, unpacked(body), asked_of(tuple(asked)))


def records_of(answer: StoredAnswer, source: Source) -> Iterator[tuple[str, str]]:
    """Takes a page apart as its source does a file."""
    for place, record in source.split(io.StringIO(answer.body, newline="\n")):
        yield answer.place + place.removeprefix(WHOLE_FIRST_LINE), record


def posts_in(body: str, question: Question, source: Source) -> list[Post]:
    """The posts that a page shows, as far as they can be read."""
    keywords = question.about if question.kind == "search" else ()
    return [
        parsed
        for _, record in source.split(io.StringIO(body, newline="\n"))
        for parsed in source.posts(_loaded(record), keywords)
        if isinstance(parsed, Post)
    ]


def answers_digest(path: Path, platform: str) -> str:
    """Sha256 of the pages of a platform, without when they came."""
    sha256 = hashlib.sha256()
    for answer in stored_answers(path, platform):
        sha256.update(json.dumps([answer.place, answer.body]).encode() + b"\n")
    return sha256.hexdigest()


def rewrite_answers(path: Path, change: Callable[[StoredAnswer], str | None]) -> int:
    """Changes stored pages, in the file's bytes as well; no page is asked for again."""
    if not path.exists():
        return 0
    count = 0
    with CrawlLedger(path) as ledger, ledger.erasing() as connection:
        for (name,) in ledger.execute(PLATFORMS):
            for one in stored_answers(path, name):
                text = change(one)
                count += text != one.body
                if text is None:
                    connection.execute("delete from answers where id = ?", (one.id,))
                elif text != one.body:
                    new = (packed(text), one.id)
                    connection.execute("update answers set body = ? where id = ?", new)
    return count


def _said(question: Question) -> str:
    first, *others = question.about or ("",)
    more = f" and {len(others)} more" if others else ""
    if question.kind != "search":
        return f"{question.kind} {first}{more}"
    language = f" in {question.language}" if question.language else ""
    window = question.window
    when = f" {_short(window.start)} to {_short(window.end)}" if window else ""
    return f'search "{first}"{language}{when}'


def _short(time: datetime.datetime) -> str:
    # Windows that were cut end at a full hour, all others at midnight.
    return time.strftime("%Y-%m-%dT%H:%M" if time.hour or time.minute else "%Y-%m-%d")


def _loaded(record: str) -> object:
    try:
        return json.loads(record)
    except (ValueError, RecursionError):
        return None


STATS = "crawl.json"
POSTS = """select count(*) filter (where found and missing is null),
    count(*) filter (where not found and missing is null) from seen where platform = ?"""
MISSING = """select missing, count(*) from seen where platform = ? and missing is not null
    group by missing order by missing"""
STATES = "select state, count(*) from questions where platform = ? group by state order by state"
ERRORS = """select error, count(*) from questions where platform = ? and error is not null
    group by error order by count(*) desc, error limit 3"""


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


def crawl_stats(
    ledger: CrawlLedger,
    platform: str,
    end: CrawlEnd,
    waits: int = 0,
    waited_s: float = 0.0,
    seconds: float = 0.0,
) -> CrawlStats:
    ((by_terms, by_replies),) = ledger.execute(POSTS, platform)
    missing, questions, errors = (
        dict(ledger.execute(query, platform)) for query in (MISSING, STATES, ERRORS)
    )
    found = (by_terms, by_replies, missing, questions, errors, ledger.spent(platform))
    return CrawlStats(platform, end, *found, waits, waited_s, seconds)


def write_stats(path: Path, stats: Iterable[CrawlStats]) -> None:
    every = {
        one.platform: {**dataclasses.asdict(one), "missed_by_terms": one.missed_by_terms}
        for one in stats
    }
    with replaced_file(path) as partial:
        partial.write_text(json.dumps(every, indent=1) + "\n", "utf-8")
