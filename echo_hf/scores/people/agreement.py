"""What people say of systems, and how far judges agree with them (ECHO appendix C)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from echo_hf.scores.people.human_ranks import HumanRanks, read_human
from echo_hf.scores.people.judge_ranks import JudgeRatings, beside
from echo_hf.scores.people.judged import Judged, judged
from echo_hf.scores.people.kemeny import sample_consensus
from echo_hf.scores.people.over_samples import Draws
from echo_hf.scores.people.procedure import Procedure, procedure_of
from echo_hf.scores.people.verdict import Verdict, verdict_of
from echo_hf.scores.rating_table import RUBRIC, read_ratings
from echo_hf.scores.rule import Protocol


@dataclass(frozen=True)
class Counts:
    """What there is to compare.

    Attributes:
        samples: Samples that somebody ranked, or found impossible to rank.
        rankings: Rankings of a sample by a person, complete or not.
        partial: Those of them that leave a system out.
        refused: How often a person found a sample impossible to rank.
        ratings_elsewhere: Ratings of samples or systems that nobody ranked; they do not count.
    """

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

    people: Verdict
    judges: Judged
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

    Example:
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
