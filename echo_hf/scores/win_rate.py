"""The win rate: how often a system's outputs are rated above those of others (ECHO section 5)."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from echo_hf._infra.bootstrap import LEVEL, Interval, Unscored, compute_interval, draw_weights
from echo_hf._infra.plots import SystemValuesPlot, split_bounds
from echo_hf.config.checks import ModelIdentity
from echo_hf.errors import ScoreError
from echo_hf.scores import votes
from echo_hf.scores.rating_table import RUBRIC, DrawChoice, IgnoredRating, RatingKey, divide
from echo_hf.scores.votes import JudgeVotes, MissingRule, ProtocolName

Spread = tuple[Interval | None, float | None, Unscored | None]  # and its standard error
ERRORS_A_SIDE = 1.96
METRIC = "win_rate"


class MixedSplitsWarning(UserWarning):
    """Warns that ratings of several splits are pooled, which no board shows."""


def warn_mixed_splits(splits: Collection[str], stacklevel: int) -> None:
    if len(splits) > 1:
        warnings.warn(
            f"these ratings are of {' and '.join(sorted(splits))} together, and no board is: keep "
            "the rows of one `split`",
            MixedSplitsWarning,
            stacklevel=stacklevel + 1,
        )


@dataclass(frozen=True, repr=False)
class WinRate(SystemValuesPlot):
    """Win rates: shares of points from 0 to 1, of which a win gives 1 and a tie 0.5.

    Attributes:
        win_rate: Rate by system, the best first; null where there is none, `reasons` says why.
        interval: Lower and upper end at 95 %; null where there is none, `reasons` says why.
        standard_error: Standard error of the rate, null where there is no interval.
        matrix: Share of points that a system won from each other one, null without a comparison.
        pairs: On how many samples each two systems were compared.
        ties: On how many of those neither won.
        coverage: Share of a system's possible comparisons, samples times opponents, that count.
        per_judge: The same rates by each judge alone.
        by_missing: The rates with `missing` as `exclude` and as `loss`; null without outputs.
        reasons: Why a system has no rate, or no interval.
        ignored: How many rows of the ratings do not count, by reason.
        ignored_rows: Which they are: sample, system, judge.
        protocol: `published` or `corrected`.
        definition: Every parameter.
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
    ignored_rows: Mapping[IgnoredRating, tuple[RatingKey, ...]]
    protocol: ProtocolName
    definition: Mapping[str, Any]

    _label = "win rate: share of the points won from the others, higher is better"
    _even = 0.5

    def _table_columns(self) -> Mapping[str, Mapping[str, Any]]:
        ends = {**split_bounds(self.interval), "standard_error": self.standard_error}
        beside = {"coverage": self.coverage, "reason": self.reasons}
        return {"win_rate": self.win_rate, **ends, **beside}

    def as_json(self) -> dict[str, Any]:
        """Return the result as a dict that JSON can hold."""
        return dict(vars(self))


