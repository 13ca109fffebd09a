"""Tiers of systems that ratings tell apart, and the samples needed to tell others apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Unpack

import numpy as np

from echo_hf._infra.bootstrap import CELLS_PER_BATCH, MIN_SAMPLES, MIN_SPREAD, Unscored, generator
from echo_hf._infra.plots import SystemValuesPlot
from echo_hf._infra.summary import SummaryMixin
from echo_hf.errors import ScoreError
from echo_hf.scores import votes
from echo_hf.scores.rating_table import Floats, divide
from echo_hf.scores.sequential import PairValues, check_probabilities, compute_p_values
from echo_hf.scores.votes import Choices, JudgeVotes

TEST = "paired sign-flip test over samples, two-sided"
SEQUENTIAL = "confidence sequence of each pair's outcome, on all samples that both were rated on"


@dataclass(frozen=True, repr=False)
class Tiers(SystemValuesPlot):
    """Systems in tiers.

    Attributes:
        tiers: The best tier first; in each the best system first.
        unranked: Systems without a win rate.
        p_values: Holm's adjusted p value of each two systems' difference; null where they share
            fewer than 10 samples with others, so that nothing is tested.
        win_rate: Rate by system.
        definition: Every parameter.
    """

    tiers: tuple[tuple[str, ...], ...]
    unranked: tuple[str, ...]
    p_values: PairValues
    win_rate: Mapping[str, float | None]
    definition: Mapping[str, Any]

    _label = "win rate: share of the points won from the others, higher is better"
    _even = 0.5

    def _table_columns(self) -> Mapping[str, Mapping[str, Any]]:
        of = {system: at for at, tier in enumerate(self.tiers, 1) for system in tier}
        return {"win_rate": self.win_rate, "tier": of}


def tiers(
    ratings: Any,
    outputs: Any = None,
    *,
    alpha: float = 0.05,
    n_resamples: int = 10_000,
    seed: int = 0,
    **choices: Unpack[Choices],
) -> Tiers:
    """Sort systems by win rate; a tier ends before the first that its top differs from.

    Two systems differ when exchanging their outputs, on samples drawn by chance, seldom makes as
    large a difference of win rates as there is, after Holm's correction over all pairs. Where
    judges were asked until pairs were decided (see `decisions`), that test would be wrong too
    often: there the p values of `decisions` stand in its place.

    Args:
        ratings: As for `win_rate`.
        outputs: As for `win_rate`.
        alpha: How often, at most, a difference may be seen where there is none, over all pairs.
        n_resamples: How many such exchanges are drawn.
        seed: Of the draws.
        choices: `protocol`, `missing`, `rubric` and `judges`, as for `win_rate`.

    Returns:
        The tier of each system, the best first, and what tells each pair apart.

    Raises:
        ScoreError: As for `win_rate`; alpha is not between 0 and 1, or needs more draws.

    Examples:
        >>> rows = {"sample_id": [f"{at}" for at in range(30)] * 3, "judge": ["j"] * 90}
        >>> rows |= {"system": ["a"] * 30 + ["b"] * 30 + ["c"] * 30, "rating": [8] * 60 + [2] * 30}
        >>> tiers(rows, n_resamples=1000).tiers
        (('a', 'b'), ('c',))
    """
    check_probabilities(alpha=alpha)
    compared = votes.count_votes(ratings, outputs, **choices)
    systems, rates = compared.table.systems, votes.by_rate(compared.rates())
    first, second = votes.list_pairs(len(systems))
    counts = np.array(compared.sample_counts)
    tested = np.flatnonzero(np.minimum(counts[first], counts[second]) >= MIN_SAMPLES)
    first, second = first[tested], second[tested]
    if compute_smallest_p(n_resamples) * len(tested) > alpha:
        # Holm multiplies the smallest p value, the first that has to reach alpha, by all pairs.
        raise ScoreError(
            f"n_resamples is {n_resamples!r}: with {len(tested)} pairs and alpha {alpha!r} "
            f"nothing could differ: expected {ceil(len(tested) / alpha)} draws or more"
        )
    if compared.full.is_stopped:
        raw_p, test = compute_p_values(compared.pair_verdicts[tested] / 2), SEQUENTIAL
    else:
        leads, test = _excess_points(compared, 0.5, 1), TEST
        if compared.estimate:
            leads = compared.estimate.sample_values / len(compared.full.samples)
        raw_p = sign_flip_test(leads[first] - leads[second], n_resamples=n_resamples, seed=seed)
    values = np.full((len(systems), len(systems)), np.nan)
    values[first, second] = values[second, first] = adjust_holm(raw_p)
    by_pair = votes.map_pairs(systems, values, votes.to_number)

    def differ(top: str, system: str) -> bool:
        p_value = by_pair[top][system]
        return p_value is not None and p_value <= alpha

    tier_list = group_tiers((name for name, rate in rates.items() if rate is not None), differ)
    parameters: dict[str, Any] = {"alpha": alpha, "draws": n_resamples, "seed": seed}
    parameters["test"] = f"{test}, Holm over all pairs"
    unranked = tuple(system for system in systems if rates[system] is None)
    definition = compared.definition("tiers", **parameters)
    return Tiers(tier_list, unranked, by_pair, rates, definition)


def group_tiers(
    order: Iterable[str], differ: Callable[[str, str], bool]
) -> tuple[tuple[str, ...], ...]:
    """Group systems, the best first; a tier ends before the first that its top differs from."""
    tier_list = list[list[str]]()
    for system in order:
        if not tier_list or differ(tier_list[-1][0], system):
            tier_list.append([])
        tier_list[-1].append(system)
    return tuple(map(tuple, tier_list))


def _excess_points(compared: JudgeVotes, expected: Floats | float, scale: float) -> Floats:
    """Return points of each sample above the expected share, as they add to a win rate, scaled.

    Array [system, sample], of the share that each system is expected to win from each other one.
    """
    counts, systems = compared.points.compared, len(compared.table.systems)
    if compared.rule.average == "comparisons":
        weights = np.broadcast_to(counts.sum(axis=1, keepdims=True), counts.shape)
    else:
        weights = counts * (counts > 0).sum(axis=1, keepdims=True)
    first, second = votes.list_pairs(systems)
    expected = np.broadcast_to(expected, counts.shape)
    won = (1 + compared.verdicts.T) / 2
    excess = votes.square(won - expected[first, second], 1 - won - expected[second, first], systems)
    weight_of_pair = np.nan_to_num(divide(scale, weights))
    by_sample = np.ascontiguousarray(np.moveaxis(np.nan_to_num(excess), 0, -1))
    return np.asarray(np.einsum("ab,abs->as", weight_of_pair, by_sample))


def sign_flip_test(differences: Floats, *, n_resamples: int, seed: int) -> Floats:
    """Return two-sided p values of sums of differences; all rows share the sign flips."""
    smallest, samples = compute_smallest_p(n_resamples), differences.shape[1]
    observed, reached = np.abs(differences.sum(axis=1)), np.zeros(len(differences))
    rng, batch = generator(seed), max(1, CELLS_PER_BATCH // max(samples, 1))
    for start in range(0, n_resamples, batch):
        shape = min(batch, n_resamples - start), samples
        signs = np.asarray(2 * rng.integers(0, 2, shape, dtype=np.int8) - 1, dtype=np.float64)
        reached += (np.abs(signs @ differences.T) >= observed - MIN_SPREAD).sum(axis=0)
    return np.asarray((1 + reached) * smallest)


def compute_smallest_p(n_resamples: int, name: str = "n_resamples") -> float:
    """Return the p value of a difference that no draw reaches."""
    if not isinstance(n_resamples, int) or n_resamples < 1:
        raise ScoreError(
            f"{name} is {n_resamples!r}: expected a whole number of draws, such as 10000"
        )
    return 1 / (1 + n_resamples)


def adjust_holm(p_values: Floats) -> Floats:
    """Adjust p values by Holm's method, so that alpha holds over all of them."""
    order = np.argsort(p_values)
    multiplied = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(multiplied), 1.0)
    return adjusted


