"""Judges' ratings beside people's ranks: the same samples and systems, lower is better."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from echo_hf.errors import ScoreError
from echo_hf.scores.arrays import Floats, Integers
from echo_hf.scores.people.human_ranks import HumanRanks
from echo_hf.scores.people.ranks import without_ties
from echo_hf.scores.rating_table import RatingTable

# A mean of repeats differs from an equal one in its last bits: no reason to rank it higher.
DECIMALS = 9


@dataclass(frozen=True)
class JudgeRatings:
    """What judges said of the outputs that people ranked.

    Attributes:
        judges: Names of the judges.
        ratings: Array [judge, system, sample], in the order of the people's systems and samples;
            NaN where there is none.
        elsewhere: How many ratings are of samples or systems that nobody ranked.
    """

    judges: tuple[str, ...]
    ratings: Floats
    elsewhere: int

    def ranks(self, *, ties_seed: int | None = None) -> Floats:
        """The order in which ratings put the systems.

        Args:
            ties_seed: Of the draws that break ties; null to keep them.

        Returns:
            Array [judge, system, sample], lower is better, NaN where there is no rating.

        Raises:
            ScoreError: The seed is none.
        """
        worse = -self.ratings
        if ties_seed is None:
            return worse
        return np.swapaxes(without_ties(np.swapaxes(worse, 1, 2), ties_seed), 1, 2)


def beside(table: RatingTable, human: HumanRanks) -> JudgeRatings:
    """Takes the ratings of what people ranked.

    Args:
        table: The ratings.
        human: The ranks.

    Returns:
        The ratings, as an array that fits the ranks.

    Raises:
        ScoreError: No rating is of an output that somebody ranked.
    """
    ratings = np.full((len(table.judges), len(human.systems), len(human.samples)), np.nan)
    of_system, system = _common(table.systems, human.systems)
    of_sample, sample = _common(table.samples, human.samples)
    found = np.round(table.ratings, DECIMALS)
    ratings[:, system[:, None], sample] = found[:, of_system[:, None], of_sample]
    rated, total = (int((~np.isnan(one)).sum()) for one in (ratings, found))
    if total and not rated:
        raise ScoreError(
            f"no rating is of an output that people ranked: they ranked {list(human.systems)!r}, "
            f"and ratings are of {list(table.systems)!r}: expected the same names of systems and "
            "samples"
        )
    return JudgeRatings(table.judges, ratings, total - rated)


def _common(rated: tuple[str, ...], ranked: tuple[str, ...]) -> tuple[Integers, Integers]:
    """Positions of the names in both, in either."""
    place = {name: at for at, name in enumerate(rated)}
    pairs = [(place[name], at) for at, name in enumerate(ranked) if name in place]
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]
