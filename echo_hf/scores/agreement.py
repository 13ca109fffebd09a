"""How people rank systems, and how far judges agree with them (ECHO appendix C)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.bootstrap import Interval, Unscored, generator
from echo_hf._infra.summary import SummaryMixin
from echo_hf.errors import ScoreError, TableError, unknown
from echo_hf.scores import kemeny, rating_table
from echo_hf.scores.kemeny import Consensus
from echo_hf.scores.ranks import (
    Friedman,
    Mean,
    PairTest,
    Resampling,
    TauB,
    concordances,
    dunn,
    friedman,
    means,
    mid_ranks,
    ratios,
    sample_taus,
    siegel_castellan,
    tau_table,
)
from echo_hf.scores.rating_table import RUBRIC, Bools, Floats, RatingTable, divide
from echo_hf.scores.votes import ProtocolName, to_number
from echo_hf.tables import HUMAN

Blocks = Literal["samples", "rankings"]
Ties = Literal["kept", "random"]
# A mean of repeats differs from an equal one in its last bits: no reason to rank it higher.
DECIMALS = 9


@dataclass(frozen=True)
class Procedure:
    """The statistical choices of a protocol."""

    judges_ties: Ties
    blocks: Blocks
    test: Literal["dunn", "siegel_castellan"]
    adjusted: Literal["bonferroni", "holm"]


PROCEDURES: Mapping[ProtocolName, Procedure] = {
    "published": Procedure("random", "rankings", "dunn", "bonferroni"),
    "corrected": Procedure("kept", "samples", "siegel_castellan", "holm"),
}
MeanRanks = Mapping[str, Mean]
Taus = Mapping[str, Mapping[str, TauB]]


@dataclass(frozen=True, repr=False)
class HumanRanking(SummaryMixin):
    """How people rank the systems.

    Attributes:
        consensus: The order that contradicts all rankings least.
        mean_rank: Mean place of each system in the consensus of each sample.
        mean_rank_by_rater: The same in the ranks of each person.
        friedman: Whether the systems differ at all.
        tests: Tests of each two systems, by the name of the test.
        kendalls_w: How far people agree, mean over samples.
    """

    consensus: Consensus
    mean_rank: MeanRanks
    mean_rank_by_rater: Mapping[str, MeanRanks]
    friedman: Friedman
    tests: Mapping[str, tuple[PairTest, ...]]
    kendalls_w: Mean


@dataclass(frozen=True, repr=False)
class CeilingShare(SummaryMixin):
    """A judge's agreement with people, as a share of their agreement with each other.

    Attributes:
        judge: Mean tau-b of the judge with the consensus of all people but one.
        people: The same of the one left out, on the same samples: the ceiling.
        share: The first over the second; 1 is a judge as good as one more person.
        interval: Lower and upper end of the share at 95 %, by a bootstrap over samples.
        samples: How many samples go into all this.
        reason: Why there is no share, such as that people do not agree, or no interval.
    """

    judge: float | None
    people: float | None
    share: float | None
    interval: Interval | None
    samples: int
    reason: Unscored | None


@dataclass(frozen=True, repr=False)
class PearsonR(SummaryMixin):
    """The correlation of two judges' ratings.

    Attributes:
        r: Correlation over all outputs that both rated, -1 to 1; null where one gives all the same.
        p_value: Two-sided, as if ratings were normal and independent; null as above.
        outputs: How many outputs both rated.
    """

    r: float | None
    p_value: float | None
    outputs: int


@dataclass(frozen=True, repr=False)
class RankingAgreement(SummaryMixin):
    """How far rankings of people and judges agree.

    Attributes:
        with_consensus: Tau-b of each judge with the consensus of people on each sample.
        with_raters: Tau-b of each judge with each person.
        among_raters: Tau-b of each two people.
        among_judges: Tau-b of each two judges.
        people_with_others: The ceiling: mean tau-b of a person with the consensus of the others.
        share_of_ceiling: Each judge's agreement as a share of that, on the same samples.
        pearson: Pearson's correlation of each two judges' ratings.
    """

    with_consensus: Mapping[str, TauB]
    with_raters: Taus
    among_raters: Taus
    among_judges: Taus
    people_with_others: Mean
    share_of_ceiling: Mapping[str, CeilingShare]
    pearson: Mapping[str, Mapping[str, PearsonR]]


@dataclass(frozen=True, repr=False)
class Counts(SummaryMixin):
    """Numbers of samples and rankings, incomplete and refused ones included."""

    samples: int
    rankings: int
    partial: int
    refused: int
    ratings_elsewhere: int


@dataclass(frozen=True, repr=False)
class Agreement(SummaryMixin):
    """How people rank systems, and how far judges agree with them.

    Attributes:
        people: The ranking of the systems by people.
        judges: How far judges agree with people, and people with each other.
        counts: What there is to compare.
        protocol: `published` or `corrected`.
        definition: Every parameter.
    """

    people: HumanRanking
    judges: RankingAgreement
    counts: Counts
    protocol: ProtocolName
    definition: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the result as a dict that JSON can hold."""
        return asdict(self)


