"""From ratings to the winner of each pair: judges' verdicts, their vote, and points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from echo_hf._infra.bootstrap import METHOD, MIN_SAMPLES, Unscored
from echo_hf.errors import ScoreError, unknown
from echo_hf.scores.estimate import RateEstimate, estimate_rates
from echo_hf.scores.rating_table import (
    RUBRIC,
    DrawChoice,
    Floats,
    RatingTable,
    Weights,
    divide,
    read_ratings,
)

TIE_WIDTH = 1e-6
ProtocolName = Literal["published", "corrected"]
MissingRule = Literal["exclude", "loss"]
Average = Literal["opponents", "comparisons"]
ValueT = TypeVar("ValueT")


def list_pairs(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the positions of the first and the second system of every pair."""
    first, second = np.triu_indices(count, 1)
    return first, second


def margins(table: RatingTable, *, count_lost: bool = False) -> Floats:
    """Return how far each judge rates the first system of each pair above the second."""
    first, second = list_pairs(len(table.systems))
    ratings, lost = table.ratings, table.lost
    if not count_lost or lost is None:
        return ratings[:, first] - ratings[:, second]
    ratings = np.where(lost, -np.inf, ratings)
    with np.errstate(invalid="ignore"):  # two infinite ratings: both are lost
        margin = ratings[:, first] - ratings[:, second]
    return np.where(lost[first] & lost[second], 0.0, margin)


def to_verdicts(margin: Floats) -> Floats:
    """Turn margins into verdicts; a difference of 1e-6 or less is a tie."""
    return np.sign(np.where(np.abs(margin) <= TIE_WIDTH, 0.0, margin))


def first_judge(margin: Floats) -> Floats:
    """The verdict of the first judge who rated both: what the released code computes."""
    voted = np.full(margin.shape[1:], np.nan)
    for verdict in to_verdicts(margin)[::-1]:
        voted = np.where(np.isnan(verdict), voted, verdict)
    return voted


def plurality(margin: Floats) -> Floats:
    """The system that more judges prefer wins; ties are ignored, and equal numbers are a tie."""
    verdicts = to_verdicts(margin)
    return _keep_unrated(verdicts, np.sign(np.nansum(verdicts, axis=0)))


def plurality_else_first(margin: Floats) -> Floats:
    """As `plurality`, but equal numbers are decided by the first judge who rated both."""
    voted = plurality(margin)
    return np.where(voted == 0, first_judge(margin), voted)


def majority(margin: Floats) -> Floats:
    """The system that more than half of the judges who rated both prefer wins; else it is a tie."""
    verdicts = to_verdicts(margin)
    half = (~np.isnan(verdicts)).sum(axis=0) / 2
    ahead = ((verdicts == 1).sum(axis=0) > half).astype(float)
    return _keep_unrated(verdicts, ahead - ((verdicts == -1).sum(axis=0) > half))


def most_frequent(margin: Floats) -> Floats:
    """The most frequent of win, tie and loss; a tie when there is no single one."""
    verdicts = to_verdicts(margin)
    wins, ties, losses = ((verdicts == verdict).sum(axis=0) for verdict in (1, 0, -1))
    ahead = (wins > np.maximum(ties, losses)).astype(float)
    return _keep_unrated(verdicts, ahead - (losses > np.maximum(ties, wins)))


def mean_rating(margin: Floats) -> Floats:
    """The system with the higher mean rating by the judges who rated both wins."""
    is_rated = ~np.isnan(margin)
    mean = np.nansum(margin, axis=0) / np.maximum(is_rated.sum(axis=0), 1)
    return _keep_unrated(margin, to_verdicts(mean))


def _keep_unrated(verdicts: Floats, voted: Floats) -> Floats:
    return np.where(np.isnan(verdicts).all(axis=0), np.nan, voted)


_VOTES = (first_judge, plurality, plurality_else_first, majority, most_frequent, mean_rating)
VOTES: Mapping[str, Callable[[Floats], Floats]] = {vote.__name__: vote for vote in _VOTES}


class CountingRule(NamedTuple):
    vote: str
    average: Average
    interval: str


PROTOCOLS: Mapping[ProtocolName, CountingRule] = {
    "published": CountingRule(
        "first_judge", "comparisons", "1.96 standard errors of all comparisons"
    ),
    "corrected": CountingRule("plurality", "opponents", METHOD),
}


class Points(NamedTuple):
    won: Floats
    compared: Floats


def count_points(verdicts: Floats, systems: int, weights: Weights | Floats | None = None) -> Points:
    valid = ~np.isnan(verdicts)
    won = np.where(valid, (verdicts + 1) / 2, 0.0)
    compared = valid.astype(float)
    if weights is None:
        first, total = won.sum(axis=-1), compared.sum(axis=-1)
    else:
        first, total = (weights @ values.T.astype(np.float32) for values in (won, compared))
    return Points(square(first, total - first, systems), square(total, total, systems))


