"""What people say of the systems: their order, its mean ranks, and which of them differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from echo_hf.scores.arrays import Floats
from echo_hf.scores.people.friedman import Friedman, concordances, friedman
from echo_hf.scores.people.human_ranks import HumanRanks
from echo_hf.scores.people.kemeny import Consensus, consensus_of, pair_costs
from echo_hf.scores.people.optimal_orders import optimal_orders
from echo_hf.scores.people.over_samples import Draws, Mean, means
from echo_hf.scores.people.pairwise_tests import PairTest, dunn, siegel_castellan
from echo_hf.scores.people.procedure import Blocks
from echo_hf.scores.people.ranks import mid_ranks

MeanRanks = Mapping[str, Mean]


@dataclass(frozen=True)
class Verdict:
    """What people say of the systems.

    Attributes:
        consensus: The order nearest to all rankings of all samples.
        mean_rank: Mean rank of each system in the consensus of a sample, 1 is best, over samples on
            which every system is ranked.
        mean_rank_by_rater: The same in the rankings of each person that are complete.
        friedman: Whether the systems differ at all.
        tests: Which two systems differ, by `dunn` and by `siegel_castellan`.
        kendalls_w: How far people agree on a sample, mean over those that two of them or more
            ranked completely: 1 the same order, 0 no agreement.
    """

    consensus: Consensus
    mean_rank: MeanRanks
    mean_rank_by_rater: Mapping[str, MeanRanks]
    friedman: Friedman
    tests: Mapping[str, tuple[PairTest, ...]]
    kendalls_w: Mean


def verdict_of(people: HumanRanks, consensus: Floats, blocks: Blocks, draws: Draws) -> Verdict:
    """Says what people think of the systems.

    Args:
        people: Their ranks.
        consensus: Array [system, sample] of the consensus on each sample.
        blocks: What the tests take for a block.
        draws: Of the bootstrap.

    Returns:
        The verdict.

    Raises:
        ScoreError: There are more than 14 systems, or a number of draws or the seed is none.
    """
    every = np.moveaxis(people.ranks, 1, -1).reshape(-1, len(people.systems))
    tested = _ranked(every if blocks == "rankings" else consensus.T)
    return Verdict(
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

    Args:
        systems: Their names.
        ranks: Array [system, sample], lower is better, NaN where not ranked. Ties share the mean of
            their places; a sample with a NaN does not count, since fewer places have a lower mean.
        draws: Of the bootstrap.

    Returns:
        Means with intervals, in the order of the systems.

    Raises:
        ScoreError: A number of draws or the seed is none.

    Example:
        >>> ranks = np.array([[1.0, 1.0, np.nan], [2.0, 1.0, 1.0]])
        >>> {name: mean.value for name, mean in mean_ranks("ab", ranks, Draws()).items()}
        {'a': 1.25, 'b': 1.75}
    """
    places = mid_ranks(ranks.T).T
    complete = np.where(np.isnan(places).any(axis=0), np.nan, places)
    return dict(zip(systems, means(complete, draws), strict=True))


def _ranked(blocks: Floats) -> Floats:
    return blocks[~np.isnan(blocks).all(axis=1)]
