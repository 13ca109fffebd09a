"""The first half of every measure over ratings: read them, and let the judges vote."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from echo_hf.reasons import Unscored
from echo_hf.scores.columns import Floats
from echo_hf.scores.rating_table import RUBRIC, RatingTable, read_ratings
from echo_hf.scores.votes import (
    TIE_WIDTH,
    VOTES,
    Missing,
    Protocol,
    Rule,
    check_missing,
    margins,
    points_of,
    rates_of,
    rule_of,
    verdicts_of,
)

SAME_RATE = 1e-12
Rates = Mapping[str, float | None]


def number(value: float) -> float | None:
    """A plain number, null for NaN."""
    return None if math.isnan(value) else float(value)


def named(names: Sequence[str], values: Iterable[float]) -> dict[str, float | None]:
    return {name: number(value) for name, value in zip(names, values, strict=True)}


def named_pairs(names: Sequence[str], values: Floats) -> dict[str, dict[str, float | None]]:
    return {
        name: {other: value for other, value in named(names, row).items() if other != name}
        for name, row in zip(names, values, strict=True)
    }


def counted_pairs(names: Sequence[str], counts: Floats) -> dict[str, dict[str, int]]:
    return {
        name: {other: int(row[at]) for at, other in enumerate(names) if other != name}
        for name, row in zip(names, counts, strict=True)
    }


def best_first(rates: Rates) -> list[str]:
    """Names from the highest rate to the lowest, those without one last; equals by name."""

    def place(name: str) -> tuple[bool, float, str]:
        rate = rates[name]
        return rate is None, -round(rate or 0.0, 12), name

    return sorted(rates, key=place)


def ranks(rates: Rates) -> dict[str, int | None]:
    """Place of each name: 1 for the highest rate, equal rates share the better place."""
    known = [rate for rate in rates.values() if rate is not None]
    return {
        name: None if rate is None else 1 + sum(other > rate + SAME_RATE for other in known)
        for name, rate in rates.items()
    }


def flipped(one: Rates, other: Rates) -> tuple[tuple[str, str], ...]:
    """Pairs that two boards put in opposite orders; equal rates are in no order."""
    order = best_first(one)
    return tuple(
        (better, worse)
        for at, better in enumerate(order)
        for worse in order[at + 1 :]
        if _above(one, better, worse) and _above(other, worse, better)
    )


def _above(rates: Rates, better: str, worse: str) -> bool:
    above, below = rates.get(better), rates.get(worse)
    return above is not None and below is not None and above > below + SAME_RATE


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
    """Ratings with the verdicts that follow from them.

    Attributes:
        table: The ratings.
        protocol: The protocol that was followed.
        rule: What it does.
        missing: What becomes of outputs that are not there.
        rubric: The rubric that is scored.
        margins: Differences of ratings [judge, pair, sample].
        verdicts: What the judges voted [pair, sample]: 1, 0, -1, NaN.
    """

    table: RatingTable
    protocol: Protocol
    rule: Rule
    missing: Missing
    rubric: str
    margins: Floats
    verdicts: Floats

    @property
    def by_judge(self) -> Floats:
        """What each judge says alone: verdicts [judge, pair, sample]."""
        return verdicts_of(self.margins)

    def rates(self, verdicts: Floats | None = None) -> dict[str, float | None]:
        """Win rates by system, null for a system that was never compared."""
        systems = self.table.systems
        points = points_of(self.verdicts if verdicts is None else verdicts, len(systems))
        return named(systems, rates_of(points, self.rule.average))

    def why_unrated(self, system: str) -> Unscored:
        """Why a system has no win rate."""
        if len(self.table.systems) == 1:
            return Unscored.ONE_SYSTEM
        ratings = self.table.ratings[:, self.table.systems.index(system)]
        return Unscored.NOT_RATED if np.isnan(ratings).all() else Unscored.NOTHING_IN_COMMON

    def definition(self, measure: str, **parameters: Any) -> dict[str, Any]:
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
            "samples": len(self.table.samples),
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
    """Reads ratings and lets the judges vote on every pair of systems."""
    rule = rule_of(protocol)
    check_missing(missing, outputs)
    table = read_ratings(ratings, outputs, rubric=rubric, judges=judges)
    return voted(table, protocol, rule, missing, rubric)


def voted(
    table: RatingTable, protocol: Protocol, rule: Rule, missing: Missing, rubric: str
) -> Compared:
    """Lets the judges vote on ratings that were read before."""
    margin = margins(table, count_lost=missing == "loss")
    return Compared(table, protocol, rule, missing, rubric, margin, VOTES[rule.vote](margin))
