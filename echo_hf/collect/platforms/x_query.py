"""How a question is put to the search of X: its words, its operators, its part of the archive."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from echo_hf.collect.platforms.base import Question, UnanswerableError
from echo_hf.collect.platforms.search_words import search_words

# What the search of the last week sees, less a little: time passes between here and there.
RECENT = datetime.timedelta(days=7) - datetime.timedelta(minutes=5)
LONGEST = {"recent": 512, "all": 1024}
# Numbers of posts hold the time since this moment, in milliseconds, above 22 bits of something
# else; those of before are counted on from 1.
FIRST = datetime.datetime.fromtimestamp(1288834974.657, datetime.UTC)
FIRST_TIMED = 2**40


def x_query(question: Question, operators: Sequence[str] = ()) -> str:
    """What X is asked for.

    Args:
        question: A search, or the number of a conversation.
        operators: What the posts found by a search must be besides.

    Returns:
        The query.

    Raises:
        UnanswerableError: A term has nothing to search for.

    Example:
        >>> x_query(Question("search", ("4o image",), language="ja"), ["-is:retweet"])
        '4o image -is:retweet lang:ja'
        >>> x_query(Question("replies", ("99",)))
        'conversation_id:99'
    """
    if question.kind == "replies":
        return f"conversation_id:{question.about[0]}"
    language = [f"lang:{question.language}"] if question.language else []
    return " ".join([*map(search_words, question.about), *operators, *language])


def archive_of(question: Question, query: str, now: datetime.datetime) -> str:
    """Which search can answer a question.

    Args:
        question: A search, or the number of a conversation.
        query: What is asked.
        now: The time, with a zone.

    Returns:
        `recent` for what is younger than a week, else `all`.

    Raises:
        UnanswerableError: The query is longer than that search takes.
    """
    first = started(question)
    archive = "recent" if first is not None and now - first < RECENT else "all"
    if len(query) > LONGEST[archive]:
        raise UnanswerableError(
            f"the query has {len(query)} characters: X takes at most {LONGEST[archive]} there"
        )
    return archive


def started(question: Question) -> datetime.datetime | None:
    """When the first post that answers a question can have been written; null when unknown.

    Example:
        >>> started(Question("replies", ("1904619900000000000",))).isoformat()
        '2025-03-25T19:42:24.943000+00:00'
    """
    if question.window is not None:
        return question.window.start
    numbers = [int(one) for one in question.about if one.isascii() and one.isdigit()]
    if question.kind != "replies" or not numbers or numbers[0] < FIRST_TIMED:
        return None
    try:
        return FIRST + datetime.timedelta(milliseconds=numbers[0] >> 22)
    except OverflowError:
        return None
