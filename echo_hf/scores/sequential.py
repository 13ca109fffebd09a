"""Which pairs of systems are told apart, looked at as often as one likes while ratings come in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike

from echo_hf._infra.summary import Summarized
from echo_hf.errors import ScoreError, unknown
from echo_hf.scores import votes
from echo_hf.scores.rating_table import Bools, Floats, divided
from echo_hf.scores.votes import Choices

ALPHA = 0.05
# Of the normal mixture: narrowest where squares of outcomes add up to about 40 for one pair at 5 %,
# and 76 for 28 pairs, which is 200 and 400 samples. From 0.04 to 1 little changes.
MIXTURE = 0.2
Family = Literal["bonferroni", "pair"]
PairValues = Mapping[str, Mapping[str, float | None]]


def check_probabilities(**values: float) -> None:
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


@dataclass(frozen=True, repr=False)
class Decisions(Summarized):
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

    Returns:
        Which pairs are decided, and the share of each pair with how far it may be off.

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
