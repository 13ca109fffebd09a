"""How far a board depends on its rule, on missing ratings, on one judge, and on developers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from echo_hf._infra.bootstrap import Interval, Unscored, compute_interval, draw_weights
from echo_hf._infra.plots import SystemValuesPlot, split_bounds
from echo_hf._infra.summary import SummaryMixin
from echo_hf.errors import ScoreError
from echo_hf.scores import votes
from echo_hf.scores.estimate import nan_mean
from echo_hf.scores.rating_table import Floats, Weights, divide
from echo_hf.scores.votes import Average, Choices, ProtocolName, Selection

SAME_RATE = 1e-12
TIES = ("half", "drop", "loss")
Pairs = tuple[tuple[str, str], ...]
Rates = Mapping[str, float | None]


@dataclass(frozen=True, repr=False)
class Board(SummaryMixin):
    """Win rates under one rule.

    Attributes:
        vote: How judges vote: a name in `echo_hf.scores.votes.VOTES`.
        ties: `half`: a tie is half a point; `drop`: it is no comparison; `loss`: it is no point.
        average: `opponents` or `comparisons`.
        protocol: The protocol whose rule this is, if any.
        win_rate: Rate by system, the best first.
        ranks: Place by system, 1 is best; equal rates share the better place.
    """

    vote: str
    ties: str
    average: Average
    protocol: ProtocolName | None
    win_rate: Mapping[str, float | None]
    ranks: Mapping[str, int | None]


@dataclass(frozen=True, repr=False)
class Sensitivity(SystemValuesPlot):
    """How far the order of systems depends on the rule.

    Attributes:
        boards: A board for every vote, treatment of ties and average.
        rank_range: Best and worst place of each system over the boards, null without any.
        flips: Pairs of systems that two boards put in opposite orders.
        definition: Every parameter.
    """

    boards: tuple[Board, ...]
    rank_range: Mapping[str, tuple[int, int] | None]
    flips: tuple[tuple[str, str], ...]
    definition: Mapping[str, Any]

    _label = "rank under the corrected rule, 1 is best"
    _bar = "bar: from the best to the worst rank under any rule"

    def _table_columns(self) -> Mapping[str, Mapping[str, Any]]:
        usual = next(board for board in self.boards if board.protocol == "corrected")
        ranks = {system: usual.ranks[system] for system in self.rank_range}
        return {"rank": ranks, **split_bounds(self.rank_range)}


def sensitivity(ratings: Any, outputs: Any = None, **selection: Unpack[Selection]) -> Sensitivity:
    """Compute win rates under every vote, treatment of ties and average.

    Args:
        ratings: As for `win_rate`.
        outputs: As for `win_rate`.
        selection: As for `win_rate`, but for the protocol.

    Returns:
        A board for each rule, and the best and the worst rank of each system.

    Examples:
        >>> rows = {"sample_id": ["s"] * 6, "system": [*"aaabbb"], "judge": [*"jkljkl"]}
        >>> found = sensitivity({**rows, "rating": [9, 4, 4, 3, 5, 5]})
        >>> len(found.boards), found.flips, found.rank_range["a"]
        (36, (('b', 'a'),), (1, 2))
    """
    compared = votes.count_votes(ratings, outputs, **selection)
    systems = compared.table.systems
    protocols = {(rule.vote, "half", rule.average): name for name, rule in votes.PROTOCOLS.items()}
    boards = list[Board]()
    for vote, ties in product(compared.votes, TIES):
        verdicts = compared.vote(vote)
        if ties == "drop":
            verdicts = np.where(verdicts == 0, np.nan, verdicts)
        points = votes.count_points(verdicts, len(systems))
        if ties == "loss":
            points = points._replace(won=points.won - votes.count_ties(verdicts, len(systems)) / 2)
        for average in get_args(Average):
            rates = votes.by_rate(votes.label(systems, votes.rates_of(points, average)))
            rated = [rate for rate in rates.values() if rate is not None]
            ranks = {
                name: None if rate is None else 1 + sum(other > rate + SAME_RATE for other in rated)
                for name, rate in rates.items()
            }
            protocol = protocols.get((vote, ties, average))
            boards.append(Board(vote, ties, average, protocol, rates, ranks))
    order = [*next(board.win_rate for board in boards if board.protocol == "corrected")]
    ranges: dict[str, tuple[int, int] | None] = {}
    for system in order:
        places = [place for board in boards if (place := board.ranks[system]) is not None]
        ranges[system] = (min(places), max(places)) if places else None
    above = np.logical_or.reduce([_is_above(board.win_rate, order) for board in boards])
    rules: dict[str, Any] = {"protocol": list(votes.PROTOCOLS), "vote": compared.votes}
    rules |= {"average": list(get_args(Average)), "tie": list(TIES)}
    definition = {**compared.definition("sensitivity"), **rules}
    return Sensitivity(tuple(boards), ranges, _pairs(order, above & above.T), definition)


def _is_above(rates: Rates, order: list[str]) -> NDArray[np.bool_]:
    """Return which systems have a higher rate than which others."""
    values = np.array([rates[system] for system in order], dtype=float)
    return np.asarray(values[:, None] > values + SAME_RATE)


def _pairs(order: list[str], chosen: NDArray[np.bool_]) -> Pairs:
    """Name the chosen pairs, in the given order of systems."""
    return tuple((order[first], order[second]) for first, second in np.argwhere(np.triu(chosen, 1)))


@dataclass(frozen=True, repr=False)
class Bounds(SummaryMixin):
    """The lowest and highest win rates that missing ratings allow.

    Attributes:
        bounds: Lowest and highest win rate by system, the best observed first; null for a system
            alone, or without a sample or a judge.
        win_rate: What was observed, as by `win_rate`.
        certain: Pairs whose order holds whatever is missing, the better first.
        definition: Every parameter.
    """

    bounds: Mapping[str, tuple[float, float] | None]
    win_rate: Mapping[str, float | None]
    certain: tuple[tuple[str, str], ...]
    definition: Mapping[str, Any]


def bounds(ratings: Any, outputs: Any = None, **choices: Unpack[Choices]) -> Bounds:
    """Let each judge's missing verdict go against a system, and then for it.

    Nothing is assumed about why a rating is missing. The bounds hold for one system at a time: two
    systems cannot both have won their missing comparison. They say nothing of samples that nobody
    named.

    Args:
        ratings: As for `win_rate`.
        outputs: As for `win_rate`.
        choices: As for `win_rate`; with `missing="loss"` a refused output has lost.

    Returns:
        The least and the most that each win rate can be, and the pairs whose order is certain.

    Examples:
        >>> rows = {"sample_id": [*"12341234"], "system": [*"aaaabbbb"], "judge": ["j"] * 8}
        >>> bounds({**rows, "rating": [8, 9, 7, 8, 5, 5, 5, None]}).bounds
        {'a': (0.75, 1.0), 'b': (0.0, 0.25)}
    """
    compared = votes.count_votes(ratings, outputs, **choices)
    rates, systems = votes.by_rate(compared.rates(compared.verdicts)), compared.table.systems
    first, second = votes.list_pairs(len(systems))
    shares = {}
    for sign in (-1, 1):
        filled = np.where(np.isnan(compared.margins), sign * np.inf, compared.margins)
        points = votes.count_points(votes.VOTES[compared.rule.vote](filled), len(systems))
        shares[sign] = divide(points.won, points.compared)
    ends = []
    for sign in (-1, 1):  # what helps the first system of a pair harms the second
        parts = shares[sign][first, second], shares[-sign][second, first]
        ends.append(divide(votes.square(*parts, len(systems)).sum(1), len(systems) - 1).tolist())
    ranges = dict(zip(systems, zip(*ends, strict=True), strict=True))
    by_system = {name: None if np.isnan(ranges[name][0]) else ranges[name] for name in rates}
    bounded = {name: ends for name, ends in by_system.items() if ends}
    certain = tuple(
        (better, worse)
        for better, worse in product(bounded, bounded)
        if bounded[better][0] > bounded[worse][1]
    )
    return Bounds(by_system, rates, certain, compared.definition("bounds"))


@dataclass(frozen=True, repr=False)
class LeaveOneJudgeOut(SummaryMixin):
    """Win rates with every judge, and without each.

    Attributes:
        win_rate: Rate by system with all judges, the best first.
        without: Rate by the judge left out, then by system; null where no other compared it.
        flips: By the judge left out, the pairs that change their order, the better of all first.
        definition: Every parameter.
    """

    win_rate: Mapping[str, float | None]
    without: Mapping[str, Mapping[str, float | None]]
    flips: Mapping[str, tuple[tuple[str, str], ...]]
    definition: Mapping[str, Any]


def leave_one_judge_out(
    ratings: Any, outputs: Any = None, **choices: Unpack[Choices]
) -> LeaveOneJudgeOut:
    """Compute the win rates without each judge in turn.

    Args:
        ratings: As for `win_rate`.
        outputs: As for `win_rate`.
        choices: As for `win_rate`.

    Returns:
        The rates without each judge, and which systems change places.

    Examples:
        >>> rows = {"sample_id": ["s"] * 6, "system": [*"aaabbb"], "judge": [*"jkljkl"]}
        >>> found = leave_one_judge_out({**rows, "rating": [9, 4, 4, 3, 4, 5]})
        >>> found.win_rate["a"], found.without["j"]["a"], found.without["l"]["a"]
        (0.5, 0.0, 1.0)
    """
    compared = votes.count_votes(ratings, outputs, **choices)
    table, rates = compared.full, votes.by_rate(compared.rates())
    order = list(rates)
    without, flips = dict[str, Rates](), dict[str, Pairs]()
    for judge in table.judges:
        remaining = table.of_judges([name != judge for name in table.judges])
        without[judge] = replace(compared, full=remaining).rates()
        flips[judge] = _pairs(order, _is_above(rates, order) & _is_above(without[judge], order).T)
    return LeaveOneJudgeOut(rates, without, flips, compared.definition("leave_one_judge_out"))


Developers = Mapping[str, str | None]


@dataclass(frozen=True, repr=False)
class Preference(SummaryMixin):
    """How a judge rates systems of its own developer, compared with other judges.

    Attributes:
        own: The systems of its developer.
        by_judge: Share of points that they win against systems of other developers, by the judge.
        by_others: The same share, of the same comparisons, by judges of other developers.
        preference: The first minus the second, from -1 to 1: above 0 the judge favours its own.
        interval: Lower and upper end of the preference at 95 %, drawing whole samples.
        reason: Why a number is null.
    """

    own: tuple[str, ...]
    by_judge: float | None
    by_others: float | None
    preference: float | None
    interval: Interval | None
    reason: Unscored | None


@dataclass(frozen=True, repr=False)
class SelfPreference(SummaryMixin):
    """The preference of each judge for systems of its own developer.

    Attributes:
        judges: The preference of each.
        definition: Every parameter.
    """

    judges: Mapping[str, Preference]
    definition: Mapping[str, Any]


def self_preference(
    ratings: Any,
    judge_developers: Developers,
    system_developers: Developers,
    outputs: Any = None,
    *,
    n_boot: int = 1000,
    seed: int = 0,
    **selection: Unpack[Selection],
) -> SelfPreference:
    """Compare how a judge and judges of other developers rate systems of its developer.

    Both are asked about the same comparisons: of a system of the judge's developer with another's,
    on samples where the judge and at least one judge of another developer rated both. A judge may
    see something that the others do not: a preference is a difference, not yet a bias.

    Args:
        ratings: As for `win_rate`.
        judge_developers: Who made each judge, in any case; null: nobody whose system is rated.
        system_developers: Who made each system; null when unknown.
        outputs: As for `win_rate`.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.
        selection: `missing`, `rubric` and `judges`, as for `win_rate`.

    Returns:
        The preference of each judge with its interval, or why it has none.

    Raises:
        ScoreError: As for `win_rate`, or a judge or a system has no entry among the developers.

    Examples:
        >>> rows = {"sample_id": ["s"] * 4, "system": ["pip-1", "rival"] * 2}
        >>> rows |= {"judge": ["pip-judge"] * 2 + ["other"] * 2, "rating": [9, 3, 5, 5]}
        >>> systems = {"pip-1": "Pip", "rival": "Rival"}
        >>> found = self_preference(rows, {"pip-judge": "Pip", "other": None}, systems)
        >>> found.judges["pip-judge"].by_judge, found.judges["pip-judge"].preference
        (1.0, 0.5)
    """
    compared = votes.count_votes(ratings, outputs, **selection)
    table, verdicts = compared.table, compared.judge_verdicts
    makers = []
    for names, developers in ((table.judges, judge_developers), (table.systems, system_developers)):
        if unnamed := [name for name in names if name not in developers]:
            raise ScoreError(
                f"{unnamed[0]!r} has no developer among {sorted(developers)!r}: expected who made "
                "it, or null"
            )
        makers.append(np.array([(developers[name] or "").casefold() for name in names], object))
    judges, systems = makers
    first, second = votes.list_pairs(len(systems))
    preferences = {}
    for position, judge in enumerate(table.judges):
        own = (systems == judges[position]) & (judges[position] != "")
        others = (judges != judges[position]) | (judges == "")
        others[position] = False
        mixed = own[first] != own[second]
        side = np.where(own[first], 1, -1)[mixed, None]
        points = (1 + side * verdicts[:, mixed]) / 2
        own_names = tuple(table.systems[position] for position in np.flatnonzero(own))
        preferences[judge] = _measure_preference(
            own_names, points[position], nan_mean(points[others]), n_boot, seed
        )
    definition: dict[str, Any] = {
        **compared.definition("self_preference", draws=n_boot, seed=seed),
        "protocol": None,
        "vote": "none: each judge alone",
        "average": "pairs of systems",
        "judge_developers": dict(judge_developers),
        "system_developers": dict(system_developers),
    }
    return SelfPreference(preferences, definition)


def _measure_preference(
    own: tuple[str, ...], by_judge: Floats, by_others: Floats, n_boot: int, seed: int
) -> Preference:
    """Measure a preference from points [pair, sample] of own systems against others."""
    shared = ~np.isnan(by_judge + by_others)
    if not shared.any():
        is_unrated = np.isnan(by_judge).all()
        reason = Unscored.NO_OWN_SYSTEM if is_unrated else Unscored.NO_OTHER_JUDGE
        return Preference(own, None, None, None, None, reason)
    judged, others = (
        _pair_means(np.where(shared, points, np.nan)) for points in (by_judge, by_others)
    )
    draws = [
        _pair_means(by_judge - by_others, weights)
        for weights in draw_weights(shared.shape[-1], n_boot, seed)
    ]
    interval, cause = compute_interval(
        np.concatenate(draws or [np.empty(0)]), int(shared.any(0).sum())
    )
    return Preference(own, float(judged), float(others), float(judged - others), interval, cause)


def _pair_means(values: Floats, weights: Weights | None = None) -> Floats:
    """Return the mean over pairs of the mean over samples, for each draw of weights."""
    if weights is None:
        return nan_mean(nan_mean(values, axis=-1), axis=-1)
    valid = ~np.isnan(values)
    sums = weights @ np.where(valid, values, 0.0).T
    return nan_mean(divide(sums, weights @ valid.T), axis=-1)
