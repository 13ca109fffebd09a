"""Win rates by slice of the samples, and what each slice's rate is once chance is taken out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from echo_hf._infra.bootstrap import (
    LEVEL,
    MIN_SAMPLES,
    MIN_SPREAD,
    Bools,
    Floats,
    Interval,
    Unscored,
)
from echo_hf._infra.summary import SummaryMixin
from echo_hf.errors import ScoreError
from echo_hf.scores import votes
from echo_hf.scores.estimate import compute_t_quantile, nan_mean
from echo_hf.scores.rating_table import RatingTable
from echo_hf.scores.votes import JudgeVotes
from echo_hf.scores.win_rate import win_rate

MIN_SLICES = 4  # with fewer, how slices differ is a guess
SHRINKAGE = "empirical Bayes, normal-normal; variance between slices by DerSimonian and Laird"


@dataclass(frozen=True, repr=False)
class Shrinkage(SummaryMixin):
    """Estimates of several groups, drawn toward their mean as far as chance explains them.

    Attributes:
        mean: Mean of all, by the weights given.
        values: The drawn estimates, in the order given.
        intervals: Lower and upper end of each at 95 %.
        weights: Share of its own estimate in each value, 0 to 1; the rest is the mean.
        variance: Between groups, 0 or more: DerSimonian and Laird's.
    """

    mean: float
    values: tuple[float, ...]
    intervals: tuple[Interval, ...]
    weights: tuple[float, ...]
    variance: float


def shrink(estimates: ArrayLike, variances: ArrayLike, shares: ArrayLike) -> Shrinkage:
    """Draw estimates of groups toward their mean (empirical Bayes, normal-normal).

    With v the variance of a group's estimate y, t that between groups and m the mean, the value is
    m + (y - m) t / (t + v). Its error is the sum of t v / (t + v), of what the mean errs, and twice
    of what t errs (Prasad and Rao 1990, with the variance of DerSimonian and Laird's t by
    Biggerstaff and Tweedie 1997), so that intervals hold on average over groups, also where t is
    found to be 0.

    Args:
        estimates: An estimate for each group, four or more.
        variances: Variance of each estimate, above 0.
        shares: Weight of each group in the mean, such as its number of samples; above 0.

    Returns:
        The values, in the order given.

    Raises:
        ScoreError: The three differ in length, are fewer than four, or are out of range.

    Examples:
        >>> shrunk = shrink([0.8, 0.5, 0.4, 0.3], [0.01] * 4, [1] * 4)
        >>> round(shrunk.variance, 4), [round(value, 3) for value in shrunk.values]
        (0.0367, [0.736, 0.5, 0.421, 0.343])
    """
    y, v, a = (np.asarray(values, dtype=float) for values in (estimates, variances, shares))
    is_whole = y.ndim == 1 and y.shape == v.shape == a.shape and len(y) >= MIN_SLICES
    if not is_whole or not np.isfinite([y, v, a]).all() or not (np.minimum(v, a) > 0).all():
        raise ScoreError(
            f"{np.size(y)} estimates, {np.size(v)} variances, {np.size(a)} shares: expected "
            f"{MIN_SLICES} or more of each, finite, variances and shares above 0"
        )
    w, a = 1 / v, a / a.sum()
    excess = (w * (y - np.average(y, weights=w)) ** 2).sum() - (len(y) - 1)
    scale = w.sum() - (w**2).sum() / w.sum()
    between = max(0.0, float(excess / scale))
    total = v + between
    mean, own = float(a @ y), between / total
    of_excess = (w**2 * total**2).sum() - 2 * (w**3 * total**2).sum() / w.sum()
    of_excess = 2 * (of_excess + ((w**2 * total).sum() / w.sum()) ** 2)
    error = own * v + (1 - own) ** 2 * (a**2 @ total) + 2 * v**2 / total**3 * of_excess / scale**2
    values = mean + own * (y - mean)
    half = float(compute_t_quantile(np.inf, LEVEL)) * np.sqrt(error)
    ends = zip((values - half).tolist(), (values + half).tolist(), strict=True)
    return Shrinkage(mean, tuple(values.tolist()), tuple(ends), tuple(own.tolist()), between)


@dataclass(frozen=True, repr=False)
class SliceRate(SummaryMixin):
    """Win rates on the samples of a slice.

    Attributes:
        samples: How many of its samples compare any two systems.
        win_rate: Rate by system, as `win_rate` of these samples alone; null with fewer than 10.
        interval: Lower and upper end at 95 %, by the bootstrap over these samples.
        shrunk: The rate without what chance explains, drawn toward the system's rate over all
            slices; null where the slices do not say how they differ.
        shrunk_interval: Lower and upper end at 95 %, kept within 0 and 1.
        reasons: Why a system has no rate here, or no interval.
    """

    samples: int
    win_rate: Mapping[str, float | None]
    interval: Mapping[str, Interval | None]
    shrunk: Mapping[str, float | None]
    shrunk_interval: Mapping[str, Interval | None]
    reasons: Mapping[str, Unscored]

    @property
    def best(self) -> dict[str, float | None]:
        """The shrunken rate of each system, or the plain one where there is none."""
        drawn = self.shrunk.items()
        return {name: self.win_rate[name] if rate is None else rate for name, rate in drawn}


@dataclass(frozen=True, repr=False)
class SliceRates(SummaryMixin):
    """Win rates by slice.

    Attributes:
        slices: By name, the largest first.
        spread: Standard deviation of a system's true rates between slices; null where `reasons`
            says why nothing is shrunk.
        reasons: Why a system's rates are not shrunk.
        no_value: Rated samples that are in no slice.
        definition: Every parameter.
    """

    slices: Mapping[str, SliceRate]
    spread: Mapping[str, float | None]
    reasons: Mapping[str, Unscored]
    no_value: int
    definition: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the result as a dict that JSON can hold."""
        return {**vars(self), "slices": {name: vars(row) for name, row in self.slices.items()}}


