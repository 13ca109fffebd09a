"""Tests whether systems do better on samples that they could have been trained on."""

from __future__ import annotations

import calendar
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from echo_hf._infra.bootstrap import LEVEL, MAX_DRAWS, Interval, generator
from echo_hf._infra.plots import SystemValuesPlot, split_bounds
from echo_hf.errors import ScoreError
from echo_hf.reasons import Reason
from echo_hf.scores.certificate import adjust_p_values
from echo_hf.scores.estimate import compute_t_quantile
from echo_hf.scores.rating_table import Bools, Floats, divide, read_columns
from echo_hf.scores.votes import best_first, count_votes, sample_points
from echo_hf.tables import BOOLEAN, RATINGS, Column

MIN_SAMPLES = 50  # of either kind; fewer show only what nobody would miss
MIN_RATED = 45  # of them by each system, which may have failed at a few
GAINS = (3, 5, 10)  # points of the win share
POWER_DRAWS, CELLS = 500, 1_000_000
RATED_SAMPLES = RATINGS.add_columns({"sealed": Column(BOOLEAN, "whether it is held back")})


class Untested(Reason):
    """Why a system is not tested for having been trained on samples."""

    NOT_COMPARED = "not_compared", "no judge rated it beside another system"
    FEW_SEALED = "few_sealed", "fewer than 50 sealed samples were rated"
    FEW_PUBLIC = "few_public", "fewer than 50 public samples were rated"
    NO_DATE = "no_date", "it is not known until when it was trained"
    FEW_BEFORE = "few_before", "fewer than 50 rated samples are from before its date"
    FEW_AFTER = "few_after", "fewer than 50 rated samples are from after its date"
    NO_TREND = "no_trend", "samples of too few days tell no step from a trend"


class Power(NamedTuple):
    """The share of cases in which a lead would raise the alarm.

    Attributes:
        alone: Where that system is the only one tested.
        together: Where all that were rated are tested.
    """

    alone: float
    together: float


@dataclass(frozen=True, repr=False)
class Contamination(SystemValuesPlot):
    """By how much systems do better on samples that they could have been trained on.

    Attributes:
        lead: By system, the largest first: its share of the points won from the others on public
            samples minus that on sealed ones; of dates, the step down after its date. Null where
            `refused` says why.
        interval: Lower and upper end of it.
        p: Probability of such a lead by chance, for each system alone.
        adjusted: The same for all systems together: of the largest lead of any.
        power: By points of the share what would be seen; empty where nothing can be said.
        alarm: Whether an adjusted p is at most 1 minus the confidence; null where none is tested.
        refused: Why a system is not tested.
        definition: Every parameter.
    """

    lead: Mapping[str, float | None]
    interval: Mapping[str, Interval | None]
    p: Mapping[str, float | None]
    adjusted: Mapping[str, float | None]
    power: Mapping[int, Power]
    alarm: bool | None
    refused: Mapping[str, Untested]
    definition: Mapping[str, Any]

    _label = "lead on samples that it could have been trained on, as a share of points"
    _even = 0.0

    def _table_columns(self) -> Mapping[str, Mapping[str, Any]]:
        beside = {"p": self.p, "adjusted": self.adjusted, "reason": self.refused}
        return {"lead": self.lead, **split_bounds(self.interval), **beside}

    def as_json(self) -> dict[str, Any]:
        """Return the result as a dict that JSON can hold."""
        power = {str(points): shares._asdict() for points, shares in self.power.items()}
        return {**vars(self), "power": power}


