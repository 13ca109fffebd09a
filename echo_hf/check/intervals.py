"""How far a measured share or mean may be from the true one.

Both intervals are about another sample of threads like these, read by the same engine. Wilson's
takes the items as independent of each other; those of one thread are alike, so that the truth is
somewhat less certain than it says. The bootstrap draws whole threads and has no such fault, but
needs some threads that differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LEVEL = 0.95
FEWEST_THREADS = 10
RESAMPLES = 2000
SEED = 0
Interval = tuple[float, float]


def wilson(right: int, count: int) -> Interval | None:
    """The score interval of a share (Wilson 1927), at 95 %.

    Args:
        right: How many were right.
        count: Of how many.

    Returns:
        Lower and upper end; null when there is nothing to divide.

    Example:
        >>> low, high = wilson(81, 263)
        >>> f"{low:.4f} {high:.4f}"
        '0.2553 0.3662'
    """
    if not count:
        return None
    from scipy.stats import binomtest

    interval = binomtest(right, count).proportion_ci(LEVEL, method="wilson")
    return float(interval.low), float(interval.high)


def bootstrap_over_threads(scores: Sequence[Sequence[float]]) -> Interval | None:
    """The percentile interval of a mean over items, drawing whole threads, at 95 %.

    Args:
        scores: For each thread the scores of its items.

    Returns:
        Lower and upper end, the same each time; null for fewer than 10 threads, or where all
        have the same mean, which tells nothing of how far others may differ.

    Example:
        >>> bootstrap_over_threads([[0.5], [1.0]]) is None
        True
    """
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