@dataclass(frozen=True, repr=False)
class Separation(SummaryMixin):
    """The distance of two systems, and the number of samples that would show it.

    Attributes:
        needed: Number of samples; null when there is none.
        difference: Win rate of the first minus that of the second; null when one has none.
        deviation: Standard deviation of that difference from sample to sample; null as above.
        reason: Why there is no number.
    """

    needed: int | None
    difference: float | None
    deviation: float | None
    reason: Unscored | None


@dataclass(frozen=True, repr=False)
class SamplesNeeded(SummaryMixin):
    """The number of samples that would separate each pair of systems.

    Attributes:
        pairs: By the first system, and then by the second.
        definition: Every parameter.
    """

    pairs: Mapping[str, Mapping[str, Separation]]
    definition: Mapping[str, Any]


def samples_needed(
    ratings: Any,
    outputs: Any = None,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    **choices: Unpack[Choices],
) -> SamplesNeeded:
    """Estimate how many samples would separate two systems, if they differ as observed.

    It is the usual number for a paired two-sided z test of the difference of win rates, sample by
    sample. Seen in few samples a difference is often too large by luck, and the number too small.

    Args:
        ratings: As for `win_rate`.
        outputs: As for `win_rate`.
        power: How often the difference is to be found, between 0 and 1.
        alpha: How often one may be found where there is none, for this one pair.
        choices: `protocol`, `missing`, `rubric` and `judges`, as for `win_rate`.

    Returns:
        What would tell each two systems apart.

    Raises:
        ScoreError: As for `win_rate`, or a probability is not between 0 and 1.

    Examples:
        >>> rows = {"sample_id": [f"{at}" for at in range(40)] * 2, "judge": ["j"] * 80}
        >>> rows |= {"system": ["a"] * 40 + ["b"] * 40, "rating": [6] * 30 + [5] * 40 + [6] * 10}
        >>> found = samples_needed(rows).pairs["a"]["b"]
        >>> found.difference, round(found.deviation, 3), found.needed
        (0.5, 0.877, 25)
    """
    check_probabilities(power=power, alpha=alpha)
    from scipy.special import ndtri  # scipy.stats takes longer to import than all of this

    compared = votes.count_votes(ratings, outputs, **choices)
    values, systems = _compute_sample_values(compared), compared.table.systems
    counts = compared.sample_counts
    factor = float(-ndtri(alpha / 2) - ndtri(1 - power))
    pairs = {
        system: {
            rival: _separate(values[i] - values[j], min(counts[i], counts[j]), factor)
            for j, rival in enumerate(systems)
            if i != j
        }
        for i, system in enumerate(systems)
    }
    return SamplesNeeded(pairs, compared.definition("samples_needed", power=power, alpha=alpha))


