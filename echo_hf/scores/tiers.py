"""Which systems the ratings tell apart, and how many samples it takes to tell them apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike

from echo_hf._infra.bootstrap import AT_ONCE, FEWEST_SAMPLES, SAME, generator
from echo_hf._infra.plots import SystemValues
from echo_hf.errors import ScoreError, unknown
from echo_hf.reasons import Unscored
from echo_hf.scores import votes
from echo_hf.scores.rating_table import Bools, Floats, divided
from echo_hf.scores.votes import Choices, Compared

TEST = "paired sign-flip test over samples, two-sided"
SEQUENTIAL = "confidence sequence of each pair's outcome, on all samples that both were rated on"


@dataclass(frozen=True)
class Tiers(SystemValues):
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

    def _columns(self) -> Mapping[str, Mapping[str, Any]]:
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
    """Sorts systems by win rate; a tier ends before the first that its top differs from.

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

    Raises:
        ScoreError: As for `win_rate`; alpha is not between 0 and 1, or needs more draws.

    Examples:
        >>> rows = {"sample_id": [f"{at}" for at in range(30)] * 3, "judge": ["j"] * 90}
        >>> rows |= {"system": ["a"] * 30 + ["b"] * 30 + ["c"] * 30, "rating": [8] * 60 + [2] * 30}
        >>> tiers(rows, n_resamples=1000).tiers
        (('a', 'b'), ('c',))
    """
    check_probabilities(alpha=alpha)
    compared = votes.compare(ratings, outputs, **choices)
    systems, rates = compared.table.systems, votes.by_rate(compared.rates())
    first, second = votes.pairs_of(len(systems))
    counts = np.array(compared.sample_counts)
    tested = np.flatnonzero(np.minimum(counts[first], counts[second]) >= FEWEST_SAMPLES)
    first, second = first[tested], second[tested]
    if smallest_p(n_resamples) * len(tested) > alpha:
        # Holm multiplies the smallest p value, the first that has to reach alpha, by all pairs.
        raise ScoreError(
            f"n_resamples is {n_resamples!r}: with {len(tested)} pairs and alpha {alpha!r} "
            f"nothing could differ: expected {ceil(len(tested) / alpha)} draws or more"
        )
    if compared.given.is_stopped:
        found, test = p_values(compared.of_pairs[tested] / 2), SEQUENTIAL
    else:
        leads, test = _above(compared, 0.5, 1), TEST
        if compared.estimate:
            leads = compared.estimate.by_sample / len(compared.given.samples)
        found = sign_flip_test(leads[first] - leads[second], n_resamples=n_resamples, seed=seed)
    values = np.full((len(systems), len(systems)), np.nan)
    values[first, second] = values[second, first] = holm(found)
    by_pair, split = votes.by_pair(systems, values, votes.number), list[list[str]]()
    for system, rate in rates.items():
        if rate is None:
            continue
        p_value = by_pair[split[-1][0]][system] if split else 0.0
        if p_value is not None and p_value <= alpha:
            split.append([])
        split[-1].append(system)
    how: dict[str, Any] = {"alpha": alpha, "draws": n_resamples, "seed": seed}
    how["test"] = f"{test}, Holm over all pairs"
    unranked = tuple(system for system in systems if rates[system] is None)
    definition = compared.definition("tiers", **how)
    return Tiers(tuple(map(tuple, split)), unranked, by_pair, rates, definition)


def _above(compared: Compared, expected: Floats | float, scale: float) -> Floats:
    """Points of each sample beyond the expected share, as they add to a win rate, times a scale.

    Array [system, sample], of the share that each system is expected to win from each other one.
    """
    counts, systems = compared.points.compared, len(compared.table.systems)
    if compared.rule.average == "comparisons":
        weights = np.broadcast_to(counts.sum(axis=1, keepdims=True), counts.shape)
    else:
        weights = counts * (counts > 0).sum(axis=1, keepdims=True)
    first, second = votes.pairs_of(systems)
    expected = np.broadcast_to(expected, counts.shape)
    won = (1 + compared.verdicts.T) / 2
    beyond = votes.square(won - expected[first, second], 1 - won - expected[second, first], systems)
    each = np.nan_to_num(divided(scale, weights))
    by_sample = np.ascontiguousarray(np.moveaxis(np.nan_to_num(beyond), 0, -1))
    return np.asarray(np.einsum("ab,abs->as", each, by_sample))


def sign_flip_test(differences: Floats, *, n_resamples: int, seed: int) -> Floats:
    """Two-sided p values of sums of differences; the exchanges are the same for all rows."""
    smallest, samples = smallest_p(n_resamples), differences.shape[1]
    observed, reached = np.abs(differences.sum(axis=1)), np.zeros(len(differences))
    rng, batch = generator(seed), max(1, AT_ONCE // max(samples, 1))
    for start in range(0, n_resamples, batch):
        form = min(batch, n_resamples - start), samples
        signs = np.asarray(2 * rng.integers(0, 2, form, dtype=np.int8) - 1, dtype=np.float64)
        reached += (np.abs(signs @ differences.T) >= observed - SAME).sum(axis=0)
    return np.asarray((1 + reached) * smallest)


def smallest_p(n_resamples: int) -> float:
    """The p value of a difference that no drawn exchange reaches."""
    if not isinstance(n_resamples, int) or n_resamples < 1:
        raise ScoreError(
            f"n_resamples is {n_resamples!r}: expected a whole number of draws, such as 10000"
        )
    return 1 / (1 + n_resamples)


def holm(p_values: Floats) -> Floats:
    """Holm's adjusted p values: they may be compared with alpha whatever their number."""
    order = np.argsort(p_values)
    raised = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return adjusted