def contamination(
    ratings: Any,
    *,
    sealed: Collection[str] | None = None,
    confidence: float = LEVEL,
    n_resamples: int = 999,
    seed: int = 0,
) -> Contamination:
    """Test whether systems do better on public samples than on sealed ones.

    What counts is a system's share of the points won from its peers on each sample, so that sealed
    samples may be harder, as long as they are as much so for all: draw them by chance. The labels
    public and sealed are exchanged between samples; the adjusted p compares with the largest
    studentized lead of any system. What the test would see is found by planting on these rows:
    public samples, drawn by chance, turn into wins over all peers.

    Args:
        ratings: Rows as for `win_rate`.
        sealed: Identifiers of the sealed samples; null where the rows have a column `sealed`.
        confidence: Of the intervals; 1 minus it is the level of the alarm.
        n_resamples: How often the labels are exchanged.
        seed: Of all draws.

    Returns:
        Leads with their p values, and what would have been seen; with fewer than 50 sealed samples
        that alone.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: Ratings contradict each other, or a choice is none of those there are.

    Examples:
        >>> names, rated = [f"{at:03}" for at in range(300)], [6, 4] * 100 + [4, 6, 4, 4] * 25
        >>> rows = {"sample_id": names * 2, "system": ["a"] * 300 + ["b"] * 300}
        >>> rows |= {"judge": ["j"] * 600, "rating": rated + [5] * 300}
        >>> result = contamination(rows, sealed=names[200:])
        >>> result.lead["a"], result.adjusted["a"], result.alarm
        (0.25, 0.001, True)
    """
    _check(confidence, n_resamples)
    rng, columns = generator(seed), None
    if sealed is None:
        columns = read_columns(ratings, RATED_SAMPLES, ("sample_id", "sealed"))
        marks = columns.group_by("sample_id").aggregate([("sealed", "min"), ("sealed", "max")])
        for row in marks.filter(pc.not_equal(marks["sealed_min"], marks["sealed_max"])).to_pylist():
            raise ScoreError(
                f"ratings: sample {row['sample_id']!r} is sealed in one row and public in another: "
                "expected the same in all"
            )
        sealed = marks.filter(marks["sealed_max"])["sample_id"].to_pylist()
    elif isinstance(sealed, str):
        raise ScoreError(f"sealed is {sealed!r}: expected identifiers of samples, such as a list")
    systems, samples, shares = _compute_shares(ratings)
    is_sealed = np.isin(samples, [*sealed])
    rated = ~np.isnan(shares)
    counts = {at: (rated & (is_sealed == at)).sum(axis=1) for at in (True, False)}
    refused: dict[str, Untested] = {}
    sizes = {at: int((rated.any(axis=0) & (is_sealed == at)).sum()) for at in counts}
    for number, name in enumerate(systems):
        is_few = {at: sizes[at] < MIN_SAMPLES or counts[at][number] < MIN_RATED for at in counts}
        if not rated[number].any():
            refused[name] = Untested.NOT_COMPARED
        elif any(is_few.values()):
            refused[name] = Untested.FEW_SEALED if is_few[True] else Untested.FEW_PUBLIC
    studied = np.minimum(counts[True], counts[False]) > 1
    power, draws = dict[int, Power](), np.empty((0, 0))
    if studied.any():
        draws = np.vstack(
            [
                _studentize(shares[studied], rng.permuted(np.tile(is_sealed, (count, 1)), axis=1))
                for count in np.diff([*range(0, n_resamples, 100), n_resamples])
            ]
        )
        power = _plant(shares[studied], is_sealed, draws, confidence, rng)
    tested = np.array([name not in refused for name in systems])
    leads, errors, freedom = _compare_parts(shares, is_sealed[None])
    half = compute_t_quantile(freedom[0], confidence) * errors[0]
    values = _studentize(shares, is_sealed[None])[0]
    null = draws[:, tested[studied]] if tested.any() else np.empty((n_resamples, 0))
    largest = null.max(axis=1, initial=-np.inf)
    # What was seen is one of the draws, so that no p is 0.
    alone = (1 + (null >= values[tested] - 1e-9).sum(axis=0)) / (n_resamples + 1)
    together = (1 + (largest[:, None] >= values[tested] - 1e-9).sum(axis=0)) / (n_resamples + 1)
    return _build(
        [name for name in systems if name not in refused],
        np.array([leads[0], half])[:, tested],
        (alone.tolist(), together.tolist()),
        power,
        refused,
        confidence,
        {
            "test": "exchange of the labels public and sealed, the largest studentized lead",
            "resamples": n_resamples,
            "seed": seed,
            "sealed": int(is_sealed.sum()),
            "public": int((~is_sealed).sum()),
        },
    )


