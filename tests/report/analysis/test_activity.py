"""Posts over time."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pyarrow as pa

from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis.activity import activity
from echo_hf.tables import POSTS

SCHEMA = pa.schema([POSTS.schema.field(name) for name in ("url", "timestamp", "keywords")])


def _posts(*rows: tuple[datetime | None, list[str] | None]) -> pa.Table:
    named = [
        {"url": f"u{at}", "timestamp": moment, "keywords": terms}
        for at, (moment, terms) in enumerate(rows)
    ]
    return pa.Table.from_pylist(named, SCHEMA)


def test_days_are_those_of_utc_and_count_from_the_release() -> None:
    """Ten in the evening in New York is the next day; a day before the release is -1."""
    new_york = timezone(timedelta(hours=-5))
    found = activity(
        _posts(
            (datetime(2026, 3, 1, 22, tzinfo=new_york), ["lumen", "lumen", "l2"]),
            (datetime(2026, 3, 2, 23, 59, 59, tzinfo=UTC), []),
            (datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC), None),
            (None, ["lumen"]),
        ),
        date(2026, 3, 2),
    ).found
    assert found is not None
    days = {day.date: (day.since_release, day.posts) for day in found.days}
    assert days == {"2026-03-01": (-1, 1), "2026-03-02": (0, 2)}
    assert (found.days[1].found, found.days[1].came_along, found.days[0].unknown) == (1, 1, 1)
    assert (found.keywords, found.undated) == ({"lumen": 2, "l2": 1}, 1)


def test_without_posts_there_is_a_reason() -> None:
    """A release does not hold them."""
    assert activity(None, date(2026, 3, 2)).reason is NotAnalyzed.NO_POSTS
