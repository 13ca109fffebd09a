"""Whether judges who see two outputs side by side say what their ratings say (ECHO section 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from echo_hf._infra.bootstrap import Interval
from echo_hf.errors import ScoreError
from echo_hf.reasons import Unscored
from echo_hf.scores.agreement import read_human
from echo_hf.scores.rank_correlation import Draws, Mean, means, ratios
from echo_hf.scores.rating_table import RUBRIC, Floats, divided, named_key, read_columns
from echo_hf.scores.votes import TIE_WIDTH, compare, pairs_of, points_of, rates_of
from echo_hf.tables import COMPARISONS

REQUIRED = ("sample_id", "system_a", "system_b", "judge", "order", "winner")
OPTIONAL = ("repeat",)
SIGNS: Mapping[str | None, float | None] = {"a": 1.0, "b": -1.0, "tie": 0.0, None: None}
ORDERS = ("ab", "ba")
ROUNDED = 12  # decimals: equal win rates differ in their last bits
RULE = "the system that wins in both orders; anything else is a tie"
Pair = tuple[str, str, str]  # sample, the two systems
Way = Literal["pointwise", "pairwise"]  # ratings of one output at a time, choices between two
Verdicts = Mapping[Pair, tuple[float, float]]  # pointwise and pairwise


@dataclass(frozen=True)
class Share:
    """A share from 0 to 1.

    Attributes:
        value: The share, null when there is nothing to have a share of.
        interval: Lower and upper end at 95 %, drawing whole samples; null when there is none.
        count: How many things it is a share of.
        reason: Why a number is null.
    """

    value: float | None
    interval: Interval | None
    count: int
    reason: Unscored | None


@dataclass(frozen=True)
class JudgeAgreement:
    """How one judge's comparisons hold together, and agree with its ratings.

    Attributes:
        pairs: Pairs of outputs that it was asked about, repeats counted.
        follows_position: Of pairs with both verdicts, the share where the same place won twice:
            the order decided.
        consistent: Of pairs with both verdicts, the share where the same system won twice, or
            both are ties. What is left is a tie in one order alone.
        agreement: Of pairs with both verdicts and ratings, the share where both ways say the same.
    """

    pairs: int
    follows_position: Share
    consistent: Share
    agreement: Share


@dataclass(frozen=True)
class WithPeople:
    """How near a way of judging comes to people, on the pairs that they ranked.

    Attributes:
        spearman: Rank correlation of the systems' win rates, -1 to 1; null where one has no order.
        tau: Kendall's tau-b within each sample, as a mean over the samples in which people put any
            in an order; 0 in one where the judges see nothing but ties.
    """

    spearman: float | None
    tau: Mean


@dataclass(frozen=True)
class SideBySide:
    """Ratings of one output at a time beside choices between two, on the very same pairs.

    Attributes:
        pairs: Pairs of outputs of a sample that a judge both rated and compared.
        spearman: Rank correlation of the systems' win rates by the two ways, null as with people.
        with_people: How near each way comes to people; empty where they ranked none of these pairs.
        difference: Tau of choices less that of ratings: above 0 choices are nearer to people.
        nearer: The way that is nearer, where the interval of the difference, on 10 samples or
            more, leaves 0 out; else null: nothing here says which of the two to trust.
    """

    pairs: int
    spearman: float | None
    with_people: Mapping[Way, WithPeople]
    difference: Mean
    nearer: Way | None


@dataclass(frozen=True)
class PairwiseAgreement:
    """How comparisons of judges hold together, and agree with their ratings.

    Attributes:
        judges: By judge, in alphabetical order.
        definition: Every parameter.
        sides: What all judges say in either way, beside people; null where none both rated and
            compared a pair.
    """

    judges: Mapping[str, JudgeAgreement]
    definition: Mapping[str, Any]
    sides: SideBySide | None = None


def pairwise_agreement(
    comparisons: Any,
    ratings: Any = None,
    human: Any = None,
    *,
    n_boot: int = 1000,
    seed: int = 0,
    rubric: str = RUBRIC,
) -> PairwiseAgreement:
    """Compares what judges say of two outputs side by side with their ratings of each alone.

    The verdict of a true comparison is the system that wins in both orders, and a tie otherwise.
    That of ratings is the higher one, and a tie where they differ by 1e-6 or less; of repeats the
    mean counts. Of several judges more decide, and as many are a tie. Only people say which of the
    two is right: of several, more decide as well.

    Args:
        comparisons: Rows with sample_id, system_a and system_b, the first of them by name, judge,
            order (ab or ba: whose output was shown first), winner (a, b, tie, or null) and, where
            there is one, repeat. Any form that `win_rate` takes.
        ratings: As for `win_rate`; null for none, so that nothing is said of agreement.
        human: As for `agreement`; null for none, so that nothing says which way to trust.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.
        rubric: The rubric of the ratings.

    Returns:
        The shares of every judge with comparisons, and both ways beside people.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: Rows contradict each other, or no rating has the rubric.

    Examples:
        >>> row = {"sample_id": "s", "system_a": "a", "system_b": "b", "judge": "j"}
        >>> rows = [{**row, "order": "ab", "winner": "a"}, {**row, "order": "ba", "winner": "b"}]
        >>> found = pairwise_agreement(rows).judges["j"]
        >>> found.follows_position.value, found.consistent.value
        (1.0, 0.0)
    """
    said = _read(comparisons)
    rated = {} if ratings is None else _by_ratings(ratings, rubric)
    definition = {
        "measure": "pairwise_agreement",
        "true_verdict": RULE,
        "rubric": rubric,
        "tie_width": TIE_WIDTH,
        "n_boot": n_boot,
        "seed": seed,
    }
    draws, judges = Draws(n_boot, seed=seed), {}
    cast = dict[Pair, tuple[float, float]]()
    for judge, pairs in said.items():
        both = [
            (pair, ab, ba)
            for pair, orders in pairs
            if (ab := orders.get("ab")) is not None and (ba := orders.get("ba")) is not None
        ]
        ratings_say = rated.get(judge, {})
        ways = [
            (pair, ab if ab == ba else 0.0, ratings_say[pair])
            for pair, ab, ba in both
            if pair in ratings_say
        ]
        for pair, true, by in ways:
            pointwise, pairwise = cast.get(pair, (0.0, 0.0))
            cast[pair] = pointwise + by, pairwise + true
        unrated = Unscored.NOT_RATED if both else Unscored.NO_VERDICTS
        follows = [(pair, ab == -ba != 0) for pair, ab, ba in both]
        consistent = [(pair, ab == ba) for pair, ab, ba in both]
        judges[judge] = JudgeAgreement(
            pairs=len(pairs),
            follows_position=_share(follows, Unscored.NO_VERDICTS, draws),
            consistent=_share(consistent, Unscored.NO_VERDICTS, draws),
            agreement=_share([(pair, true == by) for pair, true, by in ways], unrated, draws),
        )
    sides = _sides(cast, human, draws) if cast else None
    return PairwiseAgreement(judges, definition, sides)


def _sides(cast: Verdicts, human: Any, draws: Draws) -> SideBySide:
    samples = sorted({sample for sample, *_ in cast})
    systems = sorted({system for _, *both in cast for system in both})
    first, second = pairs_of(len(systems))
    at_sample, at_system = ({name: at for at, name in enumerate(one)} for one in (samples, systems))
    at_pair = {pair: at for at, pair in enumerate(zip(first, second, strict=True))}
    said = np.full((3, len(at_pair), len(samples)), np.nan)
    ranks, nobody = {} if human is None else _ranks(human), np.array([np.nan])
    for (sample, one, other), votes in cast.items():
        gaps = np.sign(ranks.get((sample, other), nobody) - ranks.get((sample, one), nobody))
        theirs = np.nan if np.isnan(gaps).all() else np.sign(np.nansum(gaps))
        at = at_pair[at_system[one], at_system[other]], at_sample[sample]
        said[:, at[0], at[1]] = *np.sign(votes), theirs
    said, people = said[:2], said[2]
    alike = _spearman(said, len(systems))
    if np.isnan(people).all():
        nothing = Mean(None, None, 0, Unscored.NOT_RANKED)
        return SideBySide(len(cast), alike, {}, nothing, None)
    beside = np.where(np.isnan(people), np.nan, said)
    pointwise, pairwise = taus = [_taus(way, people) for way in beside]
    *near, difference = means(np.array([*taus, pairwise - pointwise]), draws)
    low, high = difference.interval or (0.0, 0.0)
    ways: tuple[Way, Way] = ("pointwise", "pairwise")
    with_people = {
        name: WithPeople(_spearman((way, people), len(systems)), tau)
        for name, way, tau in zip(ways, beside, near, strict=True)
    }
    nearer = ways[low > 0] if low > 0 or high < 0 else None
    return SideBySide(len(cast), alike, with_people, difference, nearer)


def _ranks(human: Any) -> dict[tuple[str, str], Floats]:
    """By sample and system the rank that each person gave."""
    found = read_human(human)
    return {
        (sample, system): found.ranks[:, at, of]
        for of, sample in enumerate(found.samples)
        for at, system in enumerate(found.systems)
    }


def _taus(way: Floats, people: Floats) -> Floats:
    """Tau-b of each sample, from verdicts on its pairs."""
    agreed, own, theirs = (np.nansum(one, axis=0) for one in (way * people, way**2, people**2))
    return np.where(theirs > 0, np.nan_to_num(divided(agreed, np.sqrt(own * theirs))), np.nan)


def _spearman(both: Iterable[Floats], systems: int) -> float | None:
    """Correlates the win rates that follow from two ways of judging the same pairs."""
    from scipy.stats import spearmanr

    rates = (rates_of(points_of(way, systems), "opponents") for way in both)
    one, other = (np.round(rate[~np.isnan(rate)], ROUNDED) for rate in rates)
    flat = not np.ptp(one) or not np.ptp(other)
    return None if flat else float(spearmanr(one, other).statistic)


def _read(comparisons: Any) -> dict[str, list[tuple[Pair, Mapping[str, float | None]]]]:
    """By judge and pair what was said in each order: 1 for the first system, -1, 0 or null."""
    said: dict[str, dict[tuple[str, str, str, int], dict[str, float | None]]] = {}
    for row in read_columns(comparisons, COMPARISONS, REQUIRED, OPTIONAL).to_pylist():
        order, winner, place = row["order"], row["winner"], named_key(row, COMPARISONS.key)
        key = (row["sample_id"], row["system_a"], row["system_b"], row.get("repeat") or 0)
        if order not in ORDERS:
            wrong = f"order is {order!r} for {place}: expected ab or ba"
        elif winner not in SIGNS:
            wrong = f"winner is {winner!r} for {place}: expected a, b or tie, or null for none"
        elif row["system_a"] >= row["system_b"]:
            wrong = f"{place}: expected two systems, system_a the first by name"
        elif order in said.setdefault(row["judge"], {}).setdefault(key, {}):
            wrong = f"{place} is there twice: expected one row a key"
        else:
            said[row["judge"]][key][order] = SIGNS[winner]
            continue
        raise ScoreError(f"comparisons: {wrong}")
    return {
        judge: [(key[:3], said[judge][key]) for key in sorted(said[judge])]
        for judge in sorted(said)
    }


def _by_ratings(ratings: Any, rubric: str) -> dict[str, dict[Pair, float]]:
    """What each judge's ratings say, by sample and pair."""
    compared = compare(ratings, rubric=rubric)
    table = compared.table
    first, second = (positions.tolist() for positions in pairs_of(len(table.systems)))
    return {
        judge: {
            (table.samples[at], table.systems[first[pair]], table.systems[second[pair]]): float(
                verdicts[pair, at]
            )
            for pair, at in np.argwhere(~np.isnan(verdicts)).tolist()
        }
        for judge, verdicts in zip(table.judges, compared.said, strict=True)
    }


def _share(cases: Sequence[tuple[Pair, bool]], missing: Unscored, draws: Draws) -> Share:
    """How many of some pairs are so."""
    if not cases:
        return Share(None, None, 0, missing)
    _, at = np.unique([sample for (sample, *_), _ in cases], return_inverse=True)
    parts = (np.bincount(at, [is_so for _, is_so in cases]), np.bincount(at))
    part, whole = (one[None].astype(np.float64) for one in parts)
    (found,) = ratios(part, whole, draws)
    return Share(found.value, found.interval, len(cases), found.reason)
