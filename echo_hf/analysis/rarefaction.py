"""How many different kinds a smaller sample would show: rarefaction, exact where drawing is not.

Unique counts grow with the number of prompts, so that sets are compared at one number. What
subsampling without replacement estimates has a closed form (Hurlbert 1971, Ecology 52; Heck, van
Belle and Simberloff 1975, Ecology 56), and so has its variance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

QUANTILE = 1.959963984540054  # of the normal distribution at 97.5 %


@dataclass(frozen=True)
class Rarefied:
    """Different kinds in a subsample.

    Attributes:
        size: Of the subsample.
        expected: Mean number over all subsamples without replacement.
        deviation: Standard deviation of the number over these subsamples.
        error: Standard error of `expected` as an estimate of what another sample of that size
            from the same population would show (Colwell et al. 2012, Journal of Plant Ecology 5,
            equation 5); unlike `deviation` it is not zero when the subsample is all there is.
    """

    size: int
    expected: float
    deviation: float
    error: float

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper end at 95 % for another such sample: from 0 to its size."""
        reach = QUANTILE * self.error
        return max(self.expected - reach, 0.0), min(self.expected + reach, float(self.size))


def rarefied(counts: Iterable[int], size: int) -> Rarefied:
    """How many kinds a subsample without replacement shows.

    Args:
        counts: How often each kind was seen, each 1 or more.
        size: Size of the subsample, from 0 to the sum of counts.

    Returns:
        Its mean and how far it varies.

    Raises:
        ValueError: A count or the size is not in that range.

    Example:
        >>> found = rarefied([2, 1], 2)  # aab: of three pairs one shows one kind, two show two
        >>> round(found.expected, 6), round(found.deviation, 6)
        (1.666667, 0.471405)
    """
    alike = Counter(counts)  # kinds by how often each was seen
    total = sum(seen * kinds for seen, kinds in alike.items())
    if min(alike, default=1) < 1 or not 0 <= size <= total:
        raise ValueError(f"size is {size}: expected 0 to {total}, and counts of 1 or more")
    seen, kinds = np.array(sorted(alike.items()), dtype=np.int64).reshape(-1, 2).T
    unseen = _unseen(total, size)
    missed = unseen[seen]
    expected = float(((1 - missed) * kinds).sum())
    both = unseen[np.minimum(seen[:, None] + seen, total)]
    covariance = (both - missed[:, None] * missed) * kinds[:, None] * kinds
    # Of one kind with itself: it is missed, or not.
    own = (missed - missed**2 - np.diagonal(both) + missed**2) * kinds
    variance = float(covariance.sum() + own.sum())
    error = ((1 - missed) ** 2 * kinds).sum() - expected**2 / _all_kinds(alike, total)
    deviation, spread = math.sqrt(max(variance, 0.0)), math.sqrt(max(float(error), 0.0))
    return Rarefied(size, expected, deviation, spread)


def _unseen(total: int, size: int) -> NDArray[np.float64]:
    """By number of members, the probability that no member of a group is drawn; [total + 1]."""
    rest = np.arange(total, dtype=np.float64)
    with np.errstate(divide="ignore"):
        steps = np.log(np.maximum(total - size - rest, 0)) - np.log(total - rest)
    unseen: NDArray[np.float64] = np.exp(np.concatenate([[0.0], np.cumsum(steps)]))
    return unseen


def _all_kinds(alike: Counter[int], total: int) -> float:
    """Chao's estimate of how many kinds there are, seen or not."""
    once, twice = alike[1], alike[2]
    unseen = once**2 / (2 * twice) if twice else once * (once - 1) / 2
    return max(alike.total() + (total - 1) / total * unseen if total else 0.0, 1.0)
