"""Win rates weighted by how often each kind of task was asked for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from echo_hf._infra.bootstrap import (
    CELLS_PER_BATCH,
    LEVEL,
    METHOD,
    Bools,
    Floats,
    Interval,
    Unscored,
    check_draws,
    compute_interval,
    generator,
)
from echo_hf._infra.plots import SystemValuesPlot, split_bounds
from echo_hf._infra.summary import SummaryMixin
from echo_hf._infra.text import percent
from echo_hf.errors import ScoreError
from echo_hf.scores import votes
from echo_hf.scores.rating_table import divide
from echo_hf.scores.slices import share_points
from echo_hf.scores.votes import JudgeVotes

FEW_COMPARED = 0.8  # of a system's comparisons, by weight
MIN_DRAWN = 2  # samples of a stratum that is redrawn by itself


@dataclass(frozen=True, repr=False)
class Stratum(SummaryMixin):
    """A kind of task.

    Attributes:
        asked: How often it was asked for.
        weight: Share of all that was asked for, 0 to 1.
        samples: Its rated samples.
    """

    asked: float
    weight: float
    samples: int


@dataclass(frozen=True, repr=False)
class DemandRates(SystemValuesPlot):
    """Win rates in which a kind of task counts as often as it was asked for.

    Attributes:
        win_rate: Rate by system, the best first; null where there is none, `reasons` says why.
        interval: Lower and upper end at 95 %; null where there is none, `reasons` says why.
        effective_n: How many samples of equal weight would tell as much (Kish), by system.
        coverage: Share of a system's possible comparisons that there are, by weight: what the rate
            says nothing of, beside `not_rated`, is the rest.
        strata: Kinds of tasks, those asked for most often first.
        not_rated: Share of what was asked for of which no sample was rated: the rates say nothing
            of it.
        no_stratum: Rated samples whose kind is not known, which do not count.
        reasons: Why a system has no rate, or no interval.
        definition: Every parameter.
    """

    win_rate: Mapping[str, float | None]
    interval: Mapping[str, Interval | None]
    effective_n: Mapping[str, float]
    coverage: Mapping[str, float | None]
    strata: Mapping[str, Stratum]
    not_rated: float
    no_stratum: int
    reasons: Mapping[str, Unscored]
    definition: Mapping[str, Any]

    _label = "win rate, by what people ask for: share of the points won from the others"
    _even = 0.5

    def _table_columns(self) -> Mapping[str, Mapping[str, Any]]:
        beside = {"effective_n": self.effective_n, "coverage": self.coverage}
        ends = split_bounds(self.interval)
        return {"win_rate": self.win_rate, **ends, **beside, "reason": self.reasons}

    @property
    def caveats(self) -> tuple[str, ...]:
        """Sentences of what was asked for and is not rated, and of what is rated and left out."""
        gone = [name for name, row in self.strata.items() if row.asked and not row.samples]
        idle = [name for name, row in self.strata.items() if row.samples and not row.asked]
        narrow = {
            name: share
            for name, share in self.coverage.items()
            if share is not None and 0 < share < FEW_COMPARED
        }
        sentences = []
        if gone:
            lost = f"{percent(self.not_rated)} of what people ask for is not in these rates"
            sentences.append(f"{lost}: no sample was rated of {', '.join(gone)}")
        if idle:
            count = sum(self.strata[name].samples for name in idle)
            sentences.append(
                f"nobody asked for {', '.join(idle)}: rated samples without weight: {count:,}"
            )
        if narrow:
            parts = (f"{name} {percent(share)}" for name, share in narrow.items())
            sentences.append(f"few of what people ask for is compared of {', '.join(parts)}")
        if self.no_stratum:
            sentences.append(f"rated samples left out, as their kind is open: {self.no_stratum:,}")
        return tuple(sentences)

    def as_json(self) -> dict[str, Any]:
        """Return the result as a dict that JSON can hold."""
        strata = {name: asdict(row) for name, row in self.strata.items()}
        return {**vars(self), "strata": strata}


def demand_rates(
    ratings: Any,
    outputs: Any = None,
    *,
    strata: Mapping[str, str | None],
    asked: Mapping[str, float],
    n_boot: int = 1000,
    seed: int = 0,
    **choices: Any,
) -> DemandRates:
    """Weight samples so that each kind of task counts as often as it was asked for.

    Post-stratification: each sample of a stratum has the stratum's share of what was asked for,
    divided by its rated samples. Where every two systems are compared on all samples, a rate is the
    sum over strata of share times win rate there, and its variance that of the shares squared times
    the variance of the stratum's mean: the bootstrap redraws samples within their stratum. A
    stratum of one sample is drawn with the next smaller ones, so that intervals err to the wide
    side. With shares as the samples have them anyway, rates are those of `win_rate`.

    Args:
        ratings: As for `win_rate`.
        outputs: As for `win_rate`.
        strata: By sample its kind; null, or no entry, where it is not known.
        asked: By kind how often it was asked for, 0 or more; 0 for those that are not named.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.
        choices: `protocol`, `missing`, `rubric`, `judges` and `draws`, as for `win_rate`.

    Returns:
        Rates over the kinds that are rated; `not_rated` is the share of the others.

    Raises:
        TableError: As for `win_rate`.
        ScoreError: As for `win_rate`; or a number of `asked` is not finite, or below 0.

    Examples:
        >>> rows = [
        ...     {"sample_id": f"{n}", "system": system, "judge": "j", "rating": rating}
        ...     for n in range(4)
        ...     for system, rating in {"a": 4 if n else 9, "b": 5}.items()
        ... ]
        >>> kinds = {"0": "edit", "1": "text", "2": "text", "3": "text"}
        >>> rates = demand_rates(rows, strata=kinds, asked={"edit": 60, "text": 20, "logo": 20})
        >>> round(rates.win_rate["a"], 3), rates.not_rated, round(rates.effective_n["a"], 2)
        (0.75, 0.2, 1.71)
    """
    for name, number in asked.items():
        if not isinstance(number, int | float) or not 0 <= number < math.inf:
            raise ScoreError(f"asked: {name!r} is {number!r}: expected how often, 0 or more")
    check_draws(n_boot)
    compared = votes.count_votes(ratings, outputs, **choices)
    names, shares = share_points(compared)
    is_rated: Bools = np.asarray(~np.isnan(shares).all(axis=0))
    kinds = [
        strata.get(name) if counts else None for name, counts in zip(names, is_rated, strict=True)
    ]
    rated = Counter(kind for kind in kinds if kind is not None)
    total = sum(asked.values())
    known = {
        kind: Stratum(asked.get(kind, 0), asked.get(kind, 0) / total if total else 0.0, rated[kind])
        for kind in sorted({*asked, *rated}, key=lambda kind: (-asked.get(kind, 0), kind))
    }
    # A mean of 1, so that shares as the samples have them change nothing, not even a last digit.
    covered = sum(row.asked for row in known.values() if row.samples) or 1
    count = sum(rated.values())
    weights = np.array(
        [
            0.0 if kind is None else known[kind].asked * count / (covered * rated[kind])
            for kind in kinds
        ]
    )
    systems = compared.table.systems
    is_own = ~np.isnan(shares)
    effective = divide((weights * is_own).sum(axis=1) ** 2, (weights**2 * is_own).sum(axis=1))
    point = _weigh(compared, weights[None])[0]
    possible, compared_weight = _cover(compared, weights)
    rates = dict(zip(systems, map(votes.to_number, point), strict=True))
    draws = np.concatenate(
        [np.empty((0, len(systems)))]
        + [_weigh(compared, drawn) for drawn in _draw_within(kinds, weights, n_boot, seed)]
    )
    intervals, reasons = dict[str, Interval | None](), dict[str, Unscored]()
    for at, system in enumerate(systems):
        reason: Unscored | None
        if rates[system] is None:
            is_idle = bool(is_own[at].any())
            reason = Unscored.NO_DEMAND if is_idle else compared.why_unrated(system)
            intervals[system] = None
        else:
            ends, reason = compute_interval(draws[:, at], int(effective[at] + 1e-9))
            intervals[system] = ends
        if reason:
            reasons[system] = reason
    rates = votes.by_rate(rates)
    return DemandRates(
        win_rate=rates,
        interval={system: intervals[system] for system in rates},
        effective_n=dict(zip(systems, np.nan_to_num(effective).tolist(), strict=True)),
        coverage=votes.label(systems, divide(compared_weight, possible)),
        strata=known,
        not_rated=sum(row.weight for row in known.values() if not row.samples),
        no_stratum=int(is_rated.sum()) - count,
        reasons=reasons,
        definition=compared.definition(
            "demand_rates",
            interval={"kind": METHOD, "level": LEVEL, "draws": n_boot, "seed": seed},
            drawn="within strata, one sample fewer than a stratum has (Rao and Wu 1988)",
            weights="share of what was asked for, divided by the rated samples of its kind",
        ),
    )


def _weigh(compared: JudgeVotes, weights: Floats) -> Floats:
    """Compute rates [draw, system] from weights [draw, sample]."""
    if compared.estimate:
        values = compared.estimate.sample_values
        rates = divide(weights @ values.T, weights.sum(axis=1, keepdims=True))
        return np.where(np.isnan(compared.estimate.rates), np.nan, rates)
    systems = len(compared.table.systems)
    points = votes.count_points(compared.verdicts, systems, weights)
    return votes.rates_of(points, compared.rule.average)


def _draw_within(
    kinds: Sequence[str | None], weights: Floats, n_boot: int, seed: int
) -> Iterator[Floats]:
    """Yield weights [draw, sample] of samples redrawn within their stratum (Rao and Wu 1988)."""
    members: dict[str, list[int]] = {}
    for position, kind in enumerate(kinds):
        if kind is not None and weights[position]:
            members.setdefault(kind, []).append(position)
    groups = list[list[int]]()
    for own in sorted(members.values(), key=len):
        if groups and len(groups[-1]) < MIN_DRAWN:
            groups[-1] += own
        else:
            groups.append(own)
    if len(groups) > 1 and len(groups[-1]) < MIN_DRAWN:
        groups[-2:] = [groups[-2] + groups[-1]]
    if not groups:
        return
    rng, batch = generator(seed), max(1, CELLS_PER_BATCH // len(weights))
    for start in range(0, n_boot, batch):
        drawn = np.zeros((min(batch, n_boot - start), len(weights)))
        for own in groups:
            # One fewer than there are, or variances would be too small by that share.
            count = max(1, len(own) - 1)
            draws = rng.multinomial(count, np.full(len(own), 1 / len(own)), len(drawn))
            drawn[:, own] = draws * (weights[own] * len(own) / count)
        yield drawn


def _cover(compared: JudgeVotes, weights: Floats) -> tuple[float, Floats]:
    """Return the weight of all possible comparisons of a system, and of those that count."""
    systems = len(compared.table.systems)
    if compared.estimate:
        return 1.0, np.ones(systems)
    counted = votes.count_points(compared.verdicts, systems, weights).compared.sum(axis=-1)
    return float(weights.sum()) * (systems - 1), counted
