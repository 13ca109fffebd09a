"""How far a win rate may be from the true one: intervals, and the paired sign-flip test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from echo_hf._infra.bootstrap import (
    AT_ONCE,
    LEVEL,
    SAME,
    Interval,
    drawn_weights,
    generator,
    percentiles,
)
from echo_hf.errors import ScoreError
from echo_hf.reasons import Unscored
from echo_hf.scores.columns import Floats, divided
from echo_hf.scores.judge_votes import Compared
from echo_hf.scores.votes import Average, Points, pairs_of, points_of, rates_of, square, ties_of


def drawn_rates(
    verdicts: Floats, systems: int, average: Average, *, n_boot: int, seed: int
) -> Floats:
    """Win rates of bootstrap draws over samples; the draws are the same for all systems."""
    if not verdicts.shape[-1]:
        return np.full((n_boot, systems), np.nan)
    rates = [
        rates_of(points_of(verdicts, systems, weights), average)
        for weights in drawn_weights(verdicts.shape[-1], n_boot, seed)
    ]
    return np.concatenate([np.empty((0, systems)), *rates])


ERRORS_A_SIDE = 1.96


@dataclass(frozen=True)
class Spread:
    interval: Mapping[str, Interval | None]
    standard_error: Mapping[str, float | None]
    reasons: Mapping[str, Unscored]
    definition: Mapping[str, Any]


def spread_of(compared: Compared, points: Points, *, n_boot: int, seed: int) -> Spread:
    if compared.protocol == "published":
        return _of_comparisons(compared, points)
    return _of_draws(compared, n_boot, seed)


def samples_of(verdicts: Floats, systems: int) -> list[int]:
    """On how many samples each system is compared with any other one."""
    first, second = pairs_of(systems)
    there = ~np.isnan(verdicts)
    return [int(there[(first == at) | (second == at)].any(axis=0).sum()) for at in range(systems)]


def _of_draws(compared: Compared, n_boot: int, seed: int) -> Spread:
    systems = compared.table.systems
    drawn = drawn_rates(
        compared.verdicts, len(systems), compared.rule.average, n_boot=n_boot, seed=seed
    )
    counts = samples_of(compared.verdicts, len(systems))
    found = {system: percentiles(drawn[:, at], counts[at]) for at, system in enumerate(systems)}
    return Spread(
        {system: interval for system, (interval, _) in found.items()},
        {
            system: float(np.nanstd(drawn[:, at], ddof=1)) if found[system][0] else None
            for at, system in enumerate(systems)
        },
        {system: reason for system, (_, reason) in found.items() if reason},
        {"kind": compared.rule.interval, "level": LEVEL, "draws": n_boot, "seed": seed},
    )


def _of_comparisons(compared: Compared, points: Points) -> Spread:
    systems = compared.table.systems
    tied = ties_of(compared.verdicts, len(systems)).sum(axis=-1)
    sums = zip(systems, points.won.sum(axis=-1), points.compared.sum(axis=-1), tied, strict=True)
    rates = {system: _with_error(*three) for system, *three in sums}
    known = {system: one for system, one in rates.items() if one}
    ends = {
        system: (rate - ERRORS_A_SIDE * error, rate + ERRORS_A_SIDE * error)
        for system, (rate, error) in known.items()
    }
    return Spread(
        {system: ends.get(system) for system in systems},
        {system: known[system][1] if system in known else None for system in systems},
        {system: Unscored.ONE_COMPARISON for system in systems if system not in known},
        {"kind": compared.rule.interval, "level": LEVEL},
    )


def _with_error(won: float, count: float, tied: float) -> tuple[float, float] | None:
    if count < 2:
        return None
    rate = won / count
    # A win adds 1 to the sum of squares, a tie 0.25: a quarter less than its 0.5 points.
    variance = max(won - tied / 4 - count * rate**2, 0.0) / (count - 1)
    return float(rate), float(np.sqrt(variance / count))


TEST = "paired sign-flip test over samples, two-sided"


def leads_of(verdicts: Floats, systems: int, average: Average) -> Floats:
    """What each sample adds to a win rate, above or below the 0.5 of a system like the others."""
    compared = points_of(verdicts, systems).compared
    if average == "comparisons":
        counts = np.broadcast_to(compared.sum(axis=1, keepdims=True), compared.shape)
    else:
        counts = compared * (compared > 0).sum(axis=1, keepdims=True)
    halves = np.nan_to_num(verdicts.T) / 2
    above = square(halves, -halves, systems)
    return np.asarray(np.einsum("ab,sab->as", np.nan_to_num(divided(1.0, counts)), above))


def sign_flip_test(differences: Floats, *, n_resamples: int, seed: int) -> Floats:
    """Two-sided p values of sums of differences; the exchanges are the same for all rows."""
    smallest = smallest_p(n_resamples)
    observed = np.abs(differences.sum(axis=1))
    reached = np.zeros(len(differences))
    for signs in _drawn_signs(differences.shape[1], n_resamples, seed):
        reached += (np.abs(signs @ differences.T) >= observed - SAME).sum(axis=0)
    return np.asarray((1 + reached) * smallest)


def smallest_p(n_resamples: int) -> float:
    """The p value of a difference that no drawn exchange reaches."""
    if not isinstance(n_resamples, int) or n_resamples < 1:
        raise ScoreError(
            f"n_resamples is {n_resamples!r}: expected a whole number of draws, such as 10000"
        )
    return 1 / (1 + n_resamples)


def _drawn_signs(samples: int, n_resamples: int, seed: int) -> Iterator[Floats]:
    rng, batch = generator(seed), max(1, AT_ONCE // max(samples, 1))
    for start in range(0, n_resamples, batch):
        form = min(batch, n_resamples - start), samples
        yield np.asarray(2 * rng.integers(0, 2, form, dtype=np.int8) - 1, dtype=np.float64)
