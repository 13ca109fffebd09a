"""From compared items to a measure: value, interval, and how much of the gold was answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, Literal

import numpy as np

from echo_hf.samples.spans import squeezed

LEVEL = 0.95
FEWEST_THREADS = 10
RESAMPLES = 2000
SEED = 0
Interval = tuple[float, float]


def wilson(right: int, count: int) -> Interval | None:
    """The score interval of a share (Wilson 1927), at 95 %."""
    if not count:
        return None
    from scipy.stats import binomtest

    interval = binomtest(right, count).proportion_ci(LEVEL, method="wilson")
    return float(interval.low), float(interval.high)


def bootstrap_over_threads(scores: Sequence[Sequence[float]]) -> Interval | None:
    """The percentile interval of a mean over items, drawing whole threads, at 95 %."""
    threads = [thread for thread in scores if len(thread)]
    if len(threads) < FEWEST_THREADS or len({sum(one) / len(one) for one in threads}) == 1:
        return None
    import numpy as np
    from scipy.stats import bootstrap

    def mean(sums: Any, counts: Any, axis: int) -> Any:
        return np.sum(sums, axis=axis) / np.sum(counts, axis=axis)

    interval = bootstrap(
        ([sum(one) for one in threads], [float(len(one)) for one in threads]),
        mean,
        paired=True,
        confidence_level=LEVEL,
        n_resamples=RESAMPLES,
        method="percentile",
        random_state=SEED,
    ).confidence_interval
    return float(interval.low), float(interval.high)


@dataclass(frozen=True)
class Item:
    """One thing that was compared."""

    thread: str
    place: str
    expected: str
    given: str
    score: float | None


@dataclass(frozen=True)
class Scored:
    """The items of one measure."""

    name: str
    items: Sequence[Item]
    covered: tuple[int, int] | None = None
    graded: bool = False
    skipped: int = 0


@dataclass(frozen=True)
class Measure:
    """How well a stage does one thing."""

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
        """Share of what people wrote down that got an answer, null when there is nothing."""
        return self.answered / self.asked if self.asked else None

    def as_json(self) -> dict[str, Any]:
        """The measure as plain values; its errors are left out."""
        plain = {name: value for name, value in vars(self).items() if name != "errors"}
        return {**plain, "coverage": self.coverage}


def measured(stage: str, scored: Scored, *, errors: bool = False) -> Measure:
    """Sums up the items of a measure; their order does not matter."""
    items = sorted(scored.items, key=lambda one: (one.thread, one.place, one.expected, one.given))
    by_thread: dict[str, list[float]] = {}
    for item in items:
        if item.score is not None:
            by_thread.setdefault(item.thread, []).append(item.score)
    scores = [score for thread in by_thread.values() for score in thread]
    total, n = fsum(scores), len(scores)
    answered, asked = scored.covered or (n, len(items))
    ends = bootstrap_over_threads([*by_thread.values()]) if scored.graded else wilson(int(total), n)
    how: Literal["wilson", "bootstrap over threads"] = (
        "bootstrap over threads" if scored.graded else "wilson"
    )
    return Measure(
        stage,
        scored.name,
        total / n if n else None,
        n,
        ends[0] if ends else None,
        ends[1] if ends else None,
        how if ends else None,
        answered,
        asked,
        total / asked if asked and scored.covered is None else None,
        scored.skipped,
        tuple(item for item in items if item.score != 1) if errors else (),
    )


def similarity(one: str, other: str) -> float:
    """The share of characters that two texts have in common, in order; white space is squeezed."""
    one, other = squeezed(one), squeezed(other)
    longest = max(len(one), len(other))
    return 1 - distance(one, other) / longest if longest else 1.0


def distance(one: str, other: str) -> int:
    """The Levenshtein distance of two texts."""
    one, other = sorted((one, other), key=len)
    columns = np.arange(len(other) + 1)
    letters = np.array([ord(letter) for letter in other], dtype=np.int64)
    costs = columns.copy()
    for row, letter in enumerate(one, 1):
        reached = np.empty_like(costs)
        reached[0] = row
        reached[1:] = np.minimum(costs[1:] + 1, costs[:-1] + (letters != ord(letter)))
        # An insertion costs one a column: the cheapest start to the left of each.
        costs = np.minimum.accumulate(reached - columns) + columns
    return int(costs[-1])
