"""What each search term is worth, against a count by hand and a count without any library."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.builder.search_yield import (
    Yields,
    days_since,

    keyword_yields,
    planned_edges,
    windows_of,
)
from echo_hf.config.collection import Search
from echo_hf.tables import POSTS

RELEASED = datetime.date(2026, 3, 2)
Row = dict[str, Any]


def post(
    day: float | None, *keywords: str, score: int | None = 5, asked: bool = True, **more: Any
) -> Row:
    """A post some days after the release."""
    start = datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC)
    return {
        "url": f"https://a.example/{day}{keywords}{more}",
        "timestamp": None if day is None else start + datetime.timedelta(days=day),
        "keywords": list(keywords),
        "relevance": {"score": score, "note": None} if asked else None,
        **more,
    }


def yields(posts: list[Row], edges: list[int] | None = None) -> Yields:
    """What the terms of posts brought."""
    table = pa.Table.from_pylist(posts, schema=POSTS.schema)
    return keyword_yields(table, RELEASED, edges or planned_edges((), RELEASED, 60), (4, 5))


def test_counts_by_hand() -> None:
    """Two terms, one post that both found, one that was not scored, one that came along."""
    found = yields([
        post(0.5, "broad"),
        post(0.9, "broad", "narrow"),
        post(1.0, "broad", score=1),
        post(15, "broad", score=None),
        post(15, "broad", asked=False),
        post(20, "narrow", score=4),
        post(20),
        post(3, keywords=None),
    ])  # fmt: skip
    broad, narrow = found.keywords

    assert (broad.keyword, narrow.keyword) == ("broad", "narrow")
    total = broad.total
    assert (total.found, total.scored, total.passed, total.alone, total.alone_passed) == (
        5, 3, 2, 4, 1,
    )  # fmt: skip
    assert (narrow.total.found, narrow.total.passed, narrow.total.alone_passed) == (2, 2, 1)
    assert (found.together.total.found, found.together.total.passed) == (6, 3)
    assert (found.came_along, found.unknown) == (1, 1)
    of_day = {w.name: y for w, y in zip(found.windows, broad.windows, strict=True)}
    assert [of_day[name].found for name in ("0", "1", "14-20")] == [2, 1, 2]
    assert of_day["14-20"].share is None
    assert (broad.half_by_day, narrow.half_by_day) == (0, 0)


def test_a_share_has_wilsons_interval() -> None:
    """By the formula of 1927, with the normal quantile of 97.5 %."""
    (one,) = yields([post(0, "a", n=n, score=5 if n < 7 else 1) for n in range(20)]).keywords
    p, n, z = 7 / 20, 20, 1.959963984540054
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))

    assert one.total.share == 7 / 20
    assert one.total.interval == pytest.approx((middle - half, middle + half))
    assert yields([post(0, "a", asked=False)]).keywords[0].total.interval is None


POST = st.builds(
    lambda day, words, score, asked: post(day, *words, score=score, asked=asked),
    st.none() | st.floats(-40, 60).map(lambda day: round(day, 3)),
    st.lists(st.sampled_from(["a", "b", "c"]), max_size=4),
    st.none() | st.integers(1, 5),
    st.booleans(),
)


@given(st.lists(POST, max_size=30))
def test_every_count_is_that_of_a_plain_loop(posts: list[Row]) -> None:
    """For any posts: each window of each term, and who found a post alone."""
    found = yields(posts)
    expected: dict[str, Counter[Any]] = {
        name: Counter() for name in ("found", "scored", "passed", "alone", "alone_passed")
    }
    for one in posts:
        words = set(one["keywords"])
        score = (one["relevance"] or {}).get("score")
        for word in words:
            place = word, named(one["timestamp"])
            expected["found"][place] += 1
            expected["scored"][place] += score is not None
            expected["passed"][place] += score in (4, 5)
            expected["alone"][place] += len(words) == 1
            expected["alone_passed"][place] += len(words) == 1 and score in (4, 5)
    for term in found.keywords:
        for window, counted in zip(found.windows, term.windows, strict=True):
            for name, counts in expected.items():
                assert getattr(counted, name) == counts[term.keyword, window.name]
    assert {one.keyword for one in found.keywords} == {w for one in posts for w in one["keywords"]}
    assert found.together.total.found == sum(bool(one["keywords"]) for one in posts)


def named(moment: datetime.datetime | None) -> str:
    """The window of a moment, by the calendar: daily for two weeks, weekly after."""
    if moment is None:
        return "undated"
    day = (moment.date() - RELEASED).days
    if day < 0:
        return "before"
    first = day if day < 14 else day - day % 7
    return str(day) if day < 14 else f"{first}-{first + 6}"


@pytest.mark.parametrize("passed", [[0], [0, 4], [0, 3, 9], [1, 2, 3, 4], [5, 5, 6]])
def test_half_of_the_posts_are_there_by_a_day(passed: list[int]) -> None:
    """The first day by whose end at least half were written."""
    posts = [post(day + 0.5, "a", n=n) for n, day in enumerate(passed)]
    expected = next(d for d in range(20) if sum(one <= d for one in passed) * 2 >= len(passed))

    assert yields(posts).keywords[0].half_by_day == expected
    assert yields([post(3, "a", score=1)]).keywords[0].half_by_day is None


def test_a_day_begins_at_midnight_in_greenwich() -> None:
    """Its last second is in it, and so is a moment before the year 1970."""
    moments = ["2026-03-02T23:59:59", "2026-03-03T00:00:00", "2026-03-01T23:59:59",
               "1969-12-31T23:59:59"]  # fmt: skip
    given = [datetime.datetime.fromisoformat(one).replace(tzinfo=datetime.UTC) for one in moments]
    days = days_since(pa.array([*given, None], POSTS.schema.field("timestamp").type), RELEASED)

    assert days.to_pylist() == [0, 1, -1, (given[3].date() - RELEASED).days, None]


def test_windows_are_those_of_the_plan() -> None:
    """Each phase has its own length; weeks follow where posts are later."""
    phases = [
        {"terms": ["a"], "window": "2d", "days": 4},
        {"terms": ["b"], "window": "7d", "until": "2026-03-21"},
    ]
    search = Search.model_validate({"phases": phases})

    assert planned_edges([search], RELEASED, 10) == [0, 2, 4, 11, 18, 19]
    assert planned_edges([search], RELEASED, 30) == [0, 2, 4, 11, 18, 19, 26, 33]
    assert planned_edges([], RELEASED, 3) == planned_edges((), RELEASED, 3) == list(range(15))


ENDLESS = Search.model_validate(
    {"phases": [{"terms": ["a"], "window": "2d", "days": 4}, {"terms": ["b"], "window": "1d"}]}
)


@given(st.integers(-10, 4_000_000), st.sampled_from([[], [ENDLESS]]))
def test_every_day_until_the_last_is_in_a_window(last: int, searches: list[Search]) -> None:
    """However late a post claims to be, and by a plan that has no end."""
    edges = planned_edges(searches, RELEASED, last)

    assert edges == sorted(set(edges))
    assert edges[0] == 0
    assert edges[-1] > last
    assert len(windows_of(edges)) < 6_000


def test_no_post_at_all() -> None:
    """Nothing is divided by nothing."""
    found = yields([])

    assert (found.keywords, found.together.total.found) == ((), 0)
