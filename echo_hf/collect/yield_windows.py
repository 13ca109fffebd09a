"""The stretches of time, in days since the release, over which search terms are compared."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from echo_hf.collect.search_config import Search, phase_spans

DAILY = 14  # days, as in the paper; weeks follow
WEEK = 7
MOST_EDGES = 5_000  # of a phase: a post of the year 9999 makes no hundred thousand windows


class DayWindow(NamedTuple):
    """Days since the release; the day of the release is day 0.

    Attributes:
        start: The first day; null for all before `end`.
        end: The day after the last one; null, with `start`, for posts without a date.
    """

    start: int | None
    end: int | None

    @property
    def name(self) -> str:
        """As a person reads it: `0`, `14-20`, `before`, `undated`."""
        if self.end is None:
            return "undated"
        if self.start is None:
            return "before"
        return str(self.start) if self.end == self.start + 1 else f"{self.start}-{self.end - 1}"


def default_edges(last: int) -> list[int]:
    """Where windows begin when no plan says it: daily for two weeks, weekly after.

    Args:
        last: The last day that has to lie in a window.

    Returns:
        Days, and at the end the one after the last window.

    Example:
        >>> default_edges(20)[-4:], default_edges(21)[-2:]
        ([12, 13, 14, 21], [21, 28])
    """
    return _prolonged(list(range(DAILY + 1)), last)


def planned_edges(searches: Sequence[Search], released: datetime.date, last: int) -> list[int]:
    """Where windows begin by the plan; weekly after its end.

    Args:
        searches: The searches of a config; with several, a window begins where any of theirs does.
        released: The day of the release.
        last: The last day that has to lie in a window.

    Returns:
        As `default_edges`.
    """
    edges: set[int] = set()
    for search in searches:
        spans = phase_spans(search.phases, released)
        for phase, span in zip(search.phases, spans, strict=True):
            start = (span.start - released).days
            end = last + 1 if span.until is None else (span.until - released).days
            edges.update(range(start, max(end, start + 1), phase.length.days)[:MOST_EDGES])
            edges.add(max(end, start + 1))
    return _prolonged(sorted(edges), last) if edges else default_edges(last)


def windows_of(edges: Iterable[int]) -> list[DayWindow]:
    """The windows between edges, and before the first one those that are left.

    Example:
        >>> [one.name for one in windows_of([0, 1, 8])]
        ['undated', 'before', '0', '1-7']
    """
    days = list(edges)
    inner = [DayWindow(*pair) for pair in pairwise(days)]
    return [DayWindow(None, None), DayWindow(None, days[0]), *inner]


def _prolonged(edges: list[int], last: int) -> list[int]:
    if edges[-1] <= last:
        weeks = range(edges[-1] + WEEK, last + WEEK + 1, WEEK)
        edges = [*edges, *weeks[:MOST_EDGES]]
        if edges[-1] <= last:
            edges.append(last + 1)
    return edges
