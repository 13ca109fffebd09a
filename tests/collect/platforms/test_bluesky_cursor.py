"""Where a search of Bluesky is."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.collect.platforms.base import TimeWindow
from echo_hf.collect.platforms.bluesky import SearchPlace, time_of

START = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
DAY = TimeWindow(START, START + datetime.timedelta(days=1))


def at(minute: int) -> datetime.datetime:
    """A moment of the day."""
    return START + datetime.timedelta(minutes=minute)


@given(st.sets(st.integers(0, 1439), max_size=60), st.integers(2, 7), st.integers(1, 3))
def test_a_search_that_dries_up_anywhere_finds_every_post(
    minutes: set[int], page: int, pages: int
) -> None:
    """Against a platform whose cursor ends after so many pages, however many posts are left."""
    found: set[int] = set()
    place = SearchPlace.read(None, DAY)
    for _ in range(400):
        until = place.until
        left = sorted((one for one in minutes if until is None or at(one) < until), reverse=True)
        first = int(place.theirs or 0)
        shown, last = left[first : first + page], first + page
        found |= set(shown)
        theirs = str(last) if last < min(len(left), page * pages) else None
        after = place.next(theirs, map(at, shown), DAY)
        if after is None:
            break
        place = SearchPlace.read(after.written(), DAY)
    else:
        pytest.fail("it never ends")

    assert found == minutes


def test_a_place_comes_back_from_its_cursor() -> None:
    """With all that it is made of."""
    place = SearchPlace("7", at(9), at(3))

    assert SearchPlace.read(place.written(), DAY) == place


@pytest.mark.parametrize("minutes", [[], [-5], [1440]])
def test_a_page_without_a_post_of_the_window_is_the_last(minutes: list[int]) -> None:
    """Times that authors made up lead nowhere."""
    assert SearchPlace(until=DAY.end).next(None, [at(one) for one in minutes], DAY) is None


def test_the_time_of_a_post_is_the_earlier_one() -> None:
    """As the platform sorts them."""
    early, late = "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"

    assert time_of(late, early) == time_of(early, late) == time_of(early, None) == START
    assert time_of("never", None) is None