def sample_points(verdicts: Floats, systems: int) -> Points:
    """Count points from verdicts [..., pair, sample] for each system and sample."""
    is_first, is_second = (np.arange(systems)[:, None] == at for at in list_pairs(systems))
    valid = ~np.isnan(verdicts)
    won = np.where(valid, (verdicts + 1) / 2, 0.0)
    return Points(
        is_first @ won + is_second @ (valid - won), (is_first | is_second) @ valid.astype(float)
    )


def count_ties(verdicts: Floats, systems: int) -> Floats:
    """Count the samples on which each two systems tie."""
    tied = (verdicts == 0).sum(axis=-1)
    return square(tied, tied, systems)


def square(first: NDArray[Any], second: NDArray[Any], systems: int) -> Floats:
    """Arrange values of pairs as a matrix of systems and opponents, with 0 on the diagonal."""
    matrix = np.zeros((*first.shape[:-1], systems, systems))
    row, column = list_pairs(systems)
    matrix[..., row, column], matrix[..., column, row] = first, second
    return matrix


def rates_of(points: Points, average: Average) -> Floats:
    """Compute win rates from 0 to 1, where 0.5 is as good as the others."""
    if average == "comparisons":
        return divide(points.won.sum(axis=-1), points.compared.sum(axis=-1))
    pair_rates = divide(points.won, points.compared)
    opponents = (~np.isnan(pair_rates)).sum(axis=-1)
    # Sorted, so that the last digit of a sum does not depend on what systems are called.
    return divide(np.nansum(np.sort(pair_rates, axis=-1), axis=-1), opponents)


def to_number(value: float) -> float | None:
    """Return a plain number, or null for NaN."""
    return None if math.isnan(value) else float(value)


def label(names: Sequence[str], values: Iterable[float]) -> dict[str, float | None]:
    return {name: to_number(value) for name, value in zip(names, values, strict=True)}


def map_pairs(
    names: Sequence[str], values: Floats, kind: Callable[[float], ValueT]
) -> dict[str, dict[str, ValueT]]:
    return {
        name: {opponent: kind(row[at]) for at, opponent in enumerate(names) if opponent != name}
        for name, row in zip(names, values, strict=True)
    }


def best_first(rates: Mapping[str, Any]) -> list[str]:
    """Sort names from the highest rate to the lowest, null last, equal ones by name."""
    return sorted(
        rates, key=lambda name: (rates[name] is None, -round(rates[name] or 0.0, 12), name)
    )


def by_rate(rates: Mapping[str, ValueT]) -> dict[str, ValueT]:
    return {name: rates[name] for name in best_first(rates)}


class Selection(TypedDict, total=False):
    """The ratings that a measure reads, as for `win_rate`."""

    missing: MissingRule
    rubric: str
    judges: Sequence[str] | None
    draws: DrawChoice


class Choices(Selection, total=False):
    """The ratings that a measure reads, and the rule that counts them, as for `win_rate`."""

    protocol: ProtocolName


