"""What people say of systems, and how far judges agree with them (ECHO appendix C)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from echo_hf._infra.bootstrap import Interval
from echo_hf.errors import ScoreError, unknown
from echo_hf.reasons import Unscored
from echo_hf.scores.columns import Floats
from echo_hf.scores.friedman import (
    Friedman,
    PairTest,
    concordances,
    dunn,
    friedman,
    siegel_castellan,
)
from echo_hf.scores.judge_votes import number
from echo_hf.scores.kemeny import (
    Consensus,
    consensus_of,
    optimal_orders,
    pair_costs,
    sample_consensus,
)
from echo_hf.scores.rank_correlation import Draws, Mean, TauB, means, ratios, sample_taus, tau_table
from echo_hf.scores.ranks import HumanRanks, JudgeRatings, beside, mid_ranks, read_human
from echo_hf.scores.rating_table import RUBRIC, read_ratings
from echo_hf.scores.votes import Protocol

Blocks = Literal["samples", "rankings"]
Ties = Literal["kept", "random"]


@dataclass(frozen=True)
class Procedure:
    """What a protocol does."""

    judges_ties: Ties
    blocks: Blocks
    test: Literal["dunn", "siegel_castellan"]
    adjusted: Literal["bonferroni", "holm"]


PROCEDURES: Mapping[Protocol, Procedure] = {
    "published": Procedure("random", "rankings", "dunn", "bonferroni"),
    "corrected": Procedure("kept", "samples", "siegel_castellan", "holm"),
}


def procedure_of(protocol: Protocol) -> Procedure:
    """The procedure of a protocol.

    Examples:
        >>> procedure_of("published").judges_ties
        'random'
    """
    if protocol not in PROCEDURES:
        raise ScoreError(unknown("protocol", protocol, PROCEDURES))
    return PROCEDURES[protocol]


MeanRanks = Mapping[str, Mean]


@dataclass(frozen=True)
class HumanRanking:
    """What people say of the systems."""

    consensus: Consensus
    mean_rank: MeanRanks
    mean_rank_by_rater: Mapping[str, MeanRanks]
    friedman: Friedman
    tests: Mapping[str, tuple[PairTest, ...]]
    kendalls_w: Mean


def verdict_of(people: HumanRanks, consensus: Floats, blocks: Blocks, draws: Draws) -> HumanRanking:
    """Says what people think of the systems."""
    every = np.moveaxis(people.ranks, 1, -1).reshape(-1, len(people.systems))
    tested = _ranked(every if blocks == "rankings" else consensus.T)
    return HumanRanking(
        consensus_of(people.systems, optimal_orders(pair_costs(every)[None])),
        mean_ranks(people.systems, consensus, draws),
        {
            rater: mean_ranks(people.systems, ranks, draws)
            for rater, ranks in zip(people.raters, people.ranks, strict=True)
        },
        friedman(tested),
        {
            "dunn": dunn(mid_ranks(tested), people.systems),
            "siegel_castellan": siegel_castellan(tested, people.systems),
        },
        means(concordances(people.ranks)[None], draws)[0],
    )


def mean_ranks(systems: Sequence[str], ranks: Floats, draws: Draws) -> MeanRanks:
    """Mean rank of each system.

    Examples:
        >>> ranks = np.array([[1.0, 1.0, np.nan], [2.0, 1.0, 1.0]])
        >>> {name: mean.value for name, mean in mean_ranks("ab", ranks, Draws()).items()}
        {'a': 1.25, 'b': 1.75}
    """
    places = mid_ranks(ranks.T).T
    complete = np.where(np.isnan(places).any(axis=0), np.nan, places)
    return dict(zip(systems, means(complete, draws), strict=True))


def _ranked(blocks: Floats) -> Floats:
    return blocks[~np.isnan(blocks).all(axis=1)]


@dataclass(frozen=True)
class CeilingShare:
    """A judge's agreement with people beside theirs.

    Attributes:
        judge: Mean tau-b of the judge with the consensus of all people but one.
        people: Mean tau-b of the one left out with the same consensus, on the same samples: the
            ceiling.
        share: The first over the second; 1 is a judge as good as one more person. Null where
            people do not agree with each other.
        interval: Lower and upper end of the share at 95 %, by a bootstrap over samples.
        samples: How many samples go into all this.
        reason: Why there is no share, or no interval.
    """

    judge: float | None
    people: float | None
    share: float | None
    interval: Interval | None
    samples: int
    reason: Unscored | None


@dataclass(frozen=True)
class LeaveOneOut:
    """People and judges beside the consensus of all people but one."""

    people: Floats
    judges: Floats


def leave_one_out(people: Floats, judges: Floats) -> LeaveOneOut:
    """Compares each person, and each judge, with the consensus of the others."""
    others = [sample_consensus(np.delete(people, at, axis=0)) for at in range(len(people))]
    consensus = np.array(others).reshape(people.shape)
    own = [
        sample_taus(one[None], rest[None])[0, 0]
        for one, rest in zip(people, consensus, strict=True)
    ]
    found = np.array(own).reshape(len(people), people.shape[-1])
    return LeaveOneOut(found, sample_taus(judges, consensus))


def ceiling(left_out: LeaveOneOut, draws: Draws) -> Mean:
    """How far people agree: the mean of tau-b of a person with the consensus of the others."""
    there = ~np.isnan(left_out.people)
    sums = np.where(there.any(axis=0), np.nansum(left_out.people, axis=0), np.nan)
    return ratios(sums[None], there.sum(axis=0)[None].astype(float), draws)[0]


def ceiling_shares(left_out: LeaveOneOut, draws: Draws) -> list[CeilingShare]:
    """Each judge's agreement as a share of people's."""
    both = ~np.isnan(left_out.judges) & ~np.isnan(left_out.people)
    counts = both.sum(axis=1)
    own = np.where(both, left_out.judges, 0.0).sum(axis=1)
    people = np.where(both, left_out.people, 0.0).sum(axis=1)
    own, people = (np.where(counts, sums, np.nan) for sums in (own, people))
    no_draws = Draws(n_boot=0)
    return [
        CeilingShare(
            judge.value,
            person.value,
            share.value,
            share.interval,
            share.samples,
            Unscored.NO_CEILING if share.value is None and share.samples else share.reason,
        )
        for judge, person, share in zip(
            ratios(own, counts.astype(float), no_draws),
            ratios(people, counts.astype(float), no_draws),
            ratios(own, people, draws),
            strict=True,
        )
    ]


@dataclass(frozen=True)
class PearsonR:
    """How far two judges' ratings rise and fall together.

    Attributes:
        r: Pearson's correlation over all outputs that both rated, -1 to 1; null where one of them
            gives all the same rating, or fewer than two were rated by both.
        p_value: Two-sided, as if ratings were normal and independent; null as above.
        outputs: How many outputs both rated.
    """

    r: float | None
    p_value: float | None
    outputs: int


def pearson(one: Floats, other: Floats) -> PearsonR:
    """Pearson's correlation of two judges' ratings."""
    from scipy.stats import pearsonr

    common = ~np.isnan(one) & ~np.isnan(other)
    count = int(common.sum())
    if any(np.unique(ratings[common]).size < 2 for ratings in (one, other)):
        return PearsonR(None, None, count)
    found = pearsonr(one[common], other[common])
    return PearsonR(number(found.statistic), number(found.pvalue), count)


def pearson_table(ratings: JudgeRatings) -> Mapping[str, Mapping[str, PearsonR]]:
    """Pearson's correlation of each two judges."""
    return {
        judge: {
            other: pearson(ratings.ratings[at], ratings.ratings[beyond])
            for beyond, other in enumerate(ratings.judges)
            if beyond > at
        }
        for at, judge in enumerate(ratings.judges[:-1])
    }


