"""Win rates by judges on all samples, corrected by the ranks of people on some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from echo_hf._infra.bootstrap import LEVEL, MIN_SAMPLES, Interval, Unscored
from echo_hf._infra.plots import SystemValuesPlot, split_bounds
from echo_hf.errors import ScoreError, unknown
from echo_hf.scores.agreement import read_human
from echo_hf.scores.estimate import Method, compute_t_quantile, estimate_rates, nan_mean
from echo_hf.scores.rating_table import RUBRIC, Floats, RatingTable, divide, read_ratings
from echo_hf.scores.sequential import check_probabilities
from echo_hf.scores.votes import Points, best_first, label, list_pairs, sample_points, to_verdicts

MEAN = "judges' mean"
# Of what judges leave unexplained of one person's shares, in the system where it is largest:
# .19 to .23 for each of three people, three judges, and 2 to 8 systems on 179 samples.
EXPECTED_SPREAD = 0.21


@dataclass(frozen=True, repr=False)
class HumanCorrected(SystemValuesPlot):
    """The win rates that people would give on all samples.

    Attributes:
        win_rate: Corrected share of the points that each system wins from the others; higher is
            better, about 0 to 1: not clipped. Null where there is none.
        interval: Lower and upper end at the confidence asked for, or null.
        standard_error: Of the corrected rates.
        judges_alone: The rates by the judges' mean share, on all samples.
        people_alone: The rates by people, on the samples that they ranked.
        beta: Weight of each judge's share; for `ppi` of their mean.
        rho2: Share of people's variance within systems that judges explain, on samples left out.
        effective_n: How many ranked samples without judges would tell as much.
        ranked: Samples that people ranked.
        samples: All samples.
        reasons: Why a rate is null.
        definition: Every parameter.
    """

    win_rate: Mapping[str, float | None]
    interval: Mapping[str, Interval | None]
    standard_error: Mapping[str, float | None]
    judges_alone: Mapping[str, float | None]
    people_alone: Mapping[str, float | None]
    beta: Mapping[str, float]
    rho2: float | None
    effective_n: Mapping[str, float | None]
    ranked: int
    samples: int
    reasons: Mapping[str, Unscored]
    definition: Mapping[str, Any]
    _spread: float = field(default=np.nan, repr=False)

    _label = "win rate by people, estimated on all samples: higher is better"
    _even = 0.5

    def _table_columns(self) -> Mapping[str, Mapping[str, Any]]:
        ends = {**split_bounds(self.interval), "standard_error": self.standard_error}
        other_rates = {"judges_alone": self.judges_alone, "people_alone": self.people_alone}
        return {"win_rate": self.win_rate, **ends, **other_rates, "reason": self.reasons}

    def n_for(self, width: float) -> int | None:
        """Return how many samples people have to rank, the ranked ones included, for an interval.

        Args:
            width: Half of an interval that no system's should be wider than, such as 0.03.

        Returns:
            The number, at most all samples; null where no system has an interval.

        Raises:
            ScoreError: The width is not a finite number above 0.
        """
        needed = ranked_needed(width, self.samples, self._spread, self.definition["confidence"])
        return None if np.isnan(self._spread) else needed

    def as_json(self) -> dict[str, Any]:
        """Return the result as a dict that JSON can hold."""
        return {name: value for name, value in vars(self).items() if name[0] != "_"}


def ranked_needed(
    width: float, samples: int, spread: float = EXPECTED_SPREAD, confidence: float = LEVEL
) -> int:
    """Return how many samples people have to rank for intervals of ±`width`."""
    if not 0 < width < np.inf:
        raise ScoreError(f"width is {width!r}: expected half an interval, such as 0.03")
    if samples <= MIN_SAMPLES:
        return samples
    counts = np.arange(MIN_SAMPLES, samples)
    half = compute_t_quantile(counts - 1, confidence) * spread * np.sqrt(1 / counts - 1 / samples)
    return int(next(iter(counts[half <= width]), samples))


def human_corrected(
    ratings: Any,
    human: Any,
    *,
    protocol: str = "corrected",
    method: Method = "regression",
    rubric: str = RUBRIC,
    judges: Sequence[str] | None = None,
    confidence: float = LEVEL,
) -> HumanCorrected:
    """Estimate the win rates that people would give on all samples, from those they ranked.

    Judges rate every sample, people rank some, drawn without looking at them. A system's share in a
    sample is the mean over its opponents of 1 for a win, 0.5 for a tie, 0 for a loss: `h` by
    people, over all who ranked the sample, and `X` by each judge. Weights `beta`, the same for all
    systems, bring the judges' shares to those of people, both centred within each system. The rate
    is the mean over all samples of `X beta`, and the mean over ranked samples of `h - X beta`.
    `regression` weighs each judge, by least squares from 30 ranked samples on, else with a ridge
    penalty (Hoerl, Kennard and Baldwin 1975). `ppi` weighs their mean share as PPI++ does
    (Angelopoulos, Duchi and Zrnic 2023). Standard errors come from residuals of each ranked sample
    by weights fitted without it, with the correction for a finite number of samples; intervals use
    Student's t.

    Args:
        ratings: As for `win_rate`.
        human: Rows with sample_id, rater, system, and rank (1 is best, equal ranks are ties) or
            score (higher is better).
        protocol: `corrected`; the published arithmetic knows no such thing.
        method: `regression` or `ppi`.
        rubric: The rubric whose ratings are read.
        judges: Every judge's name, in the order of the result; alphabetical when null.
        confidence: Of the intervals, between 0 and 1.

    Returns:
        The corrected rates with their intervals, beside those of people and of judges alone.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: Fewer than 10 rated samples are ranked, fewer than two systems are both rated
            and ranked, or a choice is none of those there are.

    Examples:
        >>> both = [(f"{at:02}", system) for at in range(40) for system in "ab"]
        >>> keys = {"sample_id": [one for one, _ in both], "system": [system for _, system in both]}
        >>> judged = {**keys, "judge": ["j"] * 80, "rating": [5, 4] * 30 + [4, 5] * 10}
        >>> people = {**{name: column[:60] for name, column in keys.items()}, "rater": ["ada"] * 60}
        >>> found = human_corrected(judged, {**people, "rank": [1, 2] * 15 + [2, 1] * 15})
        >>> found.people_alone["a"], found.judges_alone["a"], round(found.win_rate["a"], 3)
        (0.5, 0.75, 0.5)
    """
    if protocol != "corrected":
        raise ScoreError(f"protocol is {protocol!r}: expected 'corrected', which alone has people")
    if method not in get_args(Method):
        raise ScoreError(unknown("method", method, get_args(Method)))
    check_probabilities(confidence=confidence)
    is_read = isinstance(ratings, RatingTable)
    table = ratings if is_read else read_ratings(ratings, rubric=rubric, judges=judges)
    complete_table, people = table.complete, read_human(human)
    table = complete_table if complete_table.judges else table.part
    systems = [name for name in table.systems if name in people.systems]
    if len(systems) < 2:
        raise ScoreError(
            f"people ranked {list(people.systems)!r}, judges rated {list(table.systems)!r}: "
            "expected two systems or more in both"
        )
    rated = table.ratings[:, [table.systems.index(name) for name in systems]]
    won_points, possible = (
        points.sum(axis=0) for points in _count_points(-people.select(systems, table.samples))
    )
    targets = np.ascontiguousarray(divide(won_points, possible).T)
    if (count := int((~np.isnan(targets)).any(axis=1).sum())) < MIN_SAMPLES:
        raise ScoreError(
            f"people ranked {count} of {len(targets)} rated samples: expected {MIN_SAMPLES} or "
            f"more, so rank {MIN_SAMPLES - count} more"
        )
    estimate = estimate_rates(divide(*_count_points(rated)), targets, method)
    rate, has_rate = label(systems, estimate.rates), ~np.isnan(estimate.rates)
    order = best_first(rate)
    reasons = {name: Unscored.FEW_SAMPLES for name in order if rate[name] is None}
    for name in sorted({*table.systems, *people.systems} - {*systems}):
        reasons[name] = Unscored.NOT_RANKED if name in table.systems else Unscored.NOT_RATED
        order.append(name)

    def in_order(values: Floats) -> dict[str, float | None]:
        value_by_system = label(systems, values)
        return {name: value_by_system.get(name) for name in order}

    ends = dict(zip(systems, estimate.compute_intervals(confidence, others=False), strict=True))
    weighted_judges = table.judges if method == "regression" else (MEAN,)
    return HumanCorrected(
        win_rate=in_order(estimate.rates),
        interval={name: ends.get(name) for name in order},
        standard_error=in_order(estimate.standard_errors(others=False)),
        judges_alone=in_order(estimate.shares.mean(axis=(0, 2))),
        people_alone=in_order(nan_mean(targets)),
        beta=dict(zip(weighted_judges, estimate.beta.tolist(), strict=True)),
        rho2=estimate.rho2,
        effective_n=in_order(estimate.effective_n),
        ranked=count,
        samples=len(targets),
        reasons=reasons,
        definition={
            "measure": "human_corrected",
            "protocol": protocol,
            "method": method,
            "rubric": rubric,
            "judges": list(table.judges),
            "raters": list(people.raters),
            "confidence": confidence,
            "ridge": estimate.ridge,
            "ranked_elsewhere": len({*people.samples} - {*table.samples}),
        },
        _spread=float(np.max(estimate.spread[has_rate], initial=-np.inf))
        if has_rate.any()
        else np.nan,
    )


def _count_points(values: Floats) -> Points:
    """Count points from values [rater or judge, system, sample], where higher is better."""
    first, second = list_pairs(values.shape[1])
    return sample_points(to_verdicts(values[:, first] - values[:, second]), values.shape[1])
