"""The bootstrap of every measure: samples are redrawn whole, tails of the draws cut off."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from echo_hf.errors import ScoreError
from echo_hf.reasons import Reason


class Unscored(Reason):
    """Why a measure has no number."""

    ONE_SYSTEM = "one_system", "there is no other system to compare it with"
    NOT_RATED = "not_rated", "no judge rated any of its outputs"
    NOT_RANKED = "not_ranked", "nobody ranked any of its outputs"
    NOTHING_IN_COMMON = "nothing_in_common", "no judge rated it and another on the same sample"
    FEW_SAMPLES = "few_samples", "fewer than 10 samples say too little of how far others may differ"
    NO_SPREAD = "no_spread", "all samples give the same, which says nothing of how others differ"
    LOW_COVERAGE = (
        "low_coverage",
        "fewer than 95 % of the samples count for both: what is missing may be what one does worse",
    )
    NO_DRAWS = "no_draws", "no bootstrap was asked for"
    ONE_COMPARISON = "one_comparison", "a single comparison has no standard error"
    NO_DIFFERENCE = "no_difference", "the two do as well as each other: no number separates them"
    UNBOUNDED = "unbounded", "some systems never lose a point: no finite strength explains it"
    SEPARATE_GROUPS = "separate_groups", "systems form groups of which no judge compared any two"
    ASKED_UNEVENLY = (
        "asked_unevenly",
        "judges were asked until pairs were decided, after which no interval of a strength holds",
    )
    ANCHORED = "anchored", "it is given, so that nothing is drawn of it"
    ZERO_SECOND = "zero_second", "the second best value is not above 0, so that no share of it is"
    NO_OWN_SYSTEM = (
        "no_own_system",
        "no pair of a system of the judge's developer and another's was rated",
    )
    NO_OTHER_JUDGE = "no_other_judge", "no judge of another developer rated the same pairs"
    ONE_JUDGE = "one_judge", "there is one judge, without whom nothing remains"
    NO_ORDER = "no_order", "both put no two systems in an order: too few in common, or all tied"
    NO_VERDICTS = "no_verdicts", "no pair of outputs has a verdict, or not in both orders"
    NO_CEILING = "no_ceiling", "people do not agree with each other, so that no share of it is"
    NO_COMPLAINTS = "no_complaints", "nobody complained about any of these outputs"
    NO_PRAISE = "no_praise", "nobody praised any of these outputs"
    FEW_THREADS = "few_threads", "fewer than 15 threads complain, or fewer than 15 praise"
    WEAK_CHECK = "weak_check", "it may tell failures apart little better than chance"
    FEW_LABELS = "few_labels", "people labelled fewer than 30 of these outputs"
    FEW_SLICES = "few_slices", "fewer than 4 slices with a rate do not tell how slices differ"
    NO_DEMAND = "no_demand", "nobody asked for the tasks that it was rated on"


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


def check_draws(n_boot: int) -> None:
    if not isinstance(n_boot, int) or not 0 <= n_boot <= MAX_DRAWS:
        raise ScoreError(
            f"n_boot is {n_boot!r}: expected a whole number of draws up to {MAX_DRAWS}, such as "
            "1000"
        )


def draw_weights(samples: int, n_boot: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """Yield how often each sample is drawn, in small batches of draws."""
    check_draws(n_boot)
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
