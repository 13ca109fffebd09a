"""The bootstrap of every measure: samples are redrawn whole, tails of the draws cut off."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from echo_hf.errors import ScoreError
from echo_hf.reasons import Unscored

METHOD = "expanded percentile bootstrap over samples"
LEVEL = 0.95
MIN_SAMPLES = 10
MIN_SPREAD = 1e-12
MAX_DRAWS = 1_000_000  # whose intervals no longer move; more is a slip
CELLS_PER_BATCH = 250_000  # what a processor's cache holds
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]
Interval = tuple[float, float]


def generator(seed: int) -> np.random.Generator:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ScoreError(f"seed is {seed!r}: expected a whole number, 0 or more")
    return np.random.default_rng(seed)


def draw_weights(samples: int, n_boot: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """Yield how often each sample is drawn, in small batches of draws."""
    if not isinstance(n_boot, int) or not 0 <= n_boot <= MAX_DRAWS:
        raise ScoreError(
            f"n_boot is {n_boot!r}: expected a whole number of draws up to {MAX_DRAWS}, such as "
            "1000"
        )
    if not samples:
        return
    rng, batch = generator(seed), max(1, CELLS_PER_BATCH // samples)
    for start in range(0, n_boot, batch):
        draws = min(batch, n_boot - start)
        indices = rng.integers(0, samples, (draws, samples))
        indices += np.arange(draws)[:, None] * samples
        counts = np.bincount(indices.ravel(), minlength=draws * samples)
        yield counts.reshape(draws, samples).astype(np.float32)


def tail_share(tail: float, samples: int) -> float:
    """Return the share of draws to cut off at one end; less where samples are few."""
    from scipy.special import ndtr, stdtrit

    return float(ndtr(math.sqrt(samples / (samples - 1)) * stdtrit(samples - 1, tail)))


def compute_interval(
    draws: NDArray[np.float64], samples: int
) -> tuple[Interval | None, Unscored | None]:
    """Compute the 95 % interval of a value from its bootstrap draws, as `tail_share` says."""
    draws = draws[~np.isnan(draws)]
    if not len(draws):
        return None, Unscored.NO_DRAWS
    if samples < MIN_SAMPLES:
        return None, Unscored.FEW_SAMPLES
    if np.ptp(draws) < MIN_SPREAD:
        return None, Unscored.NO_SPREAD
    tail = tail_share((1 - LEVEL) / 2, samples)
    low, high = np.quantile(draws, [tail, 1 - tail])
    return (float(low), float(high)), None