@dataclass(frozen=True)
class Separation:
    """How far apart two systems are, and how many samples show it.

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


@dataclass(frozen=True)
class SamplesNeeded:
    """What separates each two systems, by the first and then by the second, and every parameter."""

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
    """Samples of the same kind that would separate two systems, if they differ as observed.

    It is the usual number for a paired two-sided z test of the difference of win rates, sample by
    sample. Seen in few samples a difference is often too large by luck, and the number too small.

    Args:
        ratings: As for `win_rate`.
        outputs: As for `win_rate`.
        power: How often the difference is to be found, between 0 and 1.
        alpha: How often one may be found where there is none, for this one pair.
        choices: `protocol`, `missing`, `rubric` and `judges`, as for `win_rate`.

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

    compared = votes.compare(ratings, outputs, **choices)
    values, systems = _per_sample(compared), compared.table.systems
    counts = compared.sample_counts
    factor = float(-ndtri(alpha / 2) - ndtri(1 - power))
    pairs = {
        one: {
            other: _separation(values[i] - values[j], min(counts[i], counts[j]), factor)
            for j, other in enumerate(systems)
            if i != j
        }
        for i, one in enumerate(systems)
    }
    return SamplesNeeded(pairs, compared.definition("samples_needed", power=power, alpha=alpha))


def _per_sample(compared: Compared) -> Floats:
    """A value for each system and sample; their mean over samples is the win rate."""
    if compared.estimate:
        return compared.estimate.by_sample
    points = compared.points
    rates = votes.rates_of(points, compared.rule.average)[:, None]
    by_comparison = compared.rule.average == "comparisons"
    expected = rates if by_comparison else divided(points.won, points.compared)
    return np.asarray(rates + _above(compared, expected, len(compared.table.samples)))


def _separation(differences: Floats, samples: int, factor: float) -> Separation:
    if np.isnan(differences).any() or not samples:
        return Separation(None, None, None, Unscored.NOTHING_IN_COMMON)
    difference = float(differences.mean())
    if samples < FEWEST_SAMPLES:
        return Separation(None, difference, None, Unscored.FEW_SAMPLES)
    deviation = float(differences.std(ddof=1))
    if abs(difference) < SAME:
        return Separation(None, difference, deviation, Unscored.NO_DIFFERENCE)
    if deviation < SAME:
        return Separation(None, difference, deviation, Unscored.NO_SPREAD)
    # The small number keeps what is whole but for its last digit from being rounded up.
    needed = ceil((factor * deviation / difference) ** 2 - 1e-9)
    return Separation(needed, difference, deviation, None)


ALPHA = 0.05
# Of the normal mixture: narrowest where squares of outcomes add up to about 40 for one pair at 5 %,
# and 76 for 28 pairs, which is 200 and 400 samples. From 0.04 to 1 little changes.
MIXTURE = 0.2
Family = Literal["bonferroni", "pair"]
PairValues = Mapping[str, Mapping[str, float | None]]


