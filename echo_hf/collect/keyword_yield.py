"""What each search term is worth: how many of its posts are on topic, and for how long.

In the paper a broad term pays in the first days after a release and brings little else than noise
soon after (section 3.1). Whoever plans the next search reads here which terms to drop, and when.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.check.intervals import wilson
from echo_hf.collect.yield_windows import DayWindow, windows_of

SECONDS_A_DAY = 86_400
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Yield:
    """What a term brought in a stretch of time.

    Attributes:
        found: Posts that it found.
        scored: Those of them whose relevance is known.
        passed: Those of them that are on topic.
        alone: Posts that no other term found.
        alone_passed: Those of them that are on topic.
    """

    found: int
    scored: int
    passed: int
    alone: int
    alone_passed: int

    @property
    def share(self) -> float | None:
        """The share of scored posts that are on topic, from 0 to 1; null where none is scored."""
        return self.passed / self.scored if self.scored else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where that share lies with 95 % confidence, by Wilson's score."""
        return wilson(self.passed, self.scored)


@dataclass(frozen=True)
class KeywordYield:
    """What a term brought, over all and in each window.

    Attributes:
        keyword: The term; null for all terms together, where a post counts once.
        total: Over all time.
        windows: In each of the windows, in their order.
        half_by_day: By the end of this day since the release, half of its posts on topic were
            written; null where none has a date.
    """

    keyword: str | None
    total: Yield
    windows: tuple[Yield, ...]
    half_by_day: int | None


@dataclass(frozen=True)
class Yields:
    """What the terms of a search brought.

    Attributes:
        windows: The stretches of time.
        together: All terms together.
        keywords: Each term, those with the most posts on topic first.
        came_along: Posts that no term found: parents, replies, quotations.
        unknown: Posts of files that do not say what found them.
    """

    windows: tuple[DayWindow, ...]
    together: KeywordYield
    keywords: tuple[KeywordYield, ...]
    came_along: int
    unknown: int


def days_since(timestamps: pa.Array, released: datetime.date) -> pa.Array:
    """Whole days from the release, in UTC, to each moment; null where there is none."""
    start = datetime.datetime.combine(released, datetime.time(), datetime.UTC)
    seconds = pc.cast(pc.cast(timestamps, pa.timestamp("s", "UTC"), safe=False), pa.int64())
    whole = pc.subtract(seconds, int(start.timestamp()))
    days = np.floor_divide(pc.fill_null(whole, 0).to_numpy(), SECONDS_A_DAY)
    return pc.if_else(timestamps.is_valid(), pa.array(days, pa.int64()), None)


def keyword_yields(
    posts: pa.Table, released: datetime.date, edges: Sequence[int], keep: Sequence[int]
) -> Yields:
    """Counts what each term brought in each window.

    Args:
        posts: Rows of `posts` with their relevance.
        released: The day of the release; a day begins at midnight UTC.
        edges: Days on which windows begin, rising, and the day after the last one; no post may be
            from later.
        keep: Relevance scores that are on topic.

    Returns:
        The counts.
    """
    windows = windows_of(edges)
    days = days_since(posts["timestamp"].combine_chunks(), released)
    places = _windows(days, edges)
    score = pc.struct_field(posts["relevance"].combine_chunks(), "score")
    scored = np.asarray(score.is_valid())
    passed = np.asarray(pc.is_in(score, pa.array(keep, score.type)))
    lists = posts["keywords"].combine_chunks()
    words = pc.dictionary_encode(pc.list_flatten(lists))
    owner = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    kinds = np.asarray(words.indices, dtype=np.int64)
    kinds, owner = _each_once(kinds, owner)
    found_by = np.bincount(owner, minlength=len(posts))
    counted = _Counted(places, scored, passed, found_by == 1, days, len(windows))
    every = [
        counted.of(word.as_py(), owner[kinds == number])
        for number, word in enumerate(words.dictionary)
    ]
    return Yields(
        windows=tuple(windows),
        together=counted.of(None, np.flatnonzero(found_by)),
        keywords=tuple(sorted(every, key=_by_worth)),
        came_along=int(np.sum((found_by == 0) & np.asarray(lists.is_valid()))),
        unknown=lists.null_count,
    )


@dataclass(frozen=True)
class _Counted:
    """What is known of each post, and how posts are counted by it."""

    window: Numbers
    scored: Flags
    passed: Flags
    alone: Flags
    days: pa.Array
    windows: int

    def of(self, keyword: str | None, rows: Numbers) -> KeywordYield:
        """What a term brought, by the rows that it found."""
        masks = (
            np.ones(len(rows), dtype=bool),
            self.scored[rows],
            self.passed[rows],
            self.alone[rows],
            self.alone[rows] & self.passed[rows],
        )
        counts = [
            np.bincount(self.window[rows][mask], minlength=self.windows).tolist() for mask in masks
        ]
        by_window = tuple(Yield(*one) for one in zip(*counts, strict=True))
        total = Yield(*(sum(one) for one in counts))
        dated = self.days.take(pa.array(rows[self.passed[rows]])).drop_null().to_numpy()
        half = int(np.sort(dated)[(len(dated) - 1) // 2]) if len(dated) else None
        return KeywordYield(keyword, total, by_window, half)


def _windows(days: pa.Array, edges: Sequence[int]) -> Numbers:
    # 0 holds what has no date, 1 what is from before the first edge.
    inside = np.searchsorted(np.asarray(edges), pc.fill_null(days, 0).to_numpy(), side="right") + 1
    return np.where(np.asarray(days.is_valid()), inside, 0).astype(np.int64)


def _each_once(kinds: Numbers, owner: Numbers) -> tuple[Numbers, Numbers]:
    """Pairs of a term and a post, none of them twice."""
    pairs = np.unique(np.stack([owner, kinds], axis=1), axis=0) if len(owner) else np.empty((0, 2))
    return pairs[:, 1].astype(np.int64), pairs[:, 0].astype(np.int64)


def _by_worth(one: KeywordYield) -> tuple[int, int, str]:
    return -one.total.passed, -one.total.found, one.keyword or ""