def win_rate(
    ratings: Any,
    outputs: Any = None,
    *,
    protocol: ProtocolName = "corrected",
    missing: MissingRule = "exclude",
    n_boot: int = 1000,
    seed: int = 0,
    rubric: str = RUBRIC,
    judges: Sequence[str] | None = None,
    draws: DrawChoice = "first",
) -> WinRate:
    """Compare every two systems on every sample by the judges' ratings (ECHO section 5).

    Of two outputs of a sample a judge prefers the one that it rates higher; the judges vote; a win
    is 1 point, a tie 0.5. `corrected`: the system that more judges prefer wins, judges who see a
    tie are ignored, and equal numbers are a tie; a rate is the mean over opponents of the share of
    points won from each; its interval draws whole samples. `published`, as the released code: the
    first judge who rated both decides alone; a rate is the mean over all N comparisons, with the
    standard error std/sqrt(N), and 1.96 of them to each side, which may reach beyond 0 and 1.

    Where a judge was asked about a part of the samples only, drawn by chance, the judges vote on
    that part, and a `corrected` rate is an estimate for all samples, with Student's t: the vote
    by a regression on the judges of all samples, as in `human_corrected`. Everything else is
    counted on the part.

    Args:
        ratings: Rows with sample_id, system, judge and rating: a finite number, higher is better,
            null or NaN where there is none. Ratings of different judges are never compared, as
            each has a scale of its own. Of other columns rubric, repeat (averaged first), draw,
            sample_digest, outcome (`not_needed`: what a judge was spared) and split (several
            together are warned of: boards are of one) count. A datasets.Dataset, a pyarrow Table,
            a data frame, a list of dicts or a dict of columns.
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
            null.
        draws: Of several outputs of one system for a sample `first` counts the first alone, as
            boards do; `all` the mean rating of all, by which small differences win more often.

    Returns:
        Rates with their intervals, the best first, and what they are made of.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: Ratings contradict each other, a choice is none of those there are or misses
            outputs, judges vote on fewer than 10 samples, since one was spared the others, or the
            rubric is answered by yes or no.

    Examples:
        >>> rows = {"sample_id": [*"123123"], "system": [*"aaabbb"], "judge": ["j"] * 6}
        >>> result = win_rate({**rows, "rating": [8, 9, 7, 8, 5, None]})
        >>> result.win_rate, result.pairs["a"]["b"], result.coverage["a"]
        ({'a': 0.75, 'b': 0.25}, 2, 0.6666666666666666)
    """
    selection: votes.Selection = {"missing": missing, "rubric": rubric, "judges": judges}
    selection["draws"] = draws
    compared = votes.count_votes(ratings, outputs, protocol=protocol, **selection)
    numbers = compared.full.ratings[~np.isnan(compared.full.ratings)]
    if rubric != RUBRIC and len(numbers) and np.isin(numbers, (0.0, 1.0)).all():
        raise ScoreError(
            f"ratings by the rubric {rubric!r} are all 0 or 1, as no and yes are kept: their mean "
            "is a share of yes, which `score` shows; expected a rubric with numbers on a scale"
        )
    warn_mixed_splits(compared.full.splits, stacklevel=2)
    table, systems, points = compared.table, compared.table.systems, compared.points
    interval: dict[str, Any] = {"kind": compared.rule.interval, "level": LEVEL}
    estimate, details, spreads = compared.estimate, dict[str, Any](), list[Spread]()
    if estimate:
        errors = map(votes.to_number, estimate.standard_errors(others=True))
        ends = estimate.compute_intervals(LEVEL, others=True)
        spreads = [(bounds, error, None) for bounds, error in zip(ends, errors, strict=True)]
        details["estimate"] = {
            "kind": "regression of the vote on judges who rated all samples",
            "weights": votes.label(compared.full.complete.judges, estimate.beta),
            "ridge": estimate.ridge,
            "rho2": estimate.rho2,
        }
        interval["kind"] = "Student's t, over samples and those voted on"
    elif protocol == "published":
        spreads = _spread_from_comparisons(compared)
    else:
        spreads = _spread_from_draws(compared, n_boot, seed)
        interval |= {"draws": n_boot, "seed": seed}
    spread, rates = dict(zip(systems, spreads, strict=True)), votes.by_rate(compared.rates())
    reasons = {
        system: compared.why_unrated(system) if rate is None else spread[system][2]
        for system, rate in rates.items()
    }
    possible = len(table.samples) * (len(systems) - 1)
    by_judge = zip(table.judges, compared.judge_verdicts, strict=True)
    by_missing = None
    if table.lost is not None:
        by_missing = {way: replace(compared, missing=way).rates() for way in get_args(MissingRule)}
    return WinRate(
        win_rate=rates,
        interval={system: spread[system][0] for system in rates},
        standard_error={system: spread[system][1] for system in rates},
        matrix=votes.map_pairs(systems, divide(points.won, points.compared), votes.to_number),
        pairs=votes.map_pairs(systems, points.compared, int),
        ties=votes.map_pairs(systems, votes.count_ties(compared.verdicts, len(systems)), int),
        coverage=votes.label(systems, divide(points.compared.sum(axis=-1), possible)),
        per_judge={judge: compared.rates(verdicts) for judge, verdicts in by_judge},
        by_missing=by_missing,
        reasons={system: reason for system, reason in reasons.items() if reason},
        ignored={reason: len(rows) for reason, rows in table.ignored.items()},
        ignored_rows=table.ignored,
        protocol=protocol,
        definition=compared.definition("win_rate", interval=interval, **details),
    )


