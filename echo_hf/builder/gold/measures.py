"""Summarize compared items into measures: value, interval, and the share that was answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from math import fsum
from typing import Any, Literal

import numpy as np

from echo_hf._infra.bootstrap import Interval
from echo_hf.samples.spans import squeeze

LEVEL = 0.95
MIN_THREADS = 10
RESAMPLES = 2000
# Measures whose items may be right in part.
GRADED_MEASURES = frozenset({"prompt_similarity", "box_iou"})
# For a precision, whose items are claims: the measures of what people wrote down.
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


def wilson_interval(right: int, count: int) -> Interval | None:
    """Return the score interval of a share (Wilson 1927), at 95 %."""
    if not count:
        return None
    from scipy.stats import binomtest

    interval = binomtest(right, count).proportion_ci(LEVEL, method="wilson")
    return float(interval.low), float(interval.high)


def bootstrap_over_threads(scores: Iterable[Sequence[float]]) -> Interval | None:
    """Return the percentile interval of a mean over items, drawing whole threads, at 95 %."""
    threads = [thread for thread in scores if thread]
    if len(threads) < MIN_THREADS or len({sum(thread) / len(thread) for thread in threads}) == 1:
        return None
    from scipy.stats import bootstrap

    interval = bootstrap(
        ([sum(thread) for thread in threads], [float(len(thread)) for thread in threads]),
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
    """One compared item; its score is null where no answer was given."""

    thread: str
    place: str
    expected: str
    answer: str
    score: float | None


NamedItem = tuple[str, Item | None]
"""An item of the measure of this name; none is one that people left open, which is counted."""


def grade(thread: str, place: str, right: Iterable[str], answer: str | None) -> Item:
    """Compare an answer with all that are right; null is no answer."""
    right_answers = sorted(right)
    score = None if answer is None else float(answer in right_answers)
    return Item(thread, place, " or ".join(right_answers), answer or "", score)


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
        fields = {name: value for name, value in vars(self).items() if name != "errors"}
        return {**fields, "coverage": self.coverage}


def summarize(
    stage: str, names: Iterable[str], named_items: Iterable[NamedItem], *, errors: bool = False
) -> tuple[Measure, ...]:
    """Summarize the items of each measure; their order does not matter."""
    items: dict[str, list[Item | None]] = {name: [] for name in names}
    for name, item in named_items:
        items[name].append(item)
    return tuple(_measure(stage, name, items, errors) for name in items)


def _measure(
    stage: str, name: str, items: Mapping[str, Sequence[Item | None]], errors: bool
) -> Measure:
    own = sorted(filter(None, items[name]), key=lambda item: astuple(item)[:4])
    by_thread: dict[str, list[float]] = {}
    for item in own:
        if item.score is not None:
            by_thread.setdefault(item.thread, []).append(item.score)
    scores = [score for thread in by_thread.values() for score in thread]
    total, n, graded = fsum(scores), len(scores), name in GRADED_MEASURES
    expected = [item for key in RECALLS.get(name, (name,)) for item in items[key] if item]
    ends = bootstrap_over_threads(by_thread.values()) if graded else wilson_interval(int(total), n)
    low, high = ends or (None, None)
    return Measure(
        stage,
        name,
        total / n if n else None,
        n,
        low,
        high,
        None if ends is None else "bootstrap over threads" if graded else "wilson",
        sum(item.score is not None for item in expected),
        len(expected),
        total / len(expected) if expected and name not in RECALLS else None,
        items[name].count(None),
        tuple(item for item in own if item.score != 1) if errors else (),
    )


def similarity(first: str, second: str) -> float:
    """Return 1 less the Levenshtein distance over the longer length, with single spaces."""
    short, long = sorted((squeeze(first), squeeze(second)), key=len)
    columns = np.arange(len(long) + 1)
    letters = np.array([ord(letter) for letter in long], dtype=np.int64)
    costs = columns
    for row, letter in enumerate(short, 1):
        substituted = np.minimum(costs[1:] + 1, costs[:-1] + (letters != ord(letter)))
        # Insertions cost 1 per column: a running minimum of cost minus column finds the cheapest.
        costs = np.minimum.accumulate(np.insert(substituted, 0, row) - columns) + columns
    return 1 - int(costs[-1]) / len(long) if long else 1.0
