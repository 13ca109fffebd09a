"""Agreement of judges' side-by-side choices with their own ratings (ECHO section 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from echo_hf._infra.bootstrap import Interval, Unscored
from echo_hf._infra.summary import SummaryMixin
from echo_hf.errors import ScoreError
from echo_hf.scores.agreement import read_human
from echo_hf.scores.ranks import Mean, Resampling, means, ratios
from echo_hf.scores.rating_table import RUBRIC, Floats, Unrated, divide, format_key, read_columns
from echo_hf.scores.votes import TIE_WIDTH, count_points, count_votes, list_pairs, rates_of
from echo_hf.tables import COMPARISONS, DRAW, select_first_draws

PAIR = ["sample_id", "system_a", "system_b"]
REQUIRED = (*PAIR, "judge", "order", "winner")
SIGNS = {"a": 1.0, "b": -1.0, "tie": 0.0}
ORDERS = ["ab", "ba"]
ROUNDED = 12  # decimals: equal win rates differ in their last bits
RULE = "the system that wins in both orders; anything else is a tie"
Way = Literal["pointwise", "pairwise"]  # ratings of one output at a time, choices between two
WAYS: tuple[Way, Way] = ("pointwise", "pairwise")


@dataclass(frozen=True, repr=False)
class Share(SummaryMixin):
    """A share from 0 to 1.

    Attributes:
        value: The share, or null.
        interval: Lower and upper end at 95 %, drawing whole samples, or null.
        count: How many things it is a share of.
        reason: Why a number is null.
    """

    value: float | None
    interval: Interval | None
    count: int
    reason: Unscored | None


@dataclass(frozen=True, repr=False)
class JudgeAgreement(SummaryMixin):
    """The consistency of one judge's comparisons, and their agreement with its ratings.

    Attributes:
        pairs: Pairs of outputs that it was asked about, repeats counted.
        follows_position: Share of pairs with both verdicts where the same place won twice.
        consistent: Share of those where the same system won twice, or both are ties.
        agreement: Share of those with ratings where both ways say the same.
    """

    pairs: int
    follows_position: Share
    consistent: Share
    agreement: Share


@dataclass(frozen=True, repr=False)
class WithPeople(SummaryMixin):
    """How near a way of judging comes to people, on the pairs that they ranked.

    Attributes:
        spearman: Rank correlation of the systems' win rates, -1 to 1; null where one has no order.
        tau: Mean of Kendall's tau-b over samples that people put in an order; judges' ties are 0.
    """

    spearman: float | None
    tau: Mean


@dataclass(frozen=True, repr=False)
class SideBySide(SummaryMixin):
    """Ratings of single outputs beside side-by-side choices, on the same pairs.

    Attributes:
        pairs: Pairs of outputs of a sample that a judge both rated and compared.
        spearman: Rank correlation of the systems' win rates by the two ways, null as with people.
        with_people: How near each way comes to people; empty where they ranked none of these pairs.
        difference: Tau of choices less that of ratings: above 0 choices are nearer to people.
        nearer: The way that is nearer, where the interval of the difference leaves 0 out.
    """

    pairs: int
    spearman: float | None
    with_people: Mapping[Way, WithPeople]
    difference: Mean
    nearer: Way | None


@dataclass(frozen=True, repr=False)
class PairwiseAgreement(SummaryMixin):
    """The consistency of judges' comparisons, and their agreement with ratings.

    Attributes:
        judges: By judge, in alphabetical order.
        definition: Every parameter.
        sides: Both ways beside people; null where no judge both rated and compared a pair.
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
    """Compare judges' side-by-side choices with their ratings of each output alone.

    The verdict of a true comparison is the system that wins in both orders, and a tie otherwise.
    That of ratings is the higher one, and a tie where they differ by 1e-6 or less. Of several
    judges more decide, and as many are a tie; of several people as well.

    Args:
        comparisons: Rows with sample_id, system_a and system_b, the first of them by name, judge,
            order (ab or ba: whose output was shown first), winner (a, b, tie, or null) and, where
            there are several, draw and repeat. Any form that `win_rate` takes.
        ratings: As for `win_rate`; null for none, so that nothing is said of agreement.
        human: As for `agreement`; null for none, so that nothing says which way to trust.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.
        rubric: The rubric of the ratings.

    Returns:
        How each judge compares, how far that agrees with ratings, and which is nearer to people.

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
    rows = read_choices(comparisons)
    rows = rows[rows["skipped"] == 0]
    draws, judges = Resampling(n_boot, seed=seed), dict[str, JudgeAgreement]()
    paired = _add_verdicts(rows).assign(rated=np.nan)
    if ratings is not None:
        paired = paired.drop(columns="rated").merge(_rated_verdicts(ratings, rubric), "left")
    ways = paired.dropna(subset="rated")
    for judge, group in rows.groupby("judge"):
        own, compared = (frame[frame["judge"] == judge] for frame in (paired, ways))
        unrated = Unscored.NO_VERDICTS if own.empty else Unscored.NOT_RATED
        follows = (own["ab"] == -own["ba"]) & (own["ab"] != 0)
        consistent = own["ab"] == own["ba"]
        judges[str(judge)] = JudgeAgreement(
            pairs=len(group),
            follows_position=_share(own, follows, Unscored.NO_VERDICTS, draws),
            consistent=_share(own, consistent, Unscored.NO_VERDICTS, draws),
            agreement=_share(compared, compared["true"] == compared["rated"], unrated, draws),
        )
    definition = {
        "measure": "pairwise_agreement",
        "true_verdict": RULE,
        "rubric": rubric,
        "tie_width": TIE_WIDTH,
        "n_boot": n_boot,
        "seed": seed,
    }
    sides = None if ways.empty else _compare_ways(ways, human, draws)
    return PairwiseAgreement(judges, definition, sides)


def _compare_ways(ways: pd.DataFrame, human: Any, draws: Resampling) -> SideBySide:
    votes = np.sign(ways.groupby(PAIR)[["rated", "true"]].sum()).reset_index()
    samples, at_sample = np.unique(votes["sample_id"], return_inverse=True)
    systems, at_system = np.unique(votes[PAIR[1:]], return_inverse=True)
    first, second = list_pairs(len(systems))
    at_pair = np.zeros((len(systems), len(systems)), dtype=int)
    at_pair[first, second] = np.arange(len(first))
    row, column = at_system.reshape(-1, 2).T
    verdicts = np.full((2, len(first), len(samples)), np.nan)
    verdicts[:, at_pair[row, column], at_sample] = votes[["rated", "true"]].to_numpy().T
    people = np.full(verdicts.shape[1:], np.nan)
    if human is not None:
        ranks = read_human(human).select(systems.tolist(), samples.tolist())
        gaps = np.sign(ranks[:, second] - ranks[:, first])
        is_ranked = ~np.isnan(gaps).all(axis=0) & ~np.isnan(verdicts[0])
        people = np.where(is_ranked, np.sign(np.nansum(gaps, axis=0)), np.nan)
    correlation = _correlate_rates(verdicts, len(systems))
    if np.isnan(people).all():
        no_difference = Mean(None, None, 0, Unscored.NOT_RANKED)
        return SideBySide(len(votes), correlation, {}, no_difference, None)
    with_people_verdicts = np.where(np.isnan(people), np.nan, verdicts)
    pointwise, pairwise = taus = [_compute_taus(way, people) for way in with_people_verdicts]
    *averages, difference = means(np.array([*taus, pairwise - pointwise]), draws)
    low, high = difference.interval or (0.0, 0.0)
    with_people = {
        name: WithPeople(_correlate_rates((way, people), len(systems)), tau)
        for name, way, tau in zip(WAYS, with_people_verdicts, averages, strict=True)
    }
    nearer = WAYS[low > 0] if low > 0 or high < 0 else None
    return SideBySide(len(votes), correlation, with_people, difference, nearer)


def _compute_taus(way: Floats, people: Floats) -> Floats:
    agreements, own, others = (
        np.nansum(products, axis=0) for products in (way * people, way**2, people**2)
    )
    return np.where(others > 0, np.nan_to_num(divide(agreements, np.sqrt(own * others))), np.nan)


def _correlate_rates(verdicts: Iterable[Floats], systems: int) -> float | None:
    from scipy.stats import spearmanr

    rates = (rates_of(count_points(way, systems), "opponents") for way in verdicts)
    first_rates, second_rates = (np.round(rate[~np.isnan(rate)], ROUNDED) for rate in rates)
    is_constant = not np.ptp(first_rates) or not np.ptp(second_rates)
    return None if is_constant else float(spearmanr(first_rates, second_rates).statistic)


def read_verdicts(comparisons: Any) -> pd.DataFrame:
    """Read a verdict, `true`, for each pair that a judge saw in both orders: 1, 0 or -1."""
    rows = read_choices(comparisons)
    return _add_verdicts(rows[rows["skipped"] == 0])


def _add_verdicts(rows: pd.DataFrame) -> pd.DataFrame:
    paired = rows.dropna(subset=ORDERS)
    return paired.assign(true=paired["ab"].where(paired["ab"] == paired["ba"], 0.0))


def read_choices(comparisons: Any) -> pd.DataFrame:
    """Read verdicts on first draws in each order, 1, 0, -1 or NaN, by judge, pair and repeat.

    What nobody asked for on purpose has no verdict; `skipped` counts it.
    """
    optional = (DRAW, "repeat", "outcome")
    every_draw = read_columns(comparisons, COMPARISONS, REQUIRED, optional)
    rows = select_first_draws(every_draw).to_pandas()
    rows["repeat"] = rows["repeat"].fillna(0) if "repeat" in rows else 0
    rows["skipped"] = rows["outcome"] == Unrated.NOT_NEEDED.value if "outcome" in rows else False
    key = [*PAIR, "judge", "repeat"]
    for expected, wrong in {
        "order ab or ba": ~rows["order"].isin(ORDERS),
        "winner a, b or tie, or null for none": ~rows["winner"].isin([*SIGNS, None]),
        "two systems, system_a the first by name": rows["system_a"] >= rows["system_b"],
        "one row a key": rows.duplicated([*key, "order"]),
    }.items():
        for row in rows[wrong].head(1).to_dict("records"):
            key_text = format_key(row, (*COMPARISONS.key, "winner"))
            raise ScoreError(f"comparisons: {key_text}: expected {expected}")
    rows["said"] = rows["winner"].map(SIGNS)
    wide = rows.pivot(index=key, columns="order", values="said").reindex(columns=ORDERS)
    skipped = rows.groupby(key)["skipped"].sum()
    return wide.astype(float).assign(skipped=skipped).reset_index()


def _rated_verdicts(ratings: Any, rubric: str) -> pd.DataFrame:
    """Return the verdicts on each pair that follow from each judge's ratings."""
    compared = count_votes(ratings, rubric=rubric)
    table, systems = compared.table, np.array(compared.table.systems, dtype=object)
    judge, pair, sample = np.nonzero(~np.isnan(compared.judge_verdicts))
    first, second = (systems[position][pair] for position in list_pairs(len(systems)))
    judges, samples = (np.array(names, dtype=object) for names in (table.judges, table.samples))
    pairs = dict(zip(PAIR, (samples[sample], first, second), strict=True))
    rated = compared.judge_verdicts[judge, pair, sample]
    return pd.DataFrame({**pairs, "judge": judges[judge], "rated": rated})


def _share(
    cases: pd.DataFrame, flags: pd.Series[bool], missing: Unscored, draws: Resampling
) -> Share:
    """Return the share of pairs that are flagged, with its interval."""
    if cases.empty:
        return Share(None, None, 0, missing)
    _, sample_position = np.unique(cases["sample_id"], return_inverse=True)
    parts = (np.bincount(sample_position, flags), np.bincount(sample_position))
    part, whole = (counts[None].astype(np.float64) for counts in parts)
    (ratio,) = ratios(part, whole, draws)
    return Share(ratio.value, ratio.interval, len(cases), ratio.reason)
