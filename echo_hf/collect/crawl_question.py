"""A question as the crawl's ledger knows it, and how it is written there."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from echo_hf.collect.platforms.base import Kind, Question, Window

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
    """A question of the ledger, and how far it is.

    Attributes:
        id: Its number in the ledger.
        cursor: What to ask the next page with, null for the first one.
        attempt: How often it had to be begun again.
        pages: How many pages of this attempt are there.
        platform: Who is asked.
        question: The question.
        round: 0 for a search, else how many rounds of replies led to it.
        origin: The only post that it is about, by its number in the ledger; null for several.
    """

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
