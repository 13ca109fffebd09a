"""From compared items to a measure: value, interval, and how much of the gold was answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from math import fsum
from typing import Any, Literal

import numpy as np

from echo_hf.samples.spans import squeezed

LEVEL = 0.95
FEWEST_THREADS = 10
RESAMPLES = 2000
Interval = tuple[float, float]


def wilson(right: int, count: int) -> Interval | None:
    """The score interval of a share (Wilson 1927), at 95 %."""
    if not count:
        return None
    from scipy.stats import binomtest

    interval = binomtest(right, count).proportion_ci(LEVEL, method="wilson")
    return float(interval.low), float(interval.high)


def bootstrap_over_threads(scores: Iterable[Sequence[float]]) -> Interval | None:
    """The percentile interval of a mean over items, drawing whole threads, at 95 %."""
    threads = [thread for thread in scores if thread]
    if len(threads) < FEWEST_THREADS or len({sum(one) / len(one) for one in threads}) == 1:
        return None
    from scipy.stats import bootstrap

    interval = bootstrap(
        ([sum(one) for one in threads], [float(len(one)) for one in threads]),
        lambda sums, counts, axis: np.sum(sums, axis=axis) / np.sum(counts, axis=axis),
        paired=True,
        confidence_level=LEVEL,
        n_resamples=RESAMPLES,
        method="percentile",
        random_state=0,
    ).confidence_interval
    return float(interval.low), float(interval.high)


@dataclass(frozen=True)
class Item:
    """One thing that was compared; its score is null where no answer was given."""

    thread: str
    place: str
    expected: str
    given: str
    score: float | None


Compared = tuple[str, Item | None]
"""An item of the measure of this name; none is one that people left open, which is counted."""


def judged(thread: str, place: str, right: Iterable[str], given: str | None) -> Item:
    """An answer beside all that are right; null is none."""
    every = sorted(right)
    score = None if given is None else float(given in every)
    return Item(thread, place, " or ".join(every), given or "", score)


GRADED = frozenset({"prompt_similarity", "box_iou"})
"""Measures of which an item may be right in part."""
RECALLS: Mapping[str, tuple[str, ...]] = {
    "keep_precision": ("keep_recall", "drop_recall"),
    "drop_precision": ("keep_recall", "drop_recall"),
    "sample_precision": ("sample_recall",),
    "feedback_precision": ("feedback_recall",),
    "screenshot_precision": ("screenshot_recall",),
    "completion_precision": ("blanks_filled",),
    "box_precision": ("box_recall",),
    "removal_precision": ("removal_recall", "keep_recall"),
}
"""Of a precision, whose items are claims: the measures of what people wrote down."""


@dataclass(frozen=True)
class Measure:
    stage: str
    name: str
    value: float | None
    n: int
    low: float | None
    high: float | None
    interval: Literal["wilson", "bootstrap over threads"] | None
    answered: int
    asked: int
    strict: float | None
    skipped: int = 0
    errors: tuple[Item, ...] = ()

    @property
    def coverage(self) -> float | None:
        return self.answered / self.asked if self.asked else None

    def as_json(self) -> dict[str, Any]:
        plain = {name: value for name, value in vars(self).items() if name != "errors"}
        return {**plain, "coverage": self.coverage}


def measured(
    stage: str, names: Iterable[str], compared: Iterable[Compared], *, errors: bool = False
) -> tuple[Measure, ...]:
    """Sums up the items of each measure; their order does not matter."""
    items: dict[str, list[Item | None]] = {name: [] for name in names}
    for name, item in compared:
        items[name].append(item)
    return tuple(_measure(stage, name, items, errors) for name in items)


def _measure(
    stage: str, name: str, items: Mapping[str, Sequence[Item | None]], errors: bool
) -> Measure:
    own = sorted(filter(None, items[name]), key=lambda one: astuple(one)[:4])
    by_thread: dict[str, list[float]] = {}
    for item in own:
        if item.score is not None:
            by_thread.setdefault(item.thread, []).append(item.score)
    scores = [score for thread in by_thread.values() for score in thread]
    total, n, graded = fsum(scores), len(scores), name in GRADED
    wanted = [one for each in RECALLS.get(name, (name,)) for one in items[each] if one]
    ends = bootstrap_over_threads(by_thread.values()) if graded else wilson(int(total), n)
    low, high = ends or (None, None)
    return Measure(
        stage,
        name,
        total / n if n else None,
        n,
        low,
        high,
        None if ends is None else "bootstrap over threads" if graded else "wilson",
        sum(one.score is not None for one in wanted),
        len(wanted),
        total / len(wanted) if wanted and name not in RECALLS else None,
        items[name].count(None),
        tuple(one for one in own if one.score != 1) if errors else (),
    )


def similarity(one: str, other: str) -> float:
    """1 less the Levenshtein distance over the longer length; white space is squeezed."""
    short, long = sorted((squeezed(one), squeezed(other)), key=len)
    columns = np.arange(len(long) + 1)
    letters = np.array([ord(letter) for letter in long], dtype=np.int64)
    costs = columns
    for row, letter in enumerate(short, 1):
        changed = np.minimum(costs[1:] + 1, costs[:-1] + (letters != ord(letter)))
        # An insertion costs one a column: the cheapest start to the left of each.
        costs = np.minimum.accumulate(np.insert(changed, 0, row) - columns) + columns
    return 1 - int(costs[-1]) / len(long) if long else 1.0