Taus = Mapping[str, Mapping[str, TauB]]


@dataclass(frozen=True)
class RankingAgreement:
    """How far rankings agree.

    Attributes:
        with_consensus: Tau-b of each judge with the consensus of people on each sample.
        with_raters: Tau-b of each judge with each person.
        among_raters: Tau-b of each two people.
        among_judges: Tau-b of each two judges.
        people_with_others: Tau-b of a person with the consensus of the others, mean over people and
            samples: the ceiling.
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


def judged(
    people: HumanRanks, consensus: Floats, ratings: JudgeRatings, how: Procedure, draws: Draws
) -> RankingAgreement:
    """Compares judges and people."""
    ranks = ratings.ranks(ties_seed=draws.seed if how.judges_ties == "random" else None)
    left_out = leave_one_out(people.ranks, ranks)
    shares = ceiling_shares(left_out, draws)
    with_consensus = tau_table(ranks, consensus[None], draws)
    return RankingAgreement(
        {judge: row[0] for judge, row in zip(ratings.judges, with_consensus, strict=True)},
        _named(ratings.judges, people.raters, tau_table(ranks, people.ranks, draws)),
        _each_two(people.raters, people.ranks, draws),
        _each_two(ratings.judges, ranks, draws),
        ceiling(left_out, draws),
        dict(zip(ratings.judges, shares, strict=True)),
        pearson_table(ratings),
    )


def _named(ones: Sequence[str], others: Sequence[str], table: Sequence[Sequence[TauB]]) -> Taus:
    return {one: dict(zip(others, row, strict=True)) for one, row in zip(ones, table, strict=True)}


def _each_two(names: Sequence[str], ranks: Floats, draws: Draws) -> Taus:
    found: dict[str, Mapping[str, TauB]] = {}
    for at, name in enumerate(names[:-1]):
        row = tau_table(ranks[at : at + 1], ranks[at + 1 :], draws)
        found |= _named([name], names[at + 1 :], row)
    return found


@dataclass(frozen=True)
class Counts:
    """What there is to compare."""

    samples: int
    rankings: int
    partial: int
    refused: int
    ratings_elsewhere: int


@dataclass(frozen=True)
class Agreement:
    """What people say of systems, and how far judges agree with them.

    Attributes:
        people: What people say of the systems.
        judges: How far judges agree with people, and people with each other.
        counts: What there is to compare.
        protocol: `published` or `corrected`.
        definition: Every parameter that the numbers depend on.
    """

    people: HumanRanking
    judges: RankingAgreement
    counts: Counts
    protocol: Protocol
    definition: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The result as a dict that JSON can hold."""
        return asdict(self)