def _compute_sample_values(compared: JudgeVotes) -> Floats:
    """Return a value for each system and sample, whose mean over samples is the win rate."""
    if compared.estimate:
        return compared.estimate.sample_values
    points = compared.points
    rates = votes.rates_of(points, compared.rule.average)[:, None]
    by_comparison = compared.rule.average == "comparisons"
    expected = rates if by_comparison else divide(points.won, points.compared)
    return np.asarray(rates + _excess_points(compared, expected, len(compared.table.samples)))


def _separate(differences: Floats, samples: int, factor: float) -> Separation:
    if np.isnan(differences).any() or not samples:
        return Separation(None, None, None, Unscored.NOTHING_IN_COMMON)
    difference = float(differences.mean())
    if samples < MIN_SAMPLES:
        return Separation(None, difference, None, Unscored.FEW_SAMPLES)
    deviation = float(differences.std(ddof=1))
    if abs(difference) < MIN_SPREAD:
        return Separation(None, difference, deviation, Unscored.NO_DIFFERENCE)
    if deviation < MIN_SPREAD:
        return Separation(None, difference, deviation, Unscored.NO_SPREAD)
    # The small number keeps what is whole but for its last digit from being rounded up.
    needed = ceil((factor * deviation / difference) ** 2 - 1e-9)
    return Separation(needed, difference, deviation, None)
