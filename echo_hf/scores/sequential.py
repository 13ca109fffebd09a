"""Which pairs of systems are decided, at any time while ratings come in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike

from echo_hf._infra.renamed import warn_renamed
from echo_hf._infra.summary import SummaryMixin
from echo_hf.errors import ScoreError, unknown
from echo_hf.scores import votes
from echo_hf.scores.rating_table import Bools, Floats, divide
from echo_hf.scores.votes import Choices

ALPHA = 0.05
# Of the normal mixture: narrowest where squares of outcomes add up to about 40 for one pair at 5 %,
# and 76 for 28 pairs, which is 200 and 400 samples. From 0.04 to 1 little changes.
MIXTURE = 0.2
UNTIL_DECIDED = "until decided"
Family = Literal["bonferroni", "pair"]
PairValues = Mapping[str, Mapping[str, float | None]]


def check_probabilities(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < 1:
            raise ScoreError(f"{name} is {value!r}: expected a probability between 0 and 1")


def confidence_half_width(squares: ArrayLike, count: ArrayLike, alpha: float) -> Floats:
    """Return half the confidence sequence for a mean of outcomes, from their sum of squares."""
    # Squares are taken around 0, which no small number of equal outcomes makes narrow.
    process = 1 + MIXTURE * np.asarray(squares, dtype=float)
    return divide(np.sqrt(2 * process / MIXTURE * np.log(np.sqrt(process) / alpha)), count)


def compute_p_values(outcomes: ArrayLike) -> Floats:
    """Return the alpha at which `half_width` first excludes 0, from outcomes [pair, sample]."""
    values = np.nan_to_num(np.asarray(outcomes, dtype=float))
    total, process = values.sum(axis=-1), 1 + MIXTURE * np.square(values).sum(axis=-1)
    levels: Floats = np.sqrt(process) * np.exp(-MIXTURE * total**2 / (2 * process))
    return levels.clip(max=1.0)


def find_needed_systems(undecided: Bools, upcoming: Bools) -> Bools:
    """Find the systems of undecided pairs, of which both have upcoming outputs [system, sample]."""
    first, second = votes.list_pairs(len(upcoming))
    is_open = undecided & (upcoming[first] & upcoming[second]).any(axis=-1)
    return np.isin(np.arange(len(upcoming)), [first[is_open], second[is_open]])


def get_pair_level(alpha: float, family: Family, pairs: int) -> float:
    """Return the error probability of one pair."""
    if family not in get_args(Family):
        raise ScoreError(unknown("family", family, get_args(Family)))
    check_probabilities(alpha=alpha)
    return alpha / max(pairs, 1) if family == "bonferroni" else alpha


@dataclass(frozen=True, repr=False)
class Decisions(SummaryMixin):
    """Which pairs of systems are decided, on all samples that both were rated or compared on.

    Attributes:
        matrix: Share of points that a system wins from each other one; null where they were never
            compared.
        half_width: How far the share may be off, at all looks at once.
        pairs: On how many samples each two were compared.
        decided: Pairs that are told apart, the better system first.
        undecided: The others. Equal systems are never told apart, however many samples there are.
        not_needed: How many ratings, or choices, nobody asked for.
        ratings: How many there would be with these.
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
    def summary(self) -> str:
        """The ratings asked for and the pairs decided, in one sentence."""
        unit = self.definition.get("unit", "ratings")
        asked = f"{self.ratings - self.not_needed:,} of {self.ratings:,} {unit}"
        pairs = len(self.decided) + len(self.undecided)
        way = self.definition.get("asked", UNTIL_DECIDED)
        return f"asked {way}: {asked}, {len(self.decided)} of {pairs} pairs decided"

    @property
    def said(self) -> str:
        """The old name of `summary`."""
        warn_renamed("Decisions.said", "summary")
        return self.summary


def decisions(
    ratings: Any,
    outputs: Any = None,
    *,
    alpha: float = ALPHA,
    family: Family = "bonferroni",
    **choices: Unpack[Choices],
) -> Decisions:
    """Decide for each pair of systems which one is better, at any time and as often as needed.

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
    compared = votes.count_votes(ratings, outputs, **choices)
    table, paired = compared.full, compared.pair_verdicts
    level = get_pair_level(alpha, family, int((~np.isnan(paired)).any(axis=1).sum()))
    not_needed = 0 if table.not_asked is None else int(table.not_asked.sum())
    parameters = {"alpha": alpha, "family": family, "level": level, "mixture": MIXTURE}
    return decide_pairs(
        compared.table.systems,
        paired / 2,
        level,
        not_needed=not_needed,
        ratings=int((~np.isnan(table.ratings)).sum()) + not_needed,
        definition=compared.definition("decisions", **parameters),
    )


def decide_pairs(
    systems: Sequence[str], outcomes: Floats, level: float, **counts: Any
) -> Decisions:
    """Decide pairs from outcomes [pair, sample] from -.5 to .5, NaN where there is none."""
    samples = (~np.isnan(outcomes)).sum(axis=1)
    open_, leads = compute_p_values(outcomes) > level, np.nansum(outcomes, axis=1)
    half = confidence_half_width(np.nansum(np.square(outcomes), axis=1), samples, level)
    sides: tuple[list[tuple[str, str]], ...] = [], []
    for *pair, lead, is_open in zip(*votes.list_pairs(len(systems)), leads, open_, strict=True):
        better, worse = pair if lead >= 0 else pair[::-1]
        sides[int(is_open)].append((systems[better], systems[worse]))
    points = votes.count_points(outcomes * 2, len(systems))
    return Decisions(
        matrix=votes.map_pairs(systems, divide(points.won, points.compared), votes.to_number),
        half_width=votes.map_pairs(
            systems, votes.square(half, half, len(systems)), votes.to_number
        ),
        pairs=votes.map_pairs(systems, points.compared, int),
        decided=tuple(sides[0]),
        undecided=tuple(sides[1]),
        **counts,
    )
