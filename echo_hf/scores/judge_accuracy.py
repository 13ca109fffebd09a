"""Accuracy of judges on what people ranked, beside that of people (ECHO appendix C)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from echo_hf._infra.bootstrap import Interval, Unscored, compute_interval, draw_weights
from echo_hf._infra.summary import SummaryMixin
from echo_hf.scores import kemeny
from echo_hf.scores.agreement import HumanRanks, agreement, align_ratings, read_human
from echo_hf.scores.pairwise_agreement import ROUNDED, Way, read_verdicts
from echo_hf.scores.ranks import Mean, Resampling, means, ratios
from echo_hf.scores.rating_table import RUBRIC, Floats, Weights, divide, read_ratings
from echo_hf.scores.votes import TIE_WIDTH, count_points, list_pairs, rates_of, to_number


@dataclass(frozen=True, repr=False)
class SystemOrder(SummaryMixin):
    """The rank correlation of two boards of the same systems.

    Attributes:
        spearman: Of the systems' win rates, -1 to 1; null where one has no order.
        interval: Lower and upper end at 95 %, drawing whole samples, or null.
        systems: How many systems are ranked.
        reason: Why a number is null.
    """

    spearman: float | None
    interval: Interval | None
    systems: int
    reason: Unscored | None


@dataclass(frozen=True, repr=False)
class PairAccuracy(SummaryMixin):
    """How far verdicts on pairs of outputs are those of people.

    Attributes:
        with_ties: Share of pairs with the same verdict, a tie being one of three.
        without_ties: Share of the pairs that people decide on which the same system wins; half of
            one where the verdict is a tie.
        ties: Share of the pairs that people decide on which the verdict is a tie.
        tau: Mean over samples of Kendall's tau-b with the consensus of people.
        order: The systems' win rates by these verdicts beside those by people.
        pairs: How many pairs have both verdicts.
    """

    with_ties: Mean
    without_ties: Mean
    ties: Mean
    tau: Mean
    order: SystemOrder
    pairs: int


@dataclass(frozen=True, repr=False)
class JudgeAccuracy(SummaryMixin):
    """The accuracy of judges, and that of people, on the same outputs.

    Attributes:
        judges: By judge and way of judging: `pointwise`, ratings; `pairwise`, choices.
        people: Of each person with the majority of the others; null with a single person.
        samples: How many samples people ranked.
        raters: How many people did.
        systems: The systems that they ranked.
        definition: Every parameter.
    """

    judges: Mapping[str, Mapping[Way, PairAccuracy]]
    people: PairAccuracy | None
    samples: int
    raters: int
    systems: tuple[str, ...]
    definition: Mapping[str, Any]


def judge_accuracy(
    human: Any,
    ratings: Any = None,
    comparisons: Any = None,
    *,
    rubric: str = RUBRIC,
    n_boot: int = 1000,
    seed: int = 0,
) -> JudgeAccuracy:
    """Measure how often judges decide on two outputs as people do.

    The verdict of people on a pair is the system that more of them rank higher, and a tie where as
    many do. That of ratings is the higher one, and a tie where they differ by 1e-6 or less; that of
    choices is the system that wins in both orders, and a tie otherwise.

    Args:
        human: Ranks or scores, as for `agreement`.
        ratings: As for `win_rate`; null for none.
        comparisons: As for `pairwise_agreement`; null for none.
        rubric: The rubric of the ratings.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.

    Returns:
        The accuracy of each judge by each of its ways, and of people.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: Rows contradict each other, or nothing that people ranked was judged.

    Examples:
        >>> ranks = {"sample_id": [*"1122"], "rater": ["ada"] * 4, "system": [*"xyxy"]}
        >>> ratings = {"sample_id": [*"1122"], "system": [*"xyxy"], "judge": ["j"] * 4}
        >>> found = judge_accuracy(
        ...     {**ranks, "rank": [1, 2, 1, 2]}, {**ratings, "rating": [7, 4, 5, 5]}, n_boot=0
        ... )
        >>> figures = found.judges["j"]["pointwise"]
        >>> figures.with_ties.value, figures.without_ties.value
        (0.5, 0.75)
    """
    people, draws = read_human(human), Resampling(n_boot, seed=seed)
    first, second = list_pairs(len(people.systems))
    votes = np.sign(people.ranks[:, second] - people.ranks[:, first])
    majority = _take_majority(votes)
    judges: dict[str, dict[Way, PairAccuracy]] = {}
    agreed = agreement(human, ratings, rubric=rubric, n_boot=n_boot, n_resamples=1, seed=seed)
    if ratings is not None:
        table = read_ratings(ratings, rubric=rubric)
        rated, _ = align_ratings(table, people)
        gaps = rated[:, first] - rated[:, second]
        verdicts = np.where(np.abs(gaps) <= TIE_WIDTH, 0.0 * gaps, np.sign(gaps))
        for judge, own in zip(table.judges, verdicts, strict=True):
            tau = agreed.judges.with_consensus[judge]
            mean_tau = Mean(tau.tau, tau.interval, tau.samples, tau.reason)
            figures = _compare(own[None], majority[None], mean_tau, len(people.systems), draws)
            judges.setdefault(judge, {})["pointwise"] = figures
    places = kemeny.sample_consensus(people.ranks)
    consensus = np.sign(places[second] - places[first])
    for judge, own in _list_choices(comparisons, people):
        mean_tau = means(_compute_taus(own, consensus)[None], draws)[0]
        figures = _compare(own[None], majority[None], mean_tau, len(people.systems), draws)
        judges.setdefault(judge, {})["pairwise"] = figures
    beside = None
    if len(people.raters) > 1:
        others = np.array([_take_majority(np.delete(votes, row, 0)) for row in range(len(votes))])
        tau_of_people = agreed.judges.people_with_others
        beside = _compare(votes, others, tau_of_people, len(people.systems), draws)
    definition = {
        "measure": "judge_accuracy",
        "people": "the system that more people rank higher",
        "rubric": rubric,
        "tie_width": TIE_WIDTH,
        "n_boot": n_boot,
        "seed": seed,
    }
    counts = len(people.samples), len(people.raters), people.systems
    return JudgeAccuracy(judges, beside, *counts, definition)


def _take_majority(votes: Floats) -> Floats:
    """Return the verdict of more people on each pair and sample, NaN where nobody has one."""
    return np.where(np.isnan(votes).all(axis=0), np.nan, np.sign(np.nansum(votes, axis=0)))


def _list_choices(comparisons: Any, people: HumanRanks) -> Iterator[tuple[str, Floats]]:
    """Yield a judge's verdicts [pair, sample] by its choices, the mean sign of its repeats."""
    if comparisons is None:
        return
    samples = {name: number for number, name in enumerate(people.samples)}
    systems = {name: number for number, name in enumerate(people.systems)}
    pairs = {pair: row for row, pair in enumerate(zip(*list_pairs(len(systems)), strict=True))}
    for judge, rows in read_verdicts(comparisons).groupby("judge"):
        totals, counts = np.zeros((2, len(pairs), len(samples)))
        for row in rows[["sample_id", "system_a", "system_b", "true"]].itertuples(index=False):
            pair = pairs.get((systems.get(row.system_a), systems.get(row.system_b)))
            if pair is not None and row.sample_id in samples:
                totals[pair, samples[row.sample_id]] += row.true
                counts[pair, samples[row.sample_id]] += 1
        yield str(judge), np.where(counts > 0, np.sign(totals), np.nan)


