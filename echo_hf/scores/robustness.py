"""How much a board hangs on its rule, on what is missing, and on a single judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Unpack, get_args

import numpy as np

from echo_hf._infra.plots import SystemValues, ends_of
from echo_hf.scores.columns import Bools, Floats, divided
from echo_hf.scores.judge_votes import (
    SAME_RATE,
    Choices,
    Compared,
    Selection,
    best_first,
    compare,
    flipped,
    named,
    ranks,
    voted,
)
from echo_hf.scores.votes import (
    PROTOCOLS,
    VOTES,
    Average,
    Points,
    Protocol,
    matrix_of,
    pairs_of,
    points_of,
    rates_of,
    square,
    ties_of,
)

SHOWN = 5


@dataclass(frozen=True)
class Board:
    """Win rates under one rule.

    Attributes:
        vote: How judges vote: a name in `echo_hf.scores.votes.VOTES`.
        ties: `half`: a tie is half a point; `drop`: it is no comparison; `loss`: it is no point.
        average: `opponents` or `comparisons`.
        protocol: The protocol whose rule this is, null when it is none's.
        win_rate: Rate by system, the best first.
        ranks: Place by system, 1 is best; equal rates share the better place.
    """

    vote: str
    ties: str
    average: Average
    protocol: Protocol | None
    win_rate: Mapping[str, float | None]
    ranks: Mapping[str, int | None]


@dataclass(frozen=True)
class Sensitivity(SystemValues):
    """How much the order of systems hangs on the rule.

    Attributes:
        boards: A board for every vote, treatment of ties and average.
        rank_range: Best and worst place of each system over the boards, null without any.
        flips: Pairs of systems that two boards put in opposite orders.
        definition: Every parameter that the boards depend on.
    """

    boards: tuple[Board, ...]
    rank_range: Mapping[str, tuple[int, int] | None]
    flips: tuple[tuple[str, str], ...]
    definition: Mapping[str, Any]

    _label = "rank under the corrected rule, 1 is best"
    _bar = "bar: from the best to the worst rank under any rule"

    def _columns(self) -> Mapping[str, Mapping[str, Any]]:
        usual = _usual(self.boards)
        ranks = {system: usual.ranks[system] for system in self.rank_range}
        return {"rank": ranks, **ends_of(self.rank_range)}

    @property
    def stable(self) -> bool:
        """Whether all rules agree on the order."""
        return not self.flips

    @property
    def warning(self) -> str | None:
        """One line about the ranks that flip, null when none does."""
        if self.stable:
            return None
        shown = ", ".join(f"{one!r} and {other!r}" for one, other in self.flips[:SHOWN])
        more = f" and {len(self.flips) - SHOWN} other pairs" if len(self.flips) > SHOWN else ""
        return f"the order of {shown}{more} depends on vote, ties or average"


def sensitivity(ratings: Any, outputs: Any = None, **selection: Unpack[Selection]) -> Sensitivity:
    """Computes win rates under every vote, treatment of ties and average.

    Which judge a vote asks first is `judges`' order; `leave_one_judge_out` and the rates by judge
    of `win_rate` show what hangs on a single judge.

    Args:
        ratings: As for `win_rate`.
        outputs: As for `win_rate`.
        selection: `missing`, `rubric` and `judges`, as for `win_rate`.

    Returns:
        The boards, with the ranks that flip among them.

    Raises:
        TableError: As for `win_rate`.
        ScoreError: As for `win_rate`.

    Examples:
        >>> rated = {"a": {"j": 9, "k": 4, "l": 4}, "b": {"j": 3, "k": 5, "l": 5}}
        >>> rows = [
        ...     {"sample_id": "s", "system": system, "judge": judge, "rating": rating}
        ...     for system, every in rated.items()
        ...     for judge, rating in every.items()
        ... ]
        >>> found = sensitivity(rows)
        >>> len(found.boards), found.flips, found.rank_range["a"]
        (36, (('b', 'a'),), (1, 2))
    """
    compared = compare(ratings, outputs, **selection)
    boards = tuple(_boards(compared))
    order = best_first(_usual(boards).win_rate)
    return Sensitivity(
        boards,
        {system: _range_of(boards, system) for system in order},
        _flips(boards, order),
        {
            **compared.definition("sensitivity"),
            "protocol": list(PROTOCOLS),
            "vote": list(VOTES),
            "average": list(get_args(Average)),
            "tie": list(TIES),
        },
    )


def _usual(boards: tuple[Board, ...]) -> Board:
    return next(board for board in boards if board.protocol == "corrected")


def _drop(verdicts: Floats, systems: int) -> Points:
    return points_of(np.where(verdicts == 0, np.nan, verdicts), systems)


def _loss(verdicts: Floats, systems: int) -> Points:
    points = points_of(verdicts, systems)
    return points._replace(won=points.won - ties_of(verdicts, systems) / 2)


TIES: Mapping[str, Callable[[Floats, int], Points]] = {
    "half": points_of,
    "drop": _drop,
    "loss": _loss,
}


def _boards(compared: Compared) -> Iterator[Board]:
    systems = compared.table.systems
    for vote, ties in product(VOTES, TIES):
        points = TIES[ties](VOTES[vote](compared.margins), len(systems))
        for average in get_args(Average):
            rates = named(systems, rates_of(points, average))
            ordered = {system: rates[system] for system in best_first(rates)}
            protocol = _protocol_of(vote, ties, average)
            yield Board(vote, ties, average, protocol, ordered, ranks(ordered))


def _protocol_of(vote: str, ties: str, average: Average) -> Protocol | None:
    rules = {(rule.vote, "half", rule.average): name for name, rule in PROTOCOLS.items()}
    return rules.get((vote, ties, average))


def _range_of(boards: tuple[Board, ...], system: str) -> tuple[int, int] | None:
    places = [place for board in boards if (place := board.ranks[system]) is not None]
    return (min(places), max(places)) if places else None


def _flips(boards: tuple[Board, ...], order: list[str]) -> tuple[tuple[str, str], ...]:
    rates = np.array(
        [[board.win_rate[system] for system in order] for board in boards], dtype=float
    ).reshape(len(boards), len(order))
    above: Bools = rates[:, :, None] > rates[:, None, :] + SAME_RATE
    ever = np.asarray(above.any(axis=0))
    return tuple(
        (order[one], order[other])
        for one, other in zip(*pairs_of(len(order)), strict=True)
        if ever[one, other] and ever[other, one]
    )


@dataclass(frozen=True)
class Bounds:
    """What win rates could be, had every judge rated every output.

    Attributes:
        bounds: Lowest and highest win rate by system, the best observed first; null for a system
            alone, or without a sample or a judge.
        win_rate: What was observed, as by `win_rate`.
        certain: Pairs whose order holds whatever is missing, the better first.
        definition: Every parameter that the bounds depend on.
    """

    bounds: Mapping[str, tuple[float, float] | None]
    win_rate: Mapping[str, float | None]
    certain: tuple[tuple[str, str], ...]
    definition: Mapping[str, Any]


def bounds(ratings: Any, outputs: Any = None, **choices: Unpack[Choices]) -> Bounds:
    """Lets every judge's missing verdict go against a system, and then for it.

    Nothing is assumed about why a rating is missing: a sample that was hard for the judge, or an
    output that was never made. The bounds hold for one system at a time: two systems cannot both
    have won their missing comparison. They say nothing of samples that nobody named.

    Args:
        ratings: As for `win_rate`.
        outputs: As for `win_rate`; they may name samples and systems that nobody rated.
        choices: `protocol`, `missing`, `rubric` and `judges`, as for `win_rate`; with `loss` a
            refused output has lost, and is not missing.

    Returns:
        The bounds.

    Raises:
        TableError: As for `win_rate`.
        ScoreError: As for `win_rate`.

    Examples:
        >>> rated = {"a": [8, 9, 7, 8], "b": [5, 5, 5, None]}
        >>> rows = [
        ...     {"sample_id": str(at), "system": system, "judge": "j", "rating": rating}
        ...     for system, every in rated.items()
        ...     for at, rating in enumerate(every)
        ... ]
        >>> bounds(rows).bounds
        {'a': (0.75, 1.0), 'b': (0.0, 0.25)}
    """
    compared = compare(ratings, outputs, **choices)
    rates, systems = compared.rates(), compared.table.systems
    ends = zip(*(_extreme(compared, sign) for sign in (-1, 1)), strict=True)
    found = {
        system: None if np.isnan(low) else (float(low), float(high))
        for system, (low, high) in zip(systems, ends, strict=True)
    }
    order = best_first(rates)
    return Bounds(
        {system: found[system] for system in order},
        {system: rates[system] for system in order},
        _certain(found, order),
        compared.definition("bounds"),
    )


def _extreme(compared: Compared, sign: int) -> Floats:
    """Each system's rate when all that is missing goes for it (1) or against it (-1)."""
    systems = len(compared.table.systems)
    first, second = pairs_of(systems)
    one, other = (_matrix_with(compared, sign * np.inf), _matrix_with(compared, -sign * np.inf))
    # What helps the first system of a pair harms the second.
    whole = square(one[first, second], other[second, first], systems)
    return divided(whole.sum(axis=1), systems - 1)