@dataclass(frozen=True)
class JudgeVotes:
    """A rating table with the verdicts that follow from it under a protocol."""

    full: RatingTable
    protocol: ProtocolName
    missing: MissingRule
    rubric: str

    @property
    def table(self) -> RatingTable:
        return self.full.part

    def _remember(self, name: str, make: Callable[[], ValueT]) -> ValueT:
        """Compute something from the ratings once, for every figure of this table."""
        cache: dict[Any, ValueT] = self.table.cache
        key = name, self.missing
        if key not in cache:
            cache[key] = make()
        return cache[key]

    @property
    def rule(self) -> CountingRule:
        return PROTOCOLS[self.protocol]

    @property
    def margins(self) -> Floats:
        """Differences of ratings [judge, pair, sample]."""
        count_lost = self.missing == "loss"
        return self._remember("margins", lambda: margins(self.table, count_lost=count_lost))

    @property
    def judge_verdicts(self) -> Floats:
        """The verdict of each judge [judge, pair, sample]: 1, 0, -1, NaN."""
        return self._remember("said", lambda: to_verdicts(self.margins))

    @property
    def votes(self) -> list[str]:
        """The votes that can be counted: ratings of judges without a scale have no mean."""
        is_mixed = bool(self.table.scalar_judges) and len(self.table.judges) > 1
        return [name for name in VOTES if not (is_mixed and name == mean_rating.__name__)]

    def vote(self, vote: str) -> Floats:
        """Return the vote of the judges [pair, sample]: 1, 0, -1, NaN."""
        if vote in VOTES and vote not in self.votes:
            names = ", ".join(map(repr, sorted(self.table.scalar_judges)))
            raise ScoreError(
                f"vote is {vote!r}, and {names} gives numbers on a scale of its own: expected one "
                f"of {', '.join(self.votes)}, which take ranks"
            )
        return self._remember(vote, lambda: VOTES[vote](self.margins))

    @property
    def verdicts(self) -> Floats:
        return self.vote(self.rule.vote)

    @property
    def pair_verdicts(self) -> Floats:
        """The vote on all samples for which all judges were asked about both systems."""
        if self.full.not_asked is None:
            return self.verdicts
        first, second = list_pairs(len(self.full.systems))
        skipped = np.asarray(self.full.not_asked.any(axis=0))
        voted = VOTES[self.rule.vote](margins(self.full, count_lost=self.missing == "loss"))
        return np.where(skipped[first] | skipped[second], np.nan, voted)

    @property
    def estimate(self) -> RateEstimate | None:
        """The vote on all samples, estimated by judges who rated all; null if all or none did."""
        if self.protocol == "published" or self.full.not_asked is None:
            return None
        if len(self.full.systems) < 2 or not self.full.complete.judges:
            return None
        return self._remember("estimate", self._estimate_from_judges)

    def _estimate_from_judges(self) -> RateEstimate:
        asked_samples = len(self.table.samples)
        if asked_samples < MIN_SAMPLES:
            raise ScoreError(
                f"all judges were asked about {asked_samples} of {len(self.full.samples)} samples: "
                f"expected {MIN_SAMPLES} or more, so ask about {MIN_SAMPLES - asked_samples} more"
            )
        voted = np.full((len(self.full.samples), len(self.table.systems)), np.nan)
        is_asked = np.isin(self.full.samples, self.table.samples)
        voted[is_asked] = self.compute_shares(self.verdicts).T
        judges = replace(self, full=self.full.complete)
        return estimate_rates(judges.compute_shares(judges.judge_verdicts), voted)

    def compute_shares(self, verdicts: Floats) -> Floats:
        """Return each system's share of the points of each sample [..., system, sample]."""
        return divide(*sample_points(verdicts, len(self.table.systems)))

    @property
    def points(self) -> Points:
        systems = len(self.table.systems)
        return self._remember(
            f"{self.rule.vote} points", lambda: count_points(self.verdicts, systems)
        )

    def rates(self, verdicts: Floats | None = None) -> dict[str, float | None]:
        """Return win rates by system, null for a system that was never compared."""
        systems = self.table.systems
        if verdicts is None and self.estimate:
            return label(systems, self.estimate.rates)
        points = self.points if verdicts is None else count_points(verdicts, len(systems))
        return label(systems, rates_of(points, self.rule.average))

    @property
    def sample_counts(self) -> list[int]:
        """How many samples compare each system with another one."""
        first, second = list_pairs(len(self.table.systems))
        valid = ~np.isnan(self.verdicts)
        positions = range(len(self.table.systems))
        return [int(valid[(first == at) | (second == at)].any(axis=0).sum()) for at in positions]

    def why_unrated(self, system: str) -> Unscored:
        position = self.table.systems.index(system)
        if len(self.table.systems) == 1:
            return Unscored.ONE_SYSTEM
        if self.points.compared[position].any():
            return Unscored.FEW_SAMPLES
        is_rated = (~np.isnan(self.table.ratings[:, position])).any()
        return Unscored.NOTHING_IN_COMMON if is_rated else Unscored.NOT_RATED

    def definition(self, measure: str, **parameters: Any) -> dict[str, Any]:
        total, voted = len(self.full.samples), len(self.table.samples)
        samples = {"samples": voted}
        if self.estimate:
            samples = {"samples": total, "voted": voted}
        elif self.full.not_asked is not None:
            samples["of_samples"] = total
        return {
            "measure": measure,
            "protocol": self.protocol,
            "vote": self.rule.vote,
            "average": self.rule.average,
            "missing": self.missing,
            "rubric": self.rubric,
            "repeats": "mean rating",
            **({"draws": "mean rating of all"} if self.full.draws == "all" else {}),
            "tie": 0.5,
            "tie_width": TIE_WIDTH,
            "judges": list(self.table.judges),
            "systems": list(self.table.systems),
            **samples,
            **parameters,
        }


def count_votes(
    ratings: Any,
    outputs: Any = None,
    *,
    protocol: ProtocolName = "corrected",
    missing: MissingRule = "exclude",
    rubric: str = RUBRIC,
    judges: Sequence[str] | None = None,
    draws: DrawChoice = "first",
) -> JudgeVotes:
    """Read ratings, unless they are read already, and let the judges vote on every pair."""
    if protocol not in PROTOCOLS:
        raise ScoreError(unknown("protocol", protocol, PROTOCOLS))
    if missing not in get_args(MissingRule):
        raise ScoreError(unknown("missing", missing, get_args(MissingRule)))
    is_read = isinstance(ratings, RatingTable)
    if missing == "loss" and (ratings.lost if is_read else outputs) is None:
        raise ScoreError(
            "missing is 'loss', but no outputs are given: expected outputs=, since ratings do not "
            "say what was refused; or give missing='exclude'"
        )
    if not is_read:
        ratings = read_ratings(ratings, outputs, rubric=rubric, judges=judges, draws=draws)
    return JudgeVotes(ratings, protocol, missing, rubric)
