"""From ratings to a winner of every pair: what judges say, how they vote, and points from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from echo_hf._infra.bootstrap import KIND
from echo_hf.errors import ScoreError, unknown
from echo_hf.scores.columns import Floats, Weights, divided
from echo_hf.scores.rating_table import RatingTable

TIE_WIDTH = 1e-6


def pairs_of(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the first and the second system of every pair."""
    first, second = np.triu_indices(count, 1)
    return first, second


def margins(table: RatingTable, *, count_lost: bool = False) -> Floats:
    """By how much each judge rates the first system of each pair above the second."""
    first, second = pairs_of(len(table.systems))
    ratings, lost = table.ratings, table.lost
    if not count_lost or lost is None:
        return ratings[:, first] - ratings[:, second]
    ratings = np.where(lost, -np.inf, ratings)
    both = lost[first] & lost[second]
    with np.errstate(invalid="ignore"):  # two infinite ratings: both are lost
        return np.where(both, 0.0, ratings[:, first] - ratings[:, second])


def verdicts_of(margin: Floats) -> Floats:
    """The verdict that a margin is: a difference of 1e-6 or less is a tie."""
    return np.sign(np.where(np.abs(margin) <= TIE_WIDTH, 0.0, margin))


def first_judge(margin: Floats) -> Floats:
    """The verdict of the first judge who rated both: what the released code computes."""
    said = verdicts_of(margin)
    voted = np.full(margin.shape[1:], np.nan)
    for verdict in said[::-1]:
        voted = np.where(np.isnan(verdict), voted, verdict)
    return voted


def plurality(margin: Floats) -> Floats:
    """The system that more judges prefer wins; ties are ignored, and equal numbers are a tie."""
    said = verdicts_of(margin)
    return _where_any(said, np.sign(np.nansum(said, axis=0)))


def plurality_else_first(margin: Floats) -> Floats:
    """As `plurality`, but equal numbers are decided by the first judge who rated both."""
    voted = plurality(margin)
    return np.where(voted == 0, first_judge(margin), voted)


def majority(margin: Floats) -> Floats:
    """The system that more than half of the judges who rated both prefer wins; else it is a tie."""
    said = verdicts_of(margin)
    half = (~np.isnan(said)).sum(axis=0) / 2
    ahead = ((said == 1).sum(axis=0) > half).astype(float)
    return _where_any(said, ahead - ((said == -1).sum(axis=0) > half))


def most_frequent(margin: Floats) -> Floats:
    """The most frequent of win, tie and loss; a tie when there is no single one."""
    said = verdicts_of(margin)
    wins, ties, losses = ((said == verdict).sum(axis=0) for verdict in (1, 0, -1))
    ahead = (wins > np.maximum(ties, losses)).astype(float)
    return _where_any(said, ahead - (losses > np.maximum(ties, wins)))


def mean_rating(margin: Floats) -> Floats:
    """The system with the higher mean rating by the judges who rated both wins."""
    there = ~np.isnan(margin)
    mean = np.nansum(margin, axis=0) / np.maximum(there.sum(axis=0), 1)
    return _where_any(margin, verdicts_of(mean))


def _where_any(said: Floats, voted: Floats) -> Floats:
    return np.where(np.isnan(said).all(axis=0), np.nan, voted)


VOTES: Mapping[str, Callable[[Floats], Floats]] = {
    vote.__name__: vote
    for vote in (
        first_judge,
        plurality,
        plurality_else_first,
        majority,
        most_frequent,
        mean_rating,
    )
}


Protocol = Literal["published", "corrected"]
Missing = Literal["exclude", "loss"]
Average = Literal["opponents", "comparisons"]


@dataclass(frozen=True)
class Rule:
    vote: str
    average: Average
    interval: str


PROTOCOLS: Mapping[Protocol, Rule] = {
    "published": Rule("first_judge", "comparisons", "1.96 standard errors of all comparisons"),
    "corrected": Rule("plurality", "opponents", KIND),
}


def rule_of(protocol: Protocol) -> Rule:
    if protocol not in PROTOCOLS:
        raise ScoreError(unknown("protocol", protocol, PROTOCOLS))
    return PROTOCOLS[protocol]


def check_missing(missing: Missing, outputs: object) -> None:
    """Refuses a way to treat what is missing that there is not, or that needs outputs."""
    if missing not in get_args(Missing):
        raise ScoreError(unknown("missing", missing, get_args(Missing)))
    if missing == "loss" and outputs is None:
        raise ScoreError(
            "missing is 'loss', but no outputs are given: expected outputs=, since ratings do not "
            "say what was refused; or give missing='exclude'"
        )


class Points(NamedTuple):
    won: Floats
    compared: Floats


def points_of(verdicts: Floats, systems: int, weights: Weights | None = None) -> Points:
    """Sums verdicts up over samples."""
    there = ~np.isnan(verdicts)
    won = np.where(there, (verdicts + 1) / 2, 0.0)
    compared = there.astype(float)
    if weights is None:
        first, both = won.sum(axis=-1), compared.sum(axis=-1)
    else:
        first, both = (weights @ one.T.astype(np.float32) for one in (won, compared))
    return Points(square(first, both - first, systems), square(both, both, systems))


def ties_of(verdicts: Floats, systems: int) -> Floats:
    """On how many samples each two systems tie."""
    tied = (verdicts == 0).sum(axis=-1)
    return square(tied, tied, systems)


def square(first: NDArray[Any], second: NDArray[Any], systems: int) -> Floats:
    """Values of pairs as an array of systems and opponents, with 0 on the diagonal."""
    whole = np.zeros((*first.shape[:-1], systems, systems))
    one, other = pairs_of(systems)
    whole[..., one, other], whole[..., other, one] = first, second
    return whole


def matrix_of(points: Points) -> Floats:
    """Share of points that each system won from each opponent."""
    return divided(points.won, points.compared)


def rates_of(points: Points, average: Average) -> Floats:
    """Win rates, from 0 to 1: higher is better, and 0.5 is as good as the others."""
    if average == "comparisons":
        return divided(points.won.sum(axis=-1), points.compared.sum(axis=-1))
    against = matrix_of(points)
    opponents = (~np.isnan(against)).sum(axis=-1)
    # Sorted, so that the last digit of a sum does not depend on what systems are called.
    return divided(np.nansum(np.sort(against, axis=-1), axis=-1), opponents)
