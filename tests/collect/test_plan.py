"""The query plan: every moment of every phase in one window, whatever the hour."""

from __future__ import annotations

import datetime

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.collect.query_plan import Query, planned
from echo_hf.config.collection import Phase, Search

RELEASED = datetime.date(2025, 3, 25)
HOUR = datetime.timedelta(hours=1)


def at(text: str) -> datetime.datetime:
    """A moment in UTC."""
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)


def windows(*phases: Phase, now: str = "2026-01-01") -> list[tuple[str, str, bool]]:
    """Start, end and whether it is cut, of each query."""
    found = planned(Search(phases=phases), RELEASED, at(now))
    return [(*_times(query), query.cut) for query in found]


def _times(query: Query) -> tuple[str, str]:
    window = query.question.window
    assert window is not None
    return tuple(f"{one:%m-%d %H}" for one in (window.start, window.end))  # type: ignore[return-value]


def test_the_figure_of_the_paper() -> None:
    """14 daily windows of 5 terms, and from 8 April to 30 June 11 weeks and 6 days of 10."""
    broad = Phase(terms=tuple("abcde"), window="1d", days=14)
    narrow = Phase(terms=tuple("abcdefghij"), window="7d", until=datetime.date(2025, 6, 30))
    queries = list(planned(Search(phases=(broad, narrow)), RELEASED, at("2026-01-01")))
    lengths = [one.question.window.end - one.question.window.start for one in queries]  # type: ignore[union-attr]

    assert [one.phase for one in queries] == [0] * 14 * 5 + [1] * 12 * 10
    assert [length.days for length in lengths] == [1] * 70 + [7] * 110 + [6] * 10
    assert not any(one.cut for one in queries)


def test_windows_are_asked_in_order_each_with_all_terms_and_languages() -> None:
    """The earliest first, so that a budget is spent where people say most."""
    phase = Phase(terms=("a", "b"), languages=("en", "ja"), window="1d", days=2)
    queries = list(planned(Search(phases=(phase,)), RELEASED, at("2026-01-01")))
    told = [(_times(one)[0], one.question.about, one.question.language) for one in queries]

    assert told == [
        (day, (term,), language)
        for day in ("03-25 00", "03-26 00")
        for term in ("a", "b")
        for language in ("en", "ja")
    ]


def test_a_window_that_is_not_over_ends_at_the_last_full_hour() -> None:
    """What has not begun is left for later; a phase that goes on is planned until now."""
    week = Phase(terms=("a",), window="7d")

    assert windows(week, now="2025-04-02T10:59:59") == [
        ("03-25 00", "04-01 00", False),
        ("04-01 00", "04-02 10", True),
    ]
    assert windows(week, now="2025-03-25T00:30:00") == []
    assert windows(week, now="2025-03-01") == []


def test_the_hour_is_that_of_utc() -> None:
    """A time of another zone is the same moment."""
    tokyo = datetime.timezone(datetime.timedelta(hours=9))
    now = datetime.datetime(2025, 3, 26, 8, 15, tzinfo=tokyo)
    (query,) = planned(Search(phases=(Phase(terms=("a",), window="7d"),)), RELEASED, now)

    assert _times(query) == ("03-25 00", "03-25 23")


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 12)), min_size=1, max_size=4),
    st.integers(0, 24 * 120),
)
def test_every_hour_of_the_past_is_in_one_window(phases: list[tuple[int, int]], hours: int) -> None:
    """Phases one after the other have neither gaps nor overlaps, up to now."""
    now = at("2025-03-25") + hours * HOUR
    options = tuple(Phase(terms=("a",), window=f"{length}d", days=days) for days, length in phases)
    covered: list[datetime.datetime] = []
    for query in planned(Search(phases=options), RELEASED, now):
        window = query.question.window
        assert window is not None
        moment = window.start
        while moment < window.end:
            covered.append(moment)
            moment += HOUR
    total = min(hours, 24 * sum(days for days, _ in phases))

    assert covered == [at("2025-03-25") + one * HOUR for one in range(total)]
