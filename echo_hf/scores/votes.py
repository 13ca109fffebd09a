"""From ratings to a winner of every pair: what judges say, how they vote, and points from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from echo_hf._infra.bootstrap import FEWEST_SAMPLES, KIND
from echo_hf.errors import ScoreError, unknown
from echo_hf.reasons import Unscored
from echo_hf.scores.estimate import Estimate, estimated
from echo_hf.scores.rating_table import RUBRIC, Floats, RatingTable, Weights, divided, read_ratings

TIE_WIDTH = 1e-6
Protocol = Literal["published", "corrected"]
Missing = Literal["exclude", "loss"]
Average = Literal["opponents", "comparisons"]
Value = TypeVar("Value")


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
    with np.errstate(invalid="ignore"):  # two infinite ratings: both are lost
        margin = ratings[:, first] - ratings[:, second]
    return np.where(lost[first] & lost[second], 0.0, margin)


def verdicts_of(margin: Floats) -> Floats:
    """The verdict that a margin is: a difference of 1e-6 or less is a tie."""
    return np.sign(np.where(np.abs(margin) <= TIE_WIDTH, 0.0, margin))


def first_judge(margin: Floats) -> Floats:
    """The verdict of the first judge who rated both: what the released code computes."""
    voted = np.full(margin.shape[1:], np.nan)
    for verdict in verdicts_of(margin)[::-1]:
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


_EVERY = (first_judge, plurality, plurality_else_first, majority, most_frequent, mean_rating)
VOTES: Mapping[str, Callable[[Floats], Floats]] = {vote.__name__: vote for vote in _EVERY}


class Rule(NamedTuple):
    vote: str
    average: Average
    interval: str


PROTOCOLS: Mapping[Protocol, Rule] = {
    "published": Rule("first_judge", "comparisons", "1.96 standard errors of all comparisons"),
    "corrected": Rule("plurality", "opponents", KIND),
}


class Points(NamedTuple):
    won: Floats
    compared: Floats


def points_of(verdicts: Floats, systems: int, weights: Weights | None = None) -> Points:
    there = ~np.isnan(verdicts)
    won = np.where(there, (verdicts + 1) / 2, 0.0)
    compared = there.astype(float)
    if weights is None:
        first, both = won.sum(axis=-1), compared.sum(axis=-1)
    else:
        first, both = (weights @ one.T.astype(np.float32) for one in (won, compared))
    return Points(square(first, both - first, systems), square(both, both, systems))


def points_by_sample(verdicts: Floats, systems: int) -> Points:
    """Of verdicts [..., pair, sample] what each system wins, of how many [..., system, sample]."""
    one, other = (np.arange(systems)[:, None] == at for at in pairs_of(systems))
    there = ~np.isnan(verdicts)
    won = np.where(there, (verdicts + 1) / 2, 0.0)
    return Points(one @ won + other @ (there - won), (one | other) @ there.astype(float))


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


def rates_of(points: Points, average: Average) -> Floats:
    """Win rates, from 0 to 1: higher is better, and 0.5 is as good as the others."""
    if average == "comparisons":
        return divided(points.won.sum(axis=-1), points.compared.sum(axis=-1))
    against = divided(points.won, points.compared)
    opponents = (~np.isnan(against)).sum(axis=-1)
    # Sorted, so that the last digit of a sum does not depend on what systems are called.
    return divided(np.nansum(np.sort(against, axis=-1), axis=-1), opponents)


def number(value: float) -> float | None:
    """A plain number, null for NaN."""
    return None if math.isnan(value) else float(value)


def named(names: Sequence[str], values: Iterable[float]) -> dict[str, float | None]:
    return {name: number(value) for name, value in zip(names, values, strict=True)}


def by_pair(
    names: Sequence[str], values: Floats, kind: Callable[[float], Value]
) -> dict[str, dict[str, Value]]:
    return {
        name: {other: kind(row[at]) for at, other in enumerate(names) if other != name}
        for name, row in zip(names, values, strict=True)
    }


def best_first(rates: Mapping[str, Any]) -> list[str]:
    """Names from the highest rate to the lowest, those without one last; equals by name."""
    return sorted(rates, key=lambda one: (rates[one] is None, -round(rates[one] or 0.0, 12), one))


def by_rate(rates: Mapping[str, Value]) -> dict[str, Value]:
    return {name: rates[name] for name in best_first(rates)}


class Selection(TypedDict, total=False):
    """Which ratings a measure reads, as for `win_rate`."""

    missing: Missing
    rubric: str
    judges: Sequence[str] | None


class Choices(Selection, total=False):
    """Which ratings a measure reads, and how it counts them, as for `win_rate`."""

    protocol: Protocol


@dataclass(frozen=True)
class Compared:
    """Ratings with the verdicts that follow from them under a protocol, where all judges vote."""

    given: RatingTable
    protocol: Protocol
    missing: Missing
    rubric: str

    @property
    def table(self) -> RatingTable:
        return self.given.part

    def _once(self, what: str, make: Callable[[], Value]) -> Value:
        """Makes something of the ratings once, for every figure that is made of this table."""
        made: dict[Any, Value] = self.table.made
        key = what, self.missing
        if key not in made:
            made[key] = make()
        return made[key]

    @property
    def rule(self) -> Rule:
        return PROTOCOLS[self.protocol]

    @property
    def margins(self) -> Floats:
        """Differences of ratings [judge, pair, sample]."""
        count_lost = self.missing == "loss"
        return self._once("margins", lambda: margins(self.table, count_lost=count_lost))

    @property
    def said(self) -> Floats:
        """What each judge says [judge, pair, sample]: 1, 0, -1, NaN."""
        return self._once("said", lambda: verdicts_of(self.margins))

    def voted(self, vote: str) -> Floats:
        """What the judges vote [pair, sample]: 1, 0, -1, NaN."""
        return self._once(vote, lambda: VOTES[vote](self.margins))

    @property
    def verdicts(self) -> Floats:
        return self.voted(self.rule.vote)

    @property
    def of_pairs(self) -> Floats:
        """The same on all samples for which all judges were asked about both systems."""
        if self.given.not_asked is None:
            return self.verdicts
        first, second = pairs_of(len(self.given.systems))
        skipped = np.asarray(self.given.not_asked.any(axis=0))
        voted = VOTES[self.rule.vote](margins(self.given, count_lost=self.missing == "loss"))
        return np.where(skipped[first] | skipped[second], np.nan, voted)

    @property
    def estimate(self) -> Estimate | None:
        """The vote on all samples, by the judges who rated them all; null where all or none did."""
        if self.protocol == "published" or self.given.not_asked is None:
            return None
        if len(self.given.systems) < 2 or not self.given.of_all.judges:
            return None
        return self._once("estimate", self._estimated)

    def _estimated(self) -> Estimate:
        known = len(self.table.samples)
        if known < FEWEST_SAMPLES:
            raise ScoreError(
                f"all judges were asked about {known} of {len(self.given.samples)} samples: "
                f"expected {FEWEST_SAMPLES} or more, so ask about {FEWEST_SAMPLES - known} more"
            )
        voted = np.full((len(self.given.samples), len(self.table.systems)), np.nan)
        asked = np.isin(self.given.samples, self.table.samples)
        voted[asked] = self.shares(self.verdicts).T
        judges = replace(self, given=self.given.of_all)
        return estimated(judges.shares(judges.said), voted)

    def shares(self, verdicts: Floats) -> Floats:
        """Of the points of each sample what each system wins [..., system, sample]."""
        return divided(*points_by_sample(verdicts, len(self.table.systems)))

    @property
    def points(self) -> Points:
        systems = len(self.table.systems)
        return self._once(f"{self.rule.vote} points", lambda: points_of(self.verdicts, systems))

    def rates(self, verdicts: Floats | None = None) -> dict[str, float | None]:
        """Win rates by system, null for a system that was never compared."""
        systems = self.table.systems
        if verdicts is None and self.estimate:
            return named(systems, self.estimate.rates)
        points = self.points if verdicts is None else points_of(verdicts, len(systems))
        return named(systems, rates_of(points, self.rule.average))

    @property
    def sample_counts(self) -> list[int]:
        """On how many samples each system is compared with any other one."""
        first, second = pairs_of(len(self.table.systems))
        there = ~np.isnan(self.verdicts)
        every = range(len(self.table.systems))
        return [int(there[(first == at) | (second == at)].any(axis=0).sum()) for at in every]

    def why_unrated(self, system: str) -> Unscored:
        at = self.table.systems.index(system)
        if len(self.table.systems) == 1:
            return Unscored.ONE_SYSTEM
        if self.points.compared[at].any():
            return Unscored.FEW_SAMPLES
        is_rated = (~np.isnan(self.table.ratings[:, at])).any()
        return Unscored.NOTHING_IN_COMMON if is_rated else Unscored.NOT_RATED

    def definition(self, measure: str, **parameters: Any) -> dict[str, Any]:
        every, voted = len(self.given.samples), len(self.table.samples)
        samples = {"samples": voted}
        if self.estimate:
            samples = {"samples": every, "voted": voted}
        elif self.given.not_asked is not None:
            samples["of_samples"] = every
        return {
            "measure": measure,
            "protocol": self.protocol,
            "vote": self.rule.vote,
            "average": self.rule.average,
            "missing": self.missing,
            "rubric": self.rubric,
            "repeats": "mean rating",
            "tie": 0.5,
            "tie_width": TIE_WIDTH,
            "judges": list(self.table.judges),
            "systems": list(self.table.systems),
            **samples,
            **parameters,
        }


def compare(
    ratings: Any,
    outputs: Any = None,
    *,
    protocol: Protocol = "corrected",
    missing: Missing = "exclude",
    rubric: str = RUBRIC,
    judges: Sequence[str] | None = None,
) -> Compared:
    """Reads ratings, unless that was done before, and lets the judges vote on every pair."""
    if protocol not in PROTOCOLS:
        raise ScoreError(unknown("protocol", protocol, PROTOCOLS))
    if missing not in get_args(Missing):
        raise ScoreError(unknown("missing", missing, get_args(Missing)))
    is_read = isinstance(ratings, RatingTable)
    if missing == "loss" and (ratings.lost if is_read else outputs) is None:
        raise ScoreError(
            "missing is 'loss', but no outputs are given: expected outputs=, since ratings do not "
            "say what was refused; or give missing='exclude'"
        )
    if not is_read:
        ratings = read_ratings(ratings, outputs, rubric=rubric, judges=judges)
    return Compared(ratings, protocol, missing, rubric)