def slice_rates(
    ratings: Any,
    outputs: Any = None,
    *,
    values: Mapping[str, Collection[str]],
    n_boot: int = 1000,
    seed: int = 0,
    **choices: Any,
) -> SliceRates:
    """Compute win rates on each slice of the samples, and shrink them toward the whole.

    A sample with several values, such as several doubts, counts in the slice of each. A slice is
    scored as if nothing else had been rated. With the variance of a system's share of the points
    between samples of one slice, pooled over slices, `shrink` then takes out what chance explains.

    Args:
        ratings: As for `win_rate`.
        outputs: As for `win_rate`.
        values: By sample the names of its slices; none, or no entry, for a sample in no slice.
        n_boot: Draws of the bootstrap in each slice; 0 for none.
        seed: Of the draws.
        choices: `protocol`, `missing`, `rubric`, `judges` and `draws`, as for `win_rate`.

    Returns:
        The rates of each slice. One with fewer than 10 samples has a reason instead, and shrunken
        rates need four slices that have a rate.

    Raises:
        TableError: As for `win_rate`.
        ScoreError: As for `win_rate`.

    Examples:
        >>> rows = [
        ...     {"sample_id": f"{n}", "system": system, "judge": "j", "rating": rating}
        ...     for n in range(20)
        ...     for system, rating in {"a": 9 if n < 15 else 4, "b": 5}.items()
        ... ]
        >>> kinds = {f"{n}": ["edit" if n < 10 else "text"] for n in range(20)}
        >>> rates = slice_rates(rows, values=kinds, n_boot=0)
        >>> {name: row.win_rate["a"] for name, row in rates.slices.items()}
        {'edit': 1.0, 'text': 0.5}
        >>> rates.reasons["a"].value  # two slices do not say how slices differ
        'few_slices'
    """
    compared = votes.count_votes(ratings, outputs, **choices)
    names, shares = share_points(compared)
    is_rated: Bools = np.asarray(~np.isnan(shares).all(axis=0))
    members: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        for value in dict.fromkeys(values.get(name, ())) if is_rated[position] else ():
            members.setdefault(value, []).append(position)
    order = sorted(members, key=lambda value: (-len(members[value]), value))
    options: dict[str, Any] = {"protocol": compared.protocol, "missing": compared.missing}
    options |= {"n_boot": n_boot, "seed": seed, "rubric": compared.rubric}
    scored = {}
    for value in order:
        chosen = {names[position] for position in members[value]}
        scored[value] = score_samples(select_samples(compared.full, chosen), options)
    systems = compared.table.systems
    shrunk = dict[str, dict[str, tuple[float, Interval]]]()
    spread, reasons = dict[str, float | None](), dict[str, Unscored]()
    for system, row in zip(systems, shares, strict=True):
        rates = {name: rate for name in order if (rate := scored[name][0].get(system)) is not None}
        groups = [row[members[name]] for name in rates]
        result = _shrink_system(list(rates.values()), [own[~np.isnan(own)] for own in groups])
        spread[system] = None
        if isinstance(result, Unscored):
            reasons[system] = result
            continue
        spread[system] = float(np.sqrt(result.variance))
        for name, drawn, (low, high) in zip(rates, result.values, result.intervals, strict=True):
            ends = max(low, 0.0), min(high, 1.0)
            shrunk.setdefault(name, {})[system] = min(max(drawn, 0.0), 1.0), ends
    rows = {}
    for name in order:
        own_rates, intervals, why = scored[name]
        estimates = {system: shrunk.get(name, {}).get(system, (None, None)) for system in own_rates}
        rows[name] = SliceRate(
            len(members[name]),
            own_rates,
            intervals,
            {system: value for system, (value, _) in estimates.items()},
            {system: ends for system, (_, ends) in estimates.items()},
            why,
        )
    definition = compared.definition(
        "slice_rates",
        interval={"kind": compared.rule.interval, "level": LEVEL, "draws": n_boot, "seed": seed},
        shrinkage=SHRINKAGE,
        fewest_samples=MIN_SAMPLES,
        fewest_slices=MIN_SLICES,
    )
    lost = int(is_rated.sum()) - len({at for positions in members.values() for at in positions})
    return SliceRates(rows, votes.by_rate(spread), reasons, lost, definition)


