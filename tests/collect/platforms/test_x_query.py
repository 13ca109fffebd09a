"""How a question is put to the search of X."""

from __future__ import annotations

import datetime

import pytest

from echo_hf.collect.platforms.base import Question, TimeWindow, UnanswerableError
from echo_hf.collect.platforms.x import archive_of, started, x_query

NOW = datetime.datetime(2026, 3, 20, tzinfo=datetime.UTC)


def days_ago(days: float) -> Question:
    """A search of a day that began so many days ago."""
    start = NOW - datetime.timedelta(days=days)
    return Question("search", ("4o",), TimeWindow(start, start + datetime.timedelta(days=1)))


@pytest.mark.parametrize(("days", "expected"), [(1, "recent"), (6.9, "recent"), (7, "all")])
def test_what_is_older_than_a_week_is_in_the_archive(days: float, expected: str) -> None:
    """A window that begins on the edge is, too."""
    assert archive_of(days_ago(days), "4o", NOW) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    # the first numbered by time, and one of a week in March 2026: (ms since 1970 - epoch) << 22
    [(str((1_773_900_000_000 - 1_288_834_974_657) << 22), "recent"), ("20", "all"), ("x", "all")],
)
def test_a_conversation_is_where_its_root_is(number: str, expected: str) -> None:
    """The number of a post holds its time; where it holds none, the whole archive is searched."""
    assert archive_of(Question("replies", (number,)), "", NOW) == expected


@pytest.mark.parametrize(("days", "longest"), [(1, 512), (30, 1024)])
def test_a_query_that_is_too_long_is_put_aside(days: float, longest: int) -> None:
    """Each search has a limit of its own."""
    assert archive_of(days_ago(days), "x" * longest, NOW)
    with pytest.raises(UnanswerableError, match=str(longest)):
        archive_of(days_ago(days), "x" * (longest + 1), NOW)


def test_a_number_beyond_all_times_has_none() -> None:
    """Whoever wrote it."""
    assert started(Question("replies", ("9" * 25,))) is None


def test_operators_stand_after_the_words() -> None:
    """And the language last."""
    question = Question("search", ("gpt image",), None, "en")

    assert x_query(question, ["-is:retweet", "has:images"]) == (
        "gpt image -is:retweet has:images lang:en"
    )
