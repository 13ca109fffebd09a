"""Means over samples, with the interval and the test that take samples for what is independent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from echo_hf.bootstrap import Interval, drawn_weights, percentiles
from echo_hf.reasons import Unscored
from echo_hf.scores.arrays import Floats, divided
from echo_hf.scores.by_system import number


@dataclass(frozen=True)
class Draws:
    """How often chance is asked.

    Attributes:
        n_boot: Draws of the bootstrap over samples; 0 for none.
        n_resamples: Draws of the sign-flip test.
        seed: Of all draws.
    """

    n_boot: int = 1000
    n_resamples: int = 10_000
    seed: int = 0


@dataclass(frozen=True)
class Mean:
    """A mean over samples.

    Attributes:
        value: The mean; null where no sample has a value.
        interval: Lower and upper end at 95 %, by a bootstrap over samples; null where there is
            none.
        samples: How many samples have a value.
        reason: Why there is no value, or no interval.
    """

    value: float | None
    interval: Interval | None
    samples: int
    reason: Unscored | None


def means(values: Floats, draws: Draws) -> list[Mean]:
    """Means over samples.

    Args:
        values: Array [row, sample], NaN where a sample has no value.
        draws: Of the bootstrap, the same for all rows.

    Returns:
        A mean for each row.

    Raises:
        ScoreError: A number of draws or the seed is none.

    Example:
        >>> means(np.array([[1.0, 2.0, np.nan]]), Draws(n_boot=0))[0]
        Mean(value=1.5, interval=None, samples=2, reason=<Unscored.NO_DRAWS: 'no_draws'>)
    """
    return ratios(values, (~np.isnan(values)).astype(float), draws)


def ratios(parts: Floats, wholes: Floats, draws: Draws) -> list[Mean]:
    """Ratios of two sums over the same samples.

    Args:
        parts: Array [row, sample], NaN where a sample has no value.
        wholes: Array of the same form, in which such samples do not count.
        draws: Of the bootstrap, the same for all rows.

    Returns:
        For each row the sum of parts over that of wholes, null where that is not above 0.

    Raises:
        ScoreError: A number of draws or the seed is none.
    """
    there = ~np.isnan(parts)
    above, below = np.where(there, parts, 0.0), np.where(there, wholes, 0.0)
    values = divided(above.sum(axis=1), below.sum(axis=1))
    drawn = _drawn(above, below, draws)
    counts = there.sum(axis=1).tolist()
    return [_mean(float(values[at]), drawn[:, at], count) for at, count in enumerate(counts)]


def _drawn(above: Floats, below: Floats, draws: Draws) -> Floats:
    batches: Iterator[Floats] = (
        divided(weights @ above.T, weights @ below.T)
        for weights in drawn_weights(above.shape[1], draws.n_boot, draws.seed)
    )
    return np.concatenate([np.empty((0, len(above))), *batches])


def _mean(value: float, drawn: Floats, samples: int) -> Mean:
    if np.isnan(value):
        return Mean(None, None, samples, Unscored.NO_ORDER)
    interval, reason = percentiles(drawn, samples)
    return Mean(number(value), interval, samples, reason)