def dated_contamination(
    ratings: Any, dates: Mapping[str, Any], trained: Mapping[str, Any], *, confidence: float = LEVEL
) -> Contamination:
    """Test whether systems do better on samples from before a date of theirs than after it.

    A step down at the date is fitted beside a straight trend, by least squares with errors that
    hold for any spread (HC3); p values are adjusted by Holm's method. It sees less than sealed
    samples do: of 800 samples a lead of 10 points, in 8 of 10 cases.

    Args:
        ratings: Rows as for `win_rate`.
        dates: The day of each sample: a date, or text such as `2026-05-31`; null where unknown.
        trained: Until when each system was trained, in the same form; `2026-05` is that whole
            month. Systems without one are not tested, and are peers of the others.
        confidence: Of the intervals; 1 minus it is the level of the alarm.

    Returns:
        The steps, with what would have been seen.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: Ratings contradict each other, or a date is none.

    Examples:
        >>> names, rated = [f"{at:03}" for at in range(120)], [6, 4, 6] * 20 + [4, 6, 4] * 20
        >>> rows = {"sample_id": names * 2, "system": ["a"] * 120 + ["b"] * 120}
        >>> rows |= {"judge": ["j"] * 240, "rating": rated + [5] * 120}
        >>> days = {name: f"2026-0{1 + at // 30}-{1 + at % 28:02}" for at, name in enumerate(names)}
        >>> result = dated_contamination(rows, days, {"a": "2026-02"})
        >>> round(result.lead["a"], 2), result.refused["b"].value
        (0.32, 'no_date')
    """
    _check(confidence, 1)
    systems, samples, shares = _compute_shares(ratings)
    days = np.array([_to_day("sample", name, dates.get(name)) for name in samples])
    refused, tested, p_values = dict[str, Untested](), list[str](), list[float]()
    steps, errors = list[tuple[float, float]](), list[float]()
    for name, row in zip(systems, shares, strict=True):
        limit = _to_day("system", name, trained.get(name))
        known = ~np.isnan(row) & ~np.isnan(days)
        before, years = days[known] <= limit, (days[known] - limit) / 365
        if np.isnan(row).all():
            refused[name] = Untested.NOT_COMPARED
        elif math.isnan(limit):
            refused[name] = Untested.NO_DATE
        elif min(before.sum(), (~before).sum()) < MIN_SAMPLES:
            is_early = before.sum() < MIN_SAMPLES
            refused[name] = Untested.FEW_BEFORE if is_early else Untested.FEW_AFTER
        else:
            design = np.column_stack([before, np.ones(len(years)), years]).astype(float)
            if np.linalg.matrix_rank(design) < 3:
                refused[name] = Untested.NO_TREND
                continue
            inverse = np.linalg.inv(design.T @ design)
            effects = inverse @ design.T @ row[known]
            leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
            weighted = design * ((row[known] - design @ effects) / (1 - leverage))[:, None]
            error = math.sqrt((inverse @ weighted.T @ weighted @ inverse)[0, 0])
            steps.append(
                (effects[0], float(compute_t_quantile(len(years) - 3, confidence)) * error)
            )
            p_values.append(_upper_tail(effects[0] / max(error, 1e-12), len(years) - 3))
            errors.append(error)
            tested.append(name)
    from scipy.special import ndtr, ndtri

    levels = [1 - confidence, (1 - confidence) / max(len(tested), 1)]
    power = {
        points: Power(
            *(
                float(ndtr(points / 100 / np.maximum(errors, 1e-12) + ndtri(level)).mean())
                for level in levels
            )
        )
        for points in GAINS
        if tested
    }
    return _build(
        tested,
        np.array(steps).reshape(-1, 2).T,
        (p_values, adjust_p_values(p_values)),
        power,
        refused,
        confidence,
        {
            "test": "step beside a straight trend, HC3 errors, Holm",
            "trained": {name: str(trained[name]) for name in tested},
            "undated": int(np.isnan(days).sum()),
        },
    )


def _check(confidence: float, n_resamples: int) -> None:
    if not 0.5 <= confidence < 1:
        raise ScoreError(f"confidence is {confidence!r}: expected 0.5 to 1, such as 0.95")
    if (
        isinstance(n_resamples, bool)
        or not isinstance(n_resamples, int)
        or not (0 < n_resamples <= MAX_DRAWS)
    ):
        raise ScoreError(f"n_resamples is {n_resamples!r}: expected 1 to {MAX_DRAWS}, such as 999")


def _compute_shares(ratings: Any) -> tuple[tuple[str, ...], tuple[str, ...], Floats]:
    compared = count_votes(ratings)
    points = sample_points(compared.pair_verdicts, len(compared.full.systems))
    return compared.full.systems, compared.full.samples, divide(*points)


