"""Bradley-Terry strengths, and how far the best system is ahead."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from echo_hf._infra.bootstrap import MIN_SAMPLES, Interval, Unscored, compute_interval, draw_weights
from echo_hf._infra.plots import SystemValuesPlot, split_bounds
from echo_hf._infra.summary import SummaryMixin
from echo_hf.errors import ScoreError
from echo_hf.scores.rating_table import Floats
from echo_hf.scores.votes import (
    Choices,
    Points,
    best_first,
    by_rate,
    count_points,
    count_votes,
    label,
)

MOST_ROUNDS, PRECISION = 100_000, 1e-12


@dataclass(frozen=True, repr=False)
class BradleyTerry(SystemValuesPlot):
    """The Bradley-Terry strengths of systems.

    Attributes:
        strength: Natural logarithm of each system's strength, with mean 0 unless some are anchors;
            higher is better. A system beats another with probability 1 / (1 + exp(other's - its)).
        interval: Lower and upper end at 95 %, drawing whole samples; null for anchors.
        reasons: Why a strength or an interval is null.
        definition: Every parameter.
    """

    strength: Mapping[str, float | None]
    interval: Mapping[str, Interval | None]
    reasons: Mapping[str, Unscored]
    definition: Mapping[str, Any]

    _label = "strength: natural logarithm, 0 is the mean, higher is better"
    _even = 0.0

    def _table_columns(self) -> Mapping[str, Mapping[str, Any]]:
        ends = split_bounds(self.interval)
        return {"strength": self.strength, **ends, "reason": self.reasons}


def bradley_terry(
    ratings: Any,
    outputs: Any = None,
    *,
    anchors: Mapping[str, float] | None = None,
    n_boot: int = 1000,
    seed: int = 0,
    **choices: Unpack[Choices],
) -> BradleyTerry:
    """Fit the strengths that best explain the pairwise verdicts (maximum likelihood).

    Args:
        ratings: As for `win_rate`.
        outputs: As for `win_rate`.
        anchors: Strengths that stay as they are, such as those of a published board, by system:
            the others are placed on that scale. Those that nobody rated here are in the result.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.
        choices: `protocol` (its vote alone), `missing`, `rubric` and `judges`, as for `win_rate`.

    Returns:
        The strengths. There are none where some systems win nothing from the others, who would
        have to be infinitely strong; with anchors none for those alone which no wins and losses
        tie to an anchor, directly or by way of others.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: Ratings contradict each other, a choice is none of those there are, or an anchor
            is no finite number, or none of them was rated.

    Examples:
        >>> rows = {"sample_id": [f"{at}" for at in range(40)] * 2, "judge": ["j"] * 80}
        >>> rows |= {"system": ["a"] * 40 + ["b"] * 40, "rating": [6] * 30 + [5] * 40 + [6] * 10}
        >>> round(bradley_terry(rows).strength["a"], 4)  # half the logarithm of 30 wins to 10
        0.5493
        >>> round(bradley_terry(rows, anchors={"b": 1.0}).strength["a"], 4)  # 1 and that logarithm
        2.0986
    """
    compared = count_votes(ratings, outputs, **choices)
    names, verdicts, rates = compared.table.systems, compared.verdicts, compared.rates()
    anchored = {name: float(value) for name, value in (anchors or {}).items()}
    if not all(map(math.isfinite, anchored.values())) or (
        anchored and anchored.keys().isdisjoint(names)
    ):
        raise ScoreError(
            f"anchors are {anchored!r}, judges rated {list(names)!r}: expected finite strengths, "
            "one or more of those"
        )
    fixed = np.array([anchored.get(name, np.nan) for name in names])
    strength = anchored | label(names, fit_strengths(compared.points, fixed))
    draws = np.full((1, len(names)), np.nan)
    if verdicts.shape[-1]:
        weights = draw_weights(verdicts.shape[-1], n_boot, seed)
        fits = (
            fit_strengths(count_points(verdicts, len(names), batch), fixed) for batch in weights
        )
        draws = np.concatenate([draws[:0], *fits])
    ends: dict[str, tuple[Interval | None, Unscored | None]] = {}
    for name, values, samples in zip(names, draws.T, compared.sample_counts, strict=True):
        if strength[name] is None:
            cause = compared.why_unrated(name) if rates[name] is None else Unscored.UNBOUNDED
            ends[name] = None, cause
        elif np.isnan(values).any():
            has_few_samples = samples < MIN_SAMPLES
            ends[name] = None, Unscored.FEW_SAMPLES if has_few_samples else Unscored.UNBOUNDED
        else:
            ends[name] = compute_interval(values, samples)
    ends |= dict.fromkeys(anchored, (None, Unscored.ANCHORED))
    extra = {"anchors": anchored} if anchored else {}
    strength = by_rate(strength)
    return BradleyTerry(
        strength,
        {name: ends[name][0] for name in strength},
        {name: reason for name in strength if (reason := ends[name][1])},
        compared.definition("bradley_terry", average=None, draws=n_boot, seed=seed, **extra),
    )


def fit_strengths(points: Points, fixed: Floats | None = None) -> Floats:
    """Fit strengths to each draw of points by maximum likelihood; NaN where they are unbounded.

    What is not NaN in `fixed` stays as it is.
    """
    systems = points.won.shape[-1]
    won = points.won.reshape(-1, systems, systems)
    pinned = np.full(systems, np.nan) if fixed is None else fixed
    anchored = ~np.isnan(pinned)
    beats = (won > 0) | np.eye(systems, dtype=bool) | np.outer(anchored, anchored)
    for _ in range(systems.bit_length()):
        beats = beats @ beats  # directly, or by way of others
    bounded = beats & beats.swapaxes(-2, -1)
    if anchored.any():
        # What the others do to each other says nothing of where they are on this scale.
        placed = bounded[:, anchored.argmax()]
    else:
        met = np.asarray(points.compared.reshape(won.shape).any(axis=-1))
        is_separated = np.asarray((~bounded & met[:, None] & met[:, :, None]).any(axis=(-2, -1)))
        placed = met & ~is_separated[:, None]
    fitted = np.full(placed.shape, np.nan)
    for subset in np.unique(placed, axis=0):
        if subset.any():
            draws = np.flatnonzero((placed == subset).all(axis=-1))
            fitted[np.ix_(draws, subset)] = _fit_bounded(
                won[np.ix_(draws, subset, subset)], pinned[subset]
            )
    return fitted.reshape(points.won.shape[:-1])


def _fit_bounded(won: Floats, fixed: Floats) -> Floats:
    """Fit all draws at once, one system after the other (Newman 2023)."""
    free = np.flatnonzero(np.isnan(fixed))
    strength = np.tile(np.exp(np.nan_to_num(fixed)), (len(won), 1))
    lost = won.swapaxes(-2, -1)
    for _ in range(MOST_ROUNDS):
        previous = strength.copy()
        for system in free:
            together = strength[:, system, None] + strength
            weighted_wins = (won[:, system] * strength / together).sum(axis=-1)
            strength[:, system] = weighted_wins / (lost[:, system] / together).sum(axis=-1)
        if len(free) == len(fixed):
            strength /= np.exp(np.log(strength).mean(axis=-1, keepdims=True))
        if np.allclose(strength, previous, rtol=PRECISION, atol=0):
            return np.where(np.isnan(fixed), np.log(strength), fixed)
    raise ScoreError(
        f"Bradley-Terry strengths do not settle in {MOST_ROUNDS:,} rounds: some systems hardly "
        "ever win a point from the others; leave them out"
    )


@dataclass(frozen=True, repr=False)
class Gap(SummaryMixin):
    """The relative gap between the best two systems of a benchmark.

    Attributes:
        first: The best system, or null.
        second: The second best, or null.
        gap: (value of the first - value of the second) / value of the second, or null.
        reason: Why there is none.
    """

    first: str | None
    second: str | None
    gap: float | None
    reason: Unscored | None


def relative_gap(values: Mapping[str, float | None]) -> Gap:
    """Return the gap between the best two systems, as a share of the second's value.

    The paper's 3.2 (figure 1) is the gap of image-to-image over that of another benchmark.

    Args:
        values: Value by system, such as a win rate; higher is better, null where there is none.

    Returns:
        The two systems and their gap; null where there is none, with the reason.

    Raises:
        ScoreError: A value is infinite or no number.

    Examples:
        >>> gap = relative_gap({"4o Image Gen": 0.81, "Nano Banana": 0.66, "Anole": 0.07})
        >>> gap.first, gap.second, round(gap.gap, 3)
        ('4o Image Gen', 'Nano Banana', 0.227)
    """
    rated = {system: value for system, value in values.items() if value is not None}
    if not all(map(math.isfinite, rated.values())):
        raise ScoreError(f"values are {rated!r}: expected finite numbers, or null for none")
    first, second = (*best_first(rated), None, None)[:2]
    if first is None or second is None:
        return Gap(first, second, None, Unscored.ONE_SYSTEM)
    if rated[second] <= 0:
        return Gap(first, second, None, Unscored.ZERO_SECOND)
    return Gap(first, second, (rated[first] - rated[second]) / rated[second], None)
