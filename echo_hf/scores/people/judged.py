"""How far judges agree with people, people with each other, and judges with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from echo_hf.scores.arrays import Floats
from echo_hf.scores.people.ceiling import CeilingShare, ceiling, ceiling_shares, leave_one_out
from echo_hf.scores.people.human_ranks import HumanRanks
from echo_hf.scores.people.judge_ranks import JudgeRatings
from echo_hf.scores.people.over_samples import Draws, Mean
from echo_hf.scores.people.pearson import PearsonR, pearson_table
from echo_hf.scores.people.procedure import Procedure
from echo_hf.scores.people.tau import TauB, tau_table

Taus = Mapping[str, Mapping[str, TauB]]


@dataclass(frozen=True)
class Judged:
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
    people: HumanRanks, consensus: Floats, said: JudgeRatings, how: Procedure, draws: Draws
) -> Judged:
    """Compares judges and people.

    Args:
        people: People's ranks.
        consensus: Array [system, sample] of the consensus on each sample.
        said: Judges' ratings of the same.
        how: What the protocol does.
        draws: Of the bootstrap and the tests.

    Returns:
        How far they agree.

    Raises:
        ScoreError: A number of draws or the seed is none.
    """
    ranks = said.ranks(ties_seed=draws.seed if how.judges_ties == "random" else None)
    left_out = leave_one_out(people.ranks, ranks)
    shares = ceiling_shares(left_out, draws)
    with_consensus = tau_table(ranks, consensus[None], draws)
    return Judged(
        {judge: row[0] for judge, row in zip(said.judges, with_consensus, strict=True)},
        _named(said.judges, people.raters, tau_table(ranks, people.ranks, draws)),
        _each_two(people.raters, people.ranks, draws),
        _each_two(said.judges, ranks, draws),
        ceiling(left_out, draws),
        dict(zip(said.judges, shares, strict=True)),
        pearson_table(said),
    )


def _named(ones: Sequence[str], others: Sequence[str], table: Sequence[Sequence[TauB]]) -> Taus:
    return {one: dict(zip(others, row, strict=True)) for one, row in zip(ones, table, strict=True)}


def _each_two(names: Sequence[str], ranks: Floats, draws: Draws) -> Taus:
    found: dict[str, Mapping[str, TauB]] = {}
    for at, name in enumerate(names[:-1]):
        row = tau_table(ranks[at : at + 1], ranks[at + 1 :], draws)
        found |= _named([name], names[at + 1 :], row)
    return found
