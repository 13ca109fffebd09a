"""When people posted, and by which search terms their posts were found (figure 5c)."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Sequence

import pyarrow as pa

from echo_hf.analysis.figures import Part
from echo_hf.analysis.result import Activity, Day
from echo_hf.reasons import NotAnalyzed

FOUND, CAME_ALONG, UNKNOWN = "found", "came_along", "unknown"
ActivityPart = Part[Activity]


def activity(posts: pa.Table | None, released: datetime.date) -> ActivityPart:
    """Counts posts by day and by search term.

    Args:
        posts: Rows with timestamp and keywords; null where they are not at hand.
        released: The day of the release.

    Returns:
        The counts.
    """
    if posts is None:
        return ActivityPart(reason=NotAnalyzed.NO_POSTS, detail=NotAnalyzed.NO_POSTS.meaning)
    moments, terms = posts["timestamp"].to_pylist(), posts["keywords"].to_pylist()
    by_day: dict[datetime.date, Counter[str]] = defaultdict(Counter)
    undated = 0
    for moment, keywords in zip(moments, terms, strict=True):
        if moment is None:
            undated += 1
        else:
            by_day[moment.astimezone(datetime.UTC).date()][_how(keywords)] += 1
    keywords = Counter(term for found in terms for term in dict.fromkeys(found or ()))
    found = Activity(
        days=tuple(_day(date, counts, released) for date, counts in sorted(by_day.items())),
        keywords=dict(sorted(keywords.items(), key=lambda pair: (-pair[1], pair[0]))),
        undated=undated,
    )
    definition = {"days": "UTC", "released": released.isoformat()}
    return ActivityPart(found=found, definition=definition)


def _how(keywords: Sequence[str] | None) -> str:
    if keywords is None:
        return UNKNOWN
    return FOUND if keywords else CAME_ALONG


def _day(date: datetime.date, counts: Counter[str], released: datetime.date) -> Day:
    return Day(
        date=date.isoformat(),
        since_release=(date - released).days,
        posts=counts.total(),
        found=counts[FOUND],
        came_along=counts[CAME_ALONG],
        unknown=counts[UNKNOWN],
    )