def _spread_from_draws(compared: JudgeVotes, n_boot: int, seed: int) -> list[Spread]:
    """Compute intervals from bootstrap draws over samples, the same for all systems."""
    systems, verdicts = len(compared.table.systems), compared.verdicts
    draws = [
        votes.rates_of(votes.count_points(verdicts, systems, weights), compared.rule.average)
        for weights in draw_weights(verdicts.shape[-1], n_boot, seed)
    ]
    all_draws = np.concatenate([np.empty((0, systems)), *draws])
    spreads: list[Spread] = []
    for rates, samples in zip(all_draws.T, compared.sample_counts, strict=True):
        interval, reason = compute_interval(rates, samples)
        spreads.append((interval, float(np.nanstd(rates, ddof=1)) if interval else None, reason))
    return spreads


def _spread_from_comparisons(compared: JudgeVotes) -> list[Spread]:
    """Compute intervals from all comparisons, taken as independent."""
    points, systems = compared.points, len(compared.table.systems)
    spreads: list[Spread] = []
    for won, count, tied in zip(
        points.won.sum(axis=-1),
        points.compared.sum(axis=-1),
        votes.count_ties(compared.verdicts, systems).sum(axis=-1),
        strict=True,
    ):
        if count < 2:
            spreads.append((None, None, Unscored.ONE_COMPARISON))
            continue
        rate = won / count
        # A win adds 1 to the sum of squares, a tie 0.25: a quarter less than its 0.5 points.
        variance = max(won - tied / 4 - count * rate**2, 0.0) / (count - 1)
        error = float(np.sqrt(variance / count))
        bounds = float(rate) - ERRORS_A_SIDE * error, float(rate) + ERRORS_A_SIDE * error
        spreads.append((bounds, error, None))
    return spreads


@dataclass(frozen=True)
class BoardRow:
    """A system on a board, with its win rate or its value by a metric."""

    system: str
    value: float | None
    interval: Interval | None = None
    coverage: float | None = None
    n: int | None = None
    missing: str | None = None  # why there is no value
    rank: int | None = None  # from 1, that of the best among equals
    tier: int | None = None
    in_place_of: str | None = None  # what of the paper it stands in for, and is not


def rank_rows(
    rows: Iterable[BoardRow], tiers: Sequence[Sequence[str]] = ()
) -> tuple[BoardRow, ...]:
    """Rank rows by value, those without one last, equal ones by name.

    Where no row has an interval there are no tiers: one for all would read as no difference.
    """
    sorted_rows = sorted(rows, key=lambda row: (row.value is None, -(row.value or 0.0), row.system))
    has_interval = any(row.interval for row in sorted_rows)
    tier = {name: at for at, names in enumerate(tiers, 1) for name in names if has_interval}
    board: list[BoardRow] = []
    for at, row in enumerate(sorted_rows, 1):
        equal = board and board[-1].value == row.value
        rank = board[-1].rank if equal else at
        valid = row.value is not None
        board.append(replace(row, rank=rank if valid else None, tier=tier.get(row.system)))
    return tuple(board)


def make_board(
    rates: WinRate,
    tiers: Sequence[Sequence[str]] = (),
    models: Mapping[str, ModelIdentity] | None = None,
) -> tuple[BoardRow, ...]:
    """Make the board of win rates, with the tiers that `tiers` found."""
    models_by_name = models or {}
    rows = (
        BoardRow(
            system,
            value,
            rates.interval.get(system),
            rates.coverage.get(system),
            sum(rates.pairs.get(system, {}).values()),
            rates.reasons.get(system),
            in_place_of=models_by_name[system].in_place_of if system in models_by_name else None,
        )
        for system, value in rates.win_rate.items()
    )
    return rank_rows(rows, tiers)