def share_points(compared: JudgeVotes) -> tuple[Sequence[str], Floats]:
    """Return sample names, and values [system, sample] whose mean is a system's rate.

    The mean of shares is the rate where every two systems are compared on the same samples.
    """
    if compared.estimate:
        return compared.full.samples, compared.estimate.sample_values
    return compared.table.samples, compared.compute_shares(compared.verdicts)


def select_samples(table: RatingTable, names: Collection[str]) -> RatingTable:
    return table.of_samples(np.array([name in names for name in table.samples], dtype=bool))


Scored = tuple[dict[str, float | None], dict[str, Interval | None], dict[str, Unscored]]


def score_samples(table: RatingTable, options: Mapping[str, Any]) -> Scored:
    """Return rates, intervals and reasons by system on these samples; fewer than 10 have none."""
    if len(table.part.samples) < MIN_SAMPLES:
        few = dict.fromkeys(table.systems, Unscored.FEW_SAMPLES)
        return dict.fromkeys(few), dict.fromkeys(few), few
    result = win_rate(table, **options)
    own = {name: options[name] for name in ("protocol", "missing", "rubric") if name in options}
    counts = zip(table.systems, votes.count_votes(table, **own).sample_counts, strict=True)
    few = {name: Unscored.FEW_SAMPLES for name, count in counts if 0 < count < MIN_SAMPLES}
    rates, intervals = dict(result.win_rate), dict(result.interval)
    for name in few:
        rates[name] = intervals[name] = None
    return votes.by_rate(rates), intervals, {**result.reasons, **few}


def _shrink_system(rates: Sequence[float], groups: Sequence[Floats]) -> Shrinkage | Unscored:
    if len(rates) < MIN_SLICES:
        return Unscored.FEW_SLICES
    sizes = np.array([len(group) for group in groups])
    within = sum(float(((group - nan_mean(group)) ** 2).sum()) for group in groups)
    variance = within / (sizes - 1).sum()
    if variance < MIN_SPREAD:
        return Unscored.NO_SPREAD
    return shrink(rates, variance / sizes, sizes)