def agreement(
    human: Any,
    ratings: Any = None,
    *,
    protocol: Protocol = "corrected",
    rubric: str = RUBRIC,
    judges: Sequence[str] | None = None,
    n_boot: int = 1000,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Agreement:
    """Compares people with each other, and judges with people (ECHO appendix C).

    The people of each sample are brought to one order of systems by the method of Kemeny and Young;
    a judge's ratings of that sample are another; tau-b says how far the two agree. `published`:
    equal ratings are put in an order by chance, and systems are tested with each ranking by a
    person as a block. `corrected`: equal ratings are ties, and systems are tested with each sample
    as a block, because people who look at the same outputs are not independent.

    Args:
        human: Rows with sample_id, rater, system, rank and, where there is one, cannot_rank. Any
            form that `win_rate` takes.
        ratings: Rows of ratings, as for `win_rate`; null to compare people alone.
        protocol: `corrected` or `published`.
        rubric: The rubric whose ratings are compared.
        judges: Every judge's name, in the order of the result; alphabetical when null.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        n_resamples: Draws of the sign-flip test of each tau.
        seed: Of all draws.

    Returns:
        All figures.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: Ranks or ratings contradict each other, nobody ranked what is rated, there are
            fewer than two systems or more than 14, or a choice is none of those there are.

    Examples:
        >>> rows = [
        ...     {"sample_id": str(at), "rater": rater, "system": system, "rank": rank}
        ...     for at in range(12)
        ...     for rater in ("ada", "ben")
        ...     for system, rank in {"x": 1, "y": 2, "z": 3}.items()
        ... ]
        >>> rated = {"x": 9, "y": 4, "z": 5}
        >>> ratings = [
        ...     {"sample_id": str(at), "judge": "j", "system": system, "rating": rating}
        ...     for at in range(12)
        ...     for system, rating in rated.items()
        ... ]
        >>> found = agreement(rows, ratings)
        >>> found.people.consensus.ranking, found.people.kendalls_w.value
        (('x', 'y', 'z'), 1.0)
        >>> round(found.judges.with_consensus["j"].tau, 3)
        0.333
        >>> round(found.judges.share_of_ceiling["j"].share, 3)
        0.333
    """
    how, draws = procedure_of(protocol), Draws(n_boot, n_resamples, seed)
    people = read_human(human)
    said = _said(people, ratings, rubric, judges)
    consensus = sample_consensus(people.ranks)
    return Agreement(
        verdict_of(people, consensus, how.blocks, draws),
        judged(people, consensus, said, how, draws),
        _counts(people, said),
        protocol,
        {**_definition(people, said, how, draws), "protocol": protocol, "rubric": rubric},
    )


def _said(
    people: HumanRanks, ratings: Any, rubric: str, judges: Sequence[str] | None
) -> JudgeRatings:
    if ratings is None:
        return JudgeRatings((), np.empty((0, len(people.systems), len(people.samples))), 0)
    return beside(read_ratings(ratings, rubric=rubric, judges=judges), people)


def _counts(people: HumanRanks, said: JudgeRatings) -> Counts:
    ranked = (~np.isnan(people.ranks)).any(axis=1)
    return Counts(
        samples=len(people.samples),
        rankings=int(ranked.sum()),
        partial=int((ranked & ~people.complete).sum()),
        refused=int(people.refused.sum()),
        ratings_elsewhere=said.elsewhere,
    )


def _definition(
    people: HumanRanks, said: JudgeRatings, how: Procedure, draws: Draws
) -> dict[str, Any]:
    return {
        "measure": "agreement",
        "systems": list(people.systems),
        "raters": list(people.raters),
        "judges": list(said.judges),
        **asdict(how),
        **asdict(draws),
    }