def check_probabilities(**values: float) -> None:
    """Refuses what is not between 0 and 1."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise ScoreError(f"{name} is {value!r}: expected a probability between 0 and 1")


def half_width(squares: ArrayLike, count: ArrayLike, alpha: float) -> Floats:
    """Half of the confidence sequence for a mean of outcomes, from the sum of their squares."""
    # Squares are taken around 0, which no small number of equal outcomes makes narrow.
    grown = 1 + MIXTURE * np.asarray(squares, dtype=float)
    return divided(np.sqrt(2 * grown / MIXTURE * np.log(np.sqrt(grown) / alpha)), count)


def p_values(outcomes: ArrayLike) -> Floats:
    """The alpha at which `half_width` first leaves 0 out, of outcomes [pair, sample] with NaN."""
    given = np.nan_to_num(np.asarray(outcomes, dtype=float))
    total, grown = given.sum(axis=-1), 1 + MIXTURE * np.square(given).sum(axis=-1)
    found: Floats = np.sqrt(grown) * np.exp(-MIXTURE * total**2 / (2 * grown))
    return found.clip(max=1.0)


def needed(undecided: Bools, ahead: Bools) -> Bools:
    """Which systems are of an undecided pair, of which both have outputs ahead [system, sample]."""
    first, second = votes.pairs_of(len(ahead))
    open_ = undecided & (ahead[first] & ahead[second]).any(axis=-1)
    return np.isin(np.arange(len(ahead)), [first[open_], second[open_]])


def level_of(alpha: float, family: Family, pairs: int) -> float:
    """How often one pair may be decided wrongly."""
    if family not in get_args(Family):
        raise ScoreError(unknown("family", family, get_args(Family)))
    check_probabilities(alpha=alpha)
    return alpha / max(pairs, 1) if family == "bonferroni" else alpha


@dataclass(frozen=True)
class Decisions:
    """What each pair of systems comes to, on all samples that both were rated on.

    Attributes:
        matrix: Share of points that a system wins from each other one; null where they were never
            compared.
        half_width: How far the share may be off, at all looks at once.
        pairs: On how many samples each two were compared.
        decided: Pairs that are told apart, the better system first.
        undecided: The others. Equal systems are never told apart, however many samples there are.
        not_needed: How many ratings nobody asked for.
        ratings: How many ratings there would be with these.
        definition: Every parameter.
    """

    matrix: PairValues
    half_width: PairValues
    pairs: Mapping[str, Mapping[str, int]]
    decided: tuple[tuple[str, str], ...]
    undecided: tuple[tuple[str, str], ...]
    not_needed: int
    ratings: int
    definition: Mapping[str, Any]

    @property
    def said(self) -> str:
        """All in a sentence."""
        asked = f"{self.ratings - self.not_needed:,} of {self.ratings:,} ratings"
        pairs = len(self.decided) + len(self.undecided)
        return f"asked until decided: {asked}, {len(self.decided)} of {pairs} pairs decided"


def decisions(
    ratings: Any,
    outputs: Any = None,
    *,
    alpha: float = ALPHA,
    family: Family = "bonferroni",
    **choices: Unpack[Choices],
) -> Decisions:
    """Says of each pair of systems whether one is better, at any time and as often as one likes.

    Who looks at a usual test while ratings come in, and stops when it says so, is wrong far more
    often than it says. Here a pair is decided when a confidence sequence of its outcome (the
    judges' vote: .5, 0 for a tie, -.5) leaves 0 out: the asymptotic one of Waudby-Smith, Arbour,
    Sinha, Kennedy and Ramdas (2024, Annals of Statistics 52), with rho squared 0.2 times the
    variance. Where outcomes are as often .5 as -.5, it holds at any number of samples (Robbins).

    Args:
        ratings: As for `win_rate`. Rows with the outcome `not_needed` and no rating are those that
            nobody asked for, as `judge --until decided` writes them.
        outputs: As for `win_rate`.
        alpha: How often, at most, any decision may ever be wrong; see `family`.
        family: `bonferroni`: alpha holds over all pairs together. `pair`: of each alone.
        choices: `protocol`, `missing`, `rubric` and `judges`, as for `win_rate`.

    Raises:
        ScoreError: As for `win_rate`; alpha is not between 0 and 1, or family is none of the two.

    Examples:
        >>> keys = {"sample_id": [f"{at}" for at in range(60)] * 2, "judge": ["j"] * 120}
        >>> rows = {**keys, "system": ["a"] * 60 + ["b"] * 60, "rating": [8] * 50 + [2] * 70}
        >>> found = decisions(rows)
        >>> found.decided, round(found.matrix["a"]["b"], 3), round(found.half_width["a"]["b"], 3)
        ((('a', 'b'),), 0.917, 0.188)
    """
    compared = votes.compare(ratings, outputs, **choices)
    given, systems, voted = compared.given, compared.table.systems, compared.of_pairs
    counts = (~np.isnan(voted)).sum(axis=1)
    level = level_of(alpha, family, int((counts > 0).sum()))
    open_, leads = p_values(voted / 2) > level, np.nansum(voted, axis=1)
    half = half_width(np.nansum(np.square(voted / 2), axis=1), counts, level)
    told: tuple[list[tuple[str, str]], ...] = [], []
    for *at, lead, is_open in zip(*votes.pairs_of(len(systems)), leads, open_, strict=True):
        better, worse = at if lead >= 0 else at[::-1]
        told[int(is_open)].append((systems[better], systems[worse]))
    points = votes.points_of(voted, len(systems))
    not_needed = 0 if given.not_asked is None else int(given.not_asked.sum())
    how = {"alpha": alpha, "family": family, "level": level, "mixture": MIXTURE}
    return Decisions(
        matrix=votes.by_pair(systems, divided(points.won, points.compared), votes.number),
        half_width=votes.by_pair(systems, votes.square(half, half, len(systems)), votes.number),
        pairs=votes.by_pair(systems, points.compared, int),
        decided=tuple(told[0]),
        undecided=tuple(told[1]),
        not_needed=not_needed,
        ratings=int((~np.isnan(given.ratings)).sum()) + not_needed,
        definition=compared.definition("decisions", **how),
    )
