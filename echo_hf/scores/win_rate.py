"""The win rate: how often a system's outputs are rated above those of the others (section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from echo_hf._infra.plots import SystemValues, ends_of
from echo_hf.reasons import IgnoredRating, Unscored
from echo_hf.scores.columns import divided
from echo_hf.scores.intervals import Spread, spread_of
from echo_hf.scores.judge_votes import (
    Compared,
    best_first,
    compare,
    counted_pairs,
    named,
    named_pairs,
    voted,
)
from echo_hf.scores.rating_table import RUBRIC, Key
from echo_hf.scores.votes import Missing, Points, Protocol, matrix_of, points_of, ties_of

MISSING: tuple[Missing, ...] = ("exclude", "loss")


@dataclass(frozen=True)
class WinRate(SystemValues):
    """Win rates of systems on the same samples, and all that is needed to read them.

    Every rate is a share of points from 0 to 1, higher is better: 1 for a win, 0.5 for a tie.

    Attributes:
        win_rate: Rate by system, the best first; null where there is none, `reasons` says why.
        interval: Lower and upper end at 95 %; null where there is none, `reasons` says why.
        standard_error: Standard error of the rate, null where there is no interval.
        matrix: Share of points that a system won from each other one; null where the two were
            never compared. The two shares of a pair add up to 1.
        pairs: On how many samples each two systems were compared.
        ties: On how many of those neither won.
        coverage: Share of a system's possible comparisons, samples times opponents, that count.
        per_judge: The same rates by each judge alone.
        by_missing: The same rates with `missing` as `exclude` and as `loss`; null when no outputs
            were given.
        reasons: Why a system has no rate, or no interval.
        ignored: How many rows of the ratings do not count, by reason.
        ignored_rows: Which they are: sample, system, judge.
        protocol: `published` or `corrected`.
        definition: Every parameter that the numbers depend on.
    """

    win_rate: Mapping[str, float | None]
    interval: Mapping[str, tuple[float, float] | None]
    standard_error: Mapping[str, float | None]
    matrix: Mapping[str, Mapping[str, float | None]]
    pairs: Mapping[str, Mapping[str, int]]
    ties: Mapping[str, Mapping[str, int]]
    coverage: Mapping[str, float | None]
    per_judge: Mapping[str, Mapping[str, float | None]]
    by_missing: Mapping[str, Mapping[str, float | None]] | None
    reasons: Mapping[str, Unscored]
    ignored: Mapping[IgnoredRating, int]
    ignored_rows: Mapping[IgnoredRating, tuple[Key, ...]]
    protocol: Protocol
    definition: Mapping[str, Any]

    _label = "win rate: share of the points won from the others, higher is better"
    _even = 0.5

    def _columns(self) -> Mapping[str, Mapping[str, Any]]:
        ends = {**ends_of(self.interval), "standard_error": self.standard_error}
        return {
            "win_rate": self.win_rate,
            **ends,
            "coverage": self.coverage,
            "reason": self.reasons,
        }

    def as_json(self) -> dict[str, Any]:
        """The result as a dict that JSON can hold."""
        return dict(vars(self))


def win_rate(
    ratings: Any,
    outputs: Any = None,
    *,
    protocol: Protocol = "corrected",
    missing: Missing = "exclude",
    n_boot: int = 1000,
    seed: int = 0,
    rubric: str = RUBRIC,
    judges: Sequence[str] | None = None,
) -> WinRate:
    """Compares every two systems on every sample by the judges' ratings (ECHO section 5).

    Of two outputs of a sample a judge prefers the one that it rates higher; the judges vote; a win
    is 1 point, a tie 0.5. `corrected`: the system that more judges prefer wins, judges who see a
    tie are ignored, and equal numbers are a tie; a rate is the mean over opponents of the share
    of points won from each; its interval draws whole samples. `published`, as the released code
    computes: the first judge who rated both decides alone; a rate is the mean over all
    comparisons, with the standard error std/sqrt(N) of N comparisons taken as independent, and
    1.96 of them to each side, which may reach beyond 0 and 1.

    Args:
        ratings: Rows with sample_id, system, judge and rating: a finite number, higher is better,
            null or NaN where there is none. Scales are each judge's own: ratings of different
            judges are never compared. Where there are columns rubric, repeat and sample_digest,
            they count: repeats are averaged first. A datasets.Dataset, a pyarrow Table, a data
            frame, a list of dicts or a dict of columns, in any order of rows.
        outputs: Rows with sample_id, system, outcome and, where there is one, sample_digest. They
            say which samples and systems there are, and ratings of anything else are ignored.
        protocol: `corrected` or `published`.
        missing: `exclude`: a pair counts for a judge that rated both. `loss`: as well, an output
            that was refused or has no image loses to any rated one of its sample, and ties with
            another such. Anything else that is not rated never counts.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws, which depend on the samples' names and on nothing else.
        rubric: The rubric whose ratings are compared.
        judges: Every judge's name, in the order in which `published` asks them; alphabetical when
            null, so that the order of rows does not matter.

    Returns:
        The rates with intervals, and what they are made of.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: A rating is infinite, two rows have the same key, no rating has the rubric,
            `loss` is asked for without outputs, or a choice is none of those there are.

    Examples:
        >>> rated = {"a": [8, 9, 7], "b": [8, 5, None]}
        >>> rows = [
        ...     {"sample_id": str(at), "system": system, "judge": "j", "rating": rating}
        ...     for system, every in rated.items()
        ...     for at, rating in enumerate(every)
        ... ]
        >>> result = win_rate(rows)
        >>> result.win_rate, result.pairs["a"]["b"], result.coverage["a"]
        ({'a': 0.75, 'b': 0.25}, 2, 0.6666666666666666)
    """
    compared = compare(
        ratings, outputs, protocol=protocol, missing=missing, rubric=rubric, judges=judges
    )
    points = points_of(compared.verdicts, len(compared.table.systems))
    spread = spread_of(compared, points, n_boot=n_boot, seed=seed)
    return _result(compared, points, spread)


def _result(compared: Compared, points: Points, spread: Spread) -> WinRate:
    systems, table, rates = compared.table.systems, compared.table, compared.rates()
    order = best_first(rates)
    unrated = {system: compared.why_unrated(system) for system in order if rates[system] is None}
    reasons = {**spread.reasons, **unrated}
    return WinRate(
        win_rate={system: rates[system] for system in order},
        interval={system: spread.interval[system] for system in order},
        standard_error={system: spread.standard_error[system] for system in order},
        matrix=named_pairs(systems, matrix_of(points)),
        pairs=counted_pairs(systems, points.compared),
        ties=counted_pairs(systems, ties_of(compared.verdicts, len(systems))),
        coverage=_coverage(compared, points),
        per_judge=_per_judge(compared),
        by_missing=None if table.lost is None else _by_missing(compared),
        reasons={system: reasons[system] for system in order if system in reasons},
        ignored={reason: len(rows) for reason, rows in table.ignored.items()},
        ignored_rows=table.ignored,
        protocol=compared.protocol,
        definition=compared.definition("win_rate", interval=spread.definition),
    )


def _coverage(compared: Compared, points: Points) -> dict[str, float | None]:
    possible = len(compared.table.samples) * (len(compared.table.systems) - 1)
    counted = points.compared.sum(axis=-1)
    return named(compared.table.systems, divided(counted, possible))


def _per_judge(compared: Compared) -> dict[str, dict[str, float | None]]:
    said = zip(compared.table.judges, compared.by_judge, strict=True)
    return {judge: compared.rates(verdicts) for judge, verdicts in said}


def _by_missing(compared: Compared) -> dict[str, dict[str, float | None]]:
    table, protocol, rule = compared.table, compared.protocol, compared.rule
    return {way: voted(table, protocol, rule, way, compared.rubric).rates() for way in MISSING}