def agreement(
    human: Any,
    ratings: Any = None,
    *,
    protocol: ProtocolName = "corrected",
    rubric: str = RUBRIC,
    judges: Sequence[str] | None = None,
    n_boot: int = 1000,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Agreement:
    """Compare people with each other, and judges with people (ECHO appendix C).

    The people of each sample are brought to one order of systems by the method of Kemeny and Young;
    tau-b says how far a judge's ratings of that sample agree. `published`: equal ratings are put
    in an order by chance, and each ranking by a person is a block of the tests. `corrected`: equal
    ratings are ties, and each sample is a block, as people who look at the same outputs are not
    independent.

    Args:
        human: Rows, as for `win_rate`, of sample_id, rater, system, rank (or score, higher is
            better), perhaps cannot_rank.
        ratings: Rows of ratings, as for `win_rate`; null to compare people alone.
        protocol: `corrected` or `published`.
        rubric: The rubric whose ratings are compared.
        judges: Every judge's name, in the order of the result; alphabetical when null.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        n_resamples: Draws of the sign-flip test of each tau.
        seed: Of all draws.

    Returns:
        The order of people, how far each judge agrees with it, and judges with each other.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: Ranks or ratings contradict each other, nobody ranked what is rated, there are
            fewer than two systems or more than 14, or a choice is none of those there are.

    Examples:
        >>> samples = {"sample_id": [*"112233"] * 3, "system": ["x"] * 6 + ["y"] * 6 + ["z"] * 6}
        >>> ranks = {"rater": ["ada", "ben"] * 9, "rank": [1] * 6 + [2] * 6 + [3] * 6}
        >>> ratings = {"sample_id": [*"123"] * 3, "system": [*"xxxyyyzzz"], "judge": ["j"] * 9}
        >>> ratings["rating"] = [9, 9, 9, 4, 4, 4, 5, 5, 5]
        >>> found = agreement({**samples, **ranks}, ratings)
        >>> found.people.consensus.ranking, found.people.kendalls_w.value
        (('x', 'y', 'z'), 1.0)
        >>> round(found.judges.with_consensus["j"].tau, 3)
        0.333
    """
    if protocol not in PROCEDURES:
        raise ScoreError(unknown("protocol", protocol, PROCEDURES))
    procedure, draws = PROCEDURES[protocol], Resampling(n_boot, n_resamples, seed)
    people = read_human(human)
    names: tuple[str, ...] = ()
    rated, rated_elsewhere = np.empty((0, *people.ranks.shape[1:])), 0
    if ratings is not None:
        table = rating_table.read_ratings(ratings, rubric=rubric, judges=judges)
        names, (rated, rated_elsewhere) = table.judges, align_ratings(table, people)
    consensus = kemeny.sample_consensus(people.ranks)
    ranked = ~np.isnan(people.ranks)
    counts = Counts(
        samples=len(people.samples),
        rankings=int(ranked.any(axis=1).sum()),
        partial=int((ranked.any(axis=1) & ~ranked.all(axis=1)).sum()),
        refused=int(people.refused.sum()),
        ratings_elsewhere=rated_elsewhere,
    )
    definition = {
        "measure": "agreement",
        "systems": list(people.systems),
        "raters": list(people.raters),
        "judges": list(names),
        **asdict(procedure),
        **asdict(draws),
        "protocol": protocol,
        "rubric": rubric,
    }
    ranking = _rank_systems(people, consensus, procedure.blocks, draws)
    comparison = _compare_rankings(people, consensus, names, rated, procedure.judges_ties, draws)
    return Agreement(ranking, comparison, counts, protocol, definition)


@dataclass(frozen=True, repr=False)
class HumanRanks(SummaryMixin):
    """The ranks of all people [rater, system, sample], and samples they refused [rater, sample]."""

    samples: tuple[str, ...]
    raters: tuple[str, ...]
    systems: tuple[str, ...]
    ranks: Floats
    refused: Bools

    def select(self, systems: Sequence[str], samples: Sequence[str]) -> Floats:
        """Return the ranks of these systems and samples, NaN where there are none."""
        return rating_table.align_outputs(self.ranks, self.systems, self.samples, systems, samples)


def read_human(human: Any) -> HumanRanks:
    """Read ranks, or scores as ranks; keep apart what cannot be ranked and what was not."""
    optional = ("rank", "score", "cannot_rank")
    rows = rating_table.read_columns(human, HUMAN, ("sample_id", "rater", "system"), optional)
    if not {"rank", "score"} & {*rows.column_names}:
        raise TableError(f"human: no column 'rank' among {rows.column_names!r}, nor 'score'")
    for name in {*optional} - {*rows.column_names}:
        rows = rows.append_column(name, pa.nulls(rows.num_rows, HUMAN.schema.field(name).type))
    rank, score, refused = (rows[name] for name in optional)
    valid = pc.or_(rank.is_valid(), score.is_valid())
    wrong = {
        "a rank from 1": pc.less(rank, 1),
        "a finite score": pc.invert(pc.is_finite(score)),
        "a rank or a score, not both": pc.and_(rank.is_valid(), score.is_valid()),
        "no rank where cannot_rank is true": pc.and_(refused, valid),
        "a rank where cannot_rank is false": pc.invert(pc.or_(refused, valid)),
    }
    for expected, is_wrong in wrong.items():
        for row in rows.filter(is_wrong).slice(0, 1).to_pylist():
            name = "rank" if row["score"] is None else "score"
            key = rating_table.format_key(row, HUMAN.key)
            raise ScoreError(f"human: {row[name]!r} is the {name} of {key}: expected {expected}")
    samples, (sample,) = rating_table.encode(rows["sample_id"])
    raters, (rater,) = rating_table.encode(rows["rater"])
    systems, (system,) = rating_table.encode(rows["system"])
    if len(systems) < 2:
        raise ScoreError(f"human: ranks are of {list(systems)!r}: expected two systems or more")
    cells = (rater * len(systems) + system) * len(samples) + sample
    rating_table.check_once(HUMAN, rows, cells)
    ranks, scores = np.full((2, len(raters), len(systems), len(samples)), np.nan)
    for values, column in ((ranks, rank), (scores, score)):
        values[rater, system, sample] = column.cast(pa.float64()).fill_null(np.nan).to_numpy()
    scored = ~np.isnan(scores)
    gives_both = scored.any(axis=1) & (~np.isnan(ranks)).any(axis=1)
    for first_rater, first_sample in np.argwhere(gives_both)[:1]:
        raise ScoreError(
            f"human: {raters[first_rater]!r} gives ranks and scores to sample "
            f"{samples[first_sample]!r}: expected one of them"
        )
    above = (scores[:, None] > scores[:, :, None]).sum(axis=2)
    was_shown = np.zeros((len(raters), len(samples)), dtype=bool)
    was_shown[rater, sample] = True
    ranks = np.where(scored, 1.0 + above, ranks)
    return HumanRanks(samples, raters, systems, ranks, was_shown & np.isnan(ranks).all(axis=1))


def align_ratings(table: RatingTable, human: HumanRanks) -> tuple[Floats, int]:
    """Return the ratings of the outputs that people ranked, and the number of other ratings."""
    rounded = np.round(table.ratings, DECIMALS)
    names = table.systems, table.samples, human.systems, human.samples
    ratings = rating_table.align_outputs(rounded, *names)
    rated, total = (int((~np.isnan(values)).sum()) for values in (ratings, rounded))
    if total and not rated:
        raise ScoreError(
            f"no rating is of an output that people ranked: they ranked {list(human.systems)!r}, "
            f"and ratings are of {list(table.systems)!r}: expected the same names of systems and "
            "samples"
        )
    return ratings, total - rated


def _rank_systems(
    people: HumanRanks, consensus: Floats, blocks: Blocks, draws: Resampling
) -> HumanRanking:
    def mean_ranks(ranks: Floats) -> MeanRanks:
        places = mid_ranks(ranks.T).T
        complete = np.where(np.isnan(places).any(axis=0), np.nan, places)
        return dict(zip(people.systems, means(complete, draws), strict=True))

    all_rankings = np.moveaxis(people.ranks, 1, -1).reshape(-1, len(people.systems))
    tested = all_rankings if blocks == "rankings" else consensus.T
    tested = tested[~np.isnan(tested).all(axis=1)]
    return HumanRanking(
        kemeny.make_consensus(
            people.systems, kemeny.optimal_orders(kemeny.pair_costs(all_rankings)[None])
        ),
        mean_ranks(consensus),
        dict(zip(people.raters, map(mean_ranks, people.ranks), strict=True)),
        friedman(tested),
        {
            "dunn": dunn(mid_ranks(tested), people.systems),
            "siegel_castellan": siegel_castellan(tested, people.systems),
        },
        means(concordances(people.ranks)[None], draws)[0],
    )


def _compare_rankings(
    people: HumanRanks,
    consensus: Floats,
    judges: Sequence[str],
    ratings: Floats,
    ties: Ties,
    draws: Resampling,
) -> RankingAgreement:
    ranks = -ratings
    if ties == "random":
        ranks = np.swapaxes(break_ties(np.swapaxes(ranks, 1, 2), draws.seed), 1, 2)

    def compare_each_pair(names: Sequence[str], rankings: Floats) -> Taus:
        return {
            name: dict(
                zip(
                    names[start:], tau_table(ranking[None], rankings[start:], draws)[0], strict=True
                )
            )
            for start, (name, ranking) in enumerate(zip(names[:-1], rankings, strict=False), 1)
        }

    with_consensus = tau_table(ranks, consensus[None], draws)
    with_raters = tau_table(ranks, people.ranks, draws)
    correlated: dict[str, dict[str, PearsonR]] = {name: {} for name in judges[:-1]}
    for (name, first), (other, second) in combinations(zip(judges, ratings, strict=True), 2):
        correlated[name][other] = correlate(first, second)
    people_with_others, shares = _measure_ceiling(people.ranks, ranks, draws)
    return RankingAgreement(
        {judge: row[0] for judge, row in zip(judges, with_consensus, strict=True)},
        {
            judge: dict(zip(people.raters, row, strict=True))
            for judge, row in zip(judges, with_raters, strict=True)
        },
        compare_each_pair(people.raters, people.ranks),
        compare_each_pair(judges, ranks),
        people_with_others,
        dict(zip(judges, shares, strict=True)),
        correlated,
    )


def break_ties(values: Floats, seed: int) -> Floats:
    """Rank values along the last axis; chance orders equal ones."""
    chance = generator(seed).random(values.shape)
    places = np.lexsort((chance, values), axis=-1).argsort(axis=-1) + 1.0
    return np.asarray(np.where(np.isnan(values), np.nan, places))


def _measure_ceiling(
    people: Floats, judges: Floats, draws: Resampling
) -> tuple[Mean, list[CeilingShare]]:
    """Measure how far each person agrees with the others, and each judge as a share of that."""
    others = [
        kemeny.sample_consensus(np.delete(people, rater, axis=0)) for rater in range(len(people))
    ]
    consensus = np.array(others).reshape(people.shape)
    pairs = zip(people, others, strict=True)
    taus = [sample_taus(person[None], group[None])[0, 0] for person, group in pairs]
    left_out = np.array(taus).reshape(len(people), people.shape[-1])
    has_tau = ~np.isnan(left_out)
    sums = np.where(has_tau.any(axis=0), np.nansum(left_out, axis=0), np.nan)
    ceiling = ratios(sums[None], has_tau.sum(axis=0)[None].astype(float), draws)[0]
    by_judge = sample_taus(judges, consensus)
    shared = ~np.isnan(by_judge) & ~np.isnan(left_out)
    counts = shared.sum(axis=1)
    judge_sums, ceiling_sums = (
        np.where(counts, np.where(shared, group, 0.0).sum(axis=1), np.nan)
        for group in (by_judge, left_out)
    )
    averages = (
        divide(np.nansum(group, axis=1), counts.sum(axis=1)) for group in (judge_sums, ceiling_sums)
    )
    shares = []
    for judge, person, share in zip(
        *averages, ratios(judge_sums, ceiling_sums, draws), strict=True
    ):
        no_ceiling = share.value is None and share.samples
        reason = Unscored.NO_CEILING if no_ceiling else share.reason
        values = to_number(judge), to_number(person), share.value
        shares.append(CeilingShare(*values, share.interval, share.samples, reason))
    return ceiling, shares


def correlate(first: Floats, second: Floats) -> PearsonR:
    """Compute Pearson's correlation of two judges' ratings."""
    from scipy.stats import pearsonr

    common = ~np.isnan(first) & ~np.isnan(second)
    count = int(common.sum())
    if any(np.unique(ratings[common]).size < 2 for ratings in (first, second)):
        return PearsonR(None, None, count)
    correlation = pearsonr(first[common], second[common])
    return PearsonR(to_number(correlation.statistic), to_number(correlation.pvalue), count)