def _matrix_with(compared: Compared, margin: float) -> Floats:
    filled = np.where(np.isnan(compared.margins), margin, compared.margins)
    verdicts = VOTES[compared.rule.vote](filled)
    return matrix_of(points_of(verdicts, len(compared.table.systems)))


def _certain(
    found: Mapping[str, tuple[float, float] | None], order: list[str]
) -> tuple[tuple[str, str], ...]:
    known = {system: ends for system, ends in found.items() if ends}
    return tuple(
        (better, worse)
        for better in order
        for worse in order
        if better in known and worse in known and known[better][0] > known[worse][1]
    )


@dataclass(frozen=True)
class LeaveOneJudgeOut:
    """Win rates with every judge, and without each.

    Attributes:
        win_rate: Rate by system with all judges, the best first.
        without: Rate by the judge that was left out, then by system; null for a system that the
            other judges never compared.
        flips: By the judge that was left out, the pairs whose order its absence turns round, the
            better with all judges first.
        definition: Every parameter that the rates depend on.
    """

    win_rate: Mapping[str, float | None]
    without: Mapping[str, Mapping[str, float | None]]
    flips: Mapping[str, tuple[tuple[str, str], ...]]
    definition: Mapping[str, Any]


def leave_one_judge_out(
    ratings: Any, outputs: Any = None, **choices: Unpack[Choices]
) -> LeaveOneJudgeOut:
    """Computes the win rates anew without each judge.

    Args:
        ratings: As for `win_rate`.
        outputs: As for `win_rate`.
        choices: `protocol`, `missing`, `rubric` and `judges`, as for `win_rate`.

    Returns:
        The rates without each judge; of a single judge nothing remains, and they are null.

    Raises:
        TableError: As for `win_rate`.
        ScoreError: As for `win_rate`.

    Examples:
        >>> rated = {"a": {"j": 9, "k": 4, "l": 4}, "b": {"j": 3, "k": 4, "l": 5}}
        >>> rows = [
        ...     {"sample_id": "s", "system": system, "judge": judge, "rating": rating}
        ...     for system, every in rated.items()
        ...     for judge, rating in every.items()
        ... ]
        >>> found = leave_one_judge_out(rows)
        >>> found.win_rate["a"], found.without["j"]["a"], found.without["l"]["a"]
        (0.5, 0.0, 1.0)
    """
    compared = compare(ratings, outputs, **choices)
    rates = compared.rates()
    without = {judge: _without(compared, judge) for judge in compared.table.judges}
    return LeaveOneJudgeOut(
        {system: rates[system] for system in best_first(rates)},
        without,
        {judge: flipped(rates, left) for judge, left in without.items()},
        compared.definition("leave_one_judge_out"),
    )


def _without(compared: Compared, judge: str) -> dict[str, float | None]:
    table = compared.table
    kept = [at for at, name in enumerate(table.judges) if name != judge]
    fewer = replace(
        table, judges=tuple(table.judges[at] for at in kept), ratings=table.ratings[kept]
    )
    left = voted(fewer, compared.protocol, compared.rule, compared.missing, compared.rubric)
    return left.rates()