def _compute_taus(verdicts: Floats, people: Floats) -> Floats:
    both = ~np.isnan(verdicts) & ~np.isnan(people)
    own, other = np.where(both, verdicts, 0.0), np.where(both, people, 0.0)
    return divide((own * other).sum(0), np.sqrt((own**2).sum(0) * (other**2).sum(0)))


def _compare(
    verdicts: Floats, people: Floats, tau: Mean, systems: int, draws: Resampling
) -> PairAccuracy:
    """Compare verdicts [rater, pair, sample] with those of people on the same pairs."""
    both = ~np.isnan(verdicts) & ~np.isnan(people)
    decided = both & (people != 0)
    ties, equal = decided & (verdicts == 0), verdicts == people
    parts = np.array([both & equal, (decided & equal) + 0.5 * ties, ties], dtype=float)
    wholes = np.array([both, decided, decided], dtype=float).sum(axis=(1, 2))
    sums = np.where(wholes > 0, parts.sum(axis=(1, 2)), np.nan)
    with_ties, without_ties, tied = ratios(sums, wholes, draws)
    order = _correlate(
        np.where(both, verdicts, np.nan), np.where(both, people, np.nan), systems, draws
    )
    return PairAccuracy(with_ties, without_ties, tied, tau, order, int(both.sum()))


def _correlate(verdicts: Floats, people: Floats, systems: int, draws: Resampling) -> SystemOrder:
    """Correlate win rates by two sets of verdicts, the mean over raters."""

    def correlate_rates(weights: Weights) -> Floats:
        by_rater = []
        for own, other in zip(verdicts, people, strict=True):
            points = (count_points(each, systems, weights) for each in (own, other))
            by_rater.append(_spearman(*(rates_of(counted, "opponents") for counted in points)))
        return np.asarray(np.mean(by_rater, axis=0))

    samples = int((~np.isnan(verdicts)).any(axis=(0, 1)).sum())
    value = to_number(float(correlate_rates(np.ones((1, verdicts.shape[-1]), np.float32))[0]))
    if value is None:
        return SystemOrder(None, None, systems, Unscored.NO_ORDER)
    weights = draw_weights(verdicts.shape[-1], draws.n_boot, draws.seed)
    resampled = np.concatenate([np.empty(0), *map(correlate_rates, weights)])
    interval, reason = compute_interval(resampled, samples)
    return SystemOrder(value, interval, systems, reason)


def _spearman(first: Floats, second: Floats) -> Floats:
    """Correlate the ranks of each two rows, over the systems of which both have a rate."""
    from scipy.stats import rankdata

    known = ~np.isnan(first) & ~np.isnan(second)
    ranks, counts = [], np.maximum(known.sum(axis=1, keepdims=True), 1)
    for rates in (first, second):
        rounded = np.round(np.where(known, rates, np.nan), ROUNDED)
        ranked = rankdata(rounded, axis=1, nan_policy="omit")
        ranks.append(ranked - np.nansum(ranked, axis=1, keepdims=True) / counts)
    own, other = ranks
    squares = np.nansum(own**2, axis=1) * np.nansum(other**2, axis=1)
    return divide(np.nansum(own * other, axis=1), np.sqrt(squares))