def _compare_parts(shares: Floats, sealed: Bools) -> tuple[Floats, Floats, Floats]:
    """Return leads, their errors and degrees of freedom (Welch) [draw, system]."""
    rated, values = (~np.isnan(shares)).T.astype(float), np.nan_to_num(shares).T
    parts = []
    for label in (~sealed, sealed):
        chosen = label.astype(float)
        count, total = chosen @ rated, chosen @ values
        mean = divide(total, count)
        variance = divide(chosen @ values**2 - count * mean**2, (count - 1) * count)
        parts.append((mean, np.maximum(variance, 0), count))
    (public, spread, count), (closed, closed_spread, closed_count) = parts
    both = spread + closed_spread
    freedom = divide(
        both**2, divide(spread**2, count - 1) + divide(closed_spread**2, closed_count - 1)
    )
    return public - closed, np.sqrt(both), np.where(both > 0, freedom, count + closed_count - 2)


def _studentize(shares: Floats, sealed: Bools) -> Floats:
    leads, errors, _ = _compare_parts(shares, sealed)
    return np.where(np.isnan(errors), -np.inf, leads / np.maximum(np.nan_to_num(errors), 1e-12))


def _plant(
    shares: Floats, sealed: Bools, draws: Floats, confidence: float, rng: np.random.Generator
) -> dict[int, Power]:
    """Return how often a gain in the public part of redrawn samples would be seen."""
    limits = np.quantile(draws, confidence, axis=0), np.quantile(draws.max(axis=1), confidence)
    seen: dict[int, list[tuple[float, float]]] = {points: [] for points in GAINS}
    for row, limit in zip(shares, limits[0], strict=True):
        known = ~np.isnan(row)
        values, label = row[known], np.sort(sealed[known])
        public, mean = int((~label).sum()), float(values.mean())
        for points, shares_seen in seen.items():
            cells = rng.choice(
                values, (max(100, min(POWER_DRAWS, CELLS // len(label))), len(label))
            )
            turned = rng.random((len(cells), public)) < points / 100 / max(1 - mean, 1e-9)
            cells[:, :public][turned] = 1.0
            leads = _studentize(cells, label[None])[0]
            shares_seen.append(((leads > limit).mean(), (leads > limits[1]).mean()))
    return {
        points: Power(*np.mean(shares_seen, axis=0).tolist())
        for points, shares_seen in seen.items()
    }


def _upper_tail(value: float, freedom: int) -> float:
    from scipy.special import stdtr

    return float(stdtr(freedom, -value))


def _to_day(kind: str, name: str, value: Any) -> float:
    """Return a day as a number, the last one of a month; NaN for none."""
    if value is None:
        return math.nan
    try:
        if isinstance(value, date):
            return float(value.toordinal())
        if len(value) == len("2026-05"):
            month = date.fromisoformat(f"{value}-01")
            return float(
                month.replace(day=calendar.monthrange(month.year, month.month)[1]).toordinal()
            )
        return float(date.fromisoformat(value[:10]).toordinal())
    except (TypeError, ValueError):
        raise ScoreError(
            f"{kind} {name!r} has the date {value!r}: expected a day such as '2026-05-31', or a "
            "month such as '2026-05'"
        ) from None


def _build(
    tested: Sequence[str],
    figures: Floats,
    p_values: tuple[Sequence[float], Sequence[float | None]],
    power: Mapping[int, Power],
    refused: Mapping[str, Untested],
    confidence: float,
    parameters: Mapping[str, Any],
) -> Contamination:
    leads, halves = (dict(zip(tested, row.tolist(), strict=True)) for row in figures)
    alone, together = (dict(zip(tested, row, strict=True)) for row in p_values)
    names = best_first({**dict.fromkeys(refused), **leads})
    adjusted = [p for p in together.values() if p is not None]
    return Contamination(
        {name: leads.get(name) for name in names},
        {
            name: (leads[name] - halves[name], leads[name] + halves[name])
            if name in leads
            else None
            for name in names
        },
        {name: alone.get(name) for name in names},
        {name: together.get(name) for name in names},
        power,
        min(adjusted) <= 1 - confidence if adjusted else None,
        {name: refused[name] for name in names if name in refused},
        {
            "measure": "contamination",
            "outcome": "share of the points won from peers on a sample",
            "confidence": confidence,
            "least_samples": MIN_SAMPLES,
            "systems": len(names),
            **parameters,
        },
    )
