"""Win rates of judges on all samples, corrected by what people say of some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from echo_hf._infra.bootstrap import FEWEST_SAMPLES, LEVEL, Interval
from echo_hf._infra.plots import SystemValues, ends_of
from echo_hf.errors import ScoreError, unknown
from echo_hf.reasons import Unscored
from echo_hf.scores.agreement import HumanRanks, read_human
from echo_hf.scores.rating_table import RUBRIC, Floats, RatingTable, divided, read_ratings
from echo_hf.scores.votes import best_first, named, verdicts_of

RIDGE_BELOW = 30  # ranked samples: a penalty keeps fewer from deciding the weights by chance
MEAN = "judges' mean"
# Standard deviation of what judges leave unexplained of one person's shares, in the system where
# it is largest: .19 to .23 for each of three people, three judges, and 2 to 8 systems on 179
# samples; .17 for the mean of the three.
EXPECTED_SPREAD = 0.21
Method = Literal["regression", "ppi"]


@dataclass(frozen=True)
class HumanCorrected(SystemValues):
    """Win rates as people would see them on all samples.

    Attributes:
        win_rate: Corrected share of the points that each system wins from the others; higher is
            better, about 0 to 1: not clipped. Null where there is none.
        interval: Lower and upper end at the confidence asked for; null where there is none.
        standard_error: Of the corrected rates.
        judges_alone: The rates by the judges' mean share, on all samples.
        people_alone: The rates by people, on the samples that they ranked.
        beta: Weight of each judge's share; for `ppi` of their mean.
        rho2: Share of what people see differently in samples of one system that the judges'
            shares explain, on samples left out; below 0 they explain nothing.
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

    def _columns(self) -> Mapping[str, Mapping[str, Any]]:
        ends = {**ends_of(self.interval), "standard_error": self.standard_error}
        beside = {"judges_alone": self.judges_alone, "people_alone": self.people_alone}
        return {"win_rate": self.win_rate, **ends, **beside, "reason": self.reasons}

    def n_for(self, width: float) -> int | None:
        """How many samples people have to rank, those ranked included, for narrow intervals.

        Args:
            width: Half of an interval that no system's should be wider than, such as 0.03.

        Returns:
            The number, at most all samples, whose ranking leaves no doubt; null where no system
            has an interval.

        Raises:
            ScoreError: The width is not above 0.
        """
        found = ranked_needed(width, self.samples, self._spread, self.definition["confidence"])
        return None if np.isnan(self._spread) else found

    def as_json(self) -> dict[str, Any]:
        """The result as a dict that JSON can hold."""
        return {name: value for name, value in vars(self).items() if name[0] != "_"}


def ranked_needed(
    width: float, samples: int, spread: float = EXPECTED_SPREAD, confidence: float = LEVEL
) -> int:
    """How many samples people have to rank for intervals of ±`width`, with people's own spread."""
    if not width > 0:
        raise ScoreError(f"width is {width!r}: expected half an interval, such as 0.03")
    if samples <= FEWEST_SAMPLES:
        return samples
    counts = np.arange(FEWEST_SAMPLES, samples)
    half = _t_quantile(counts - 1, confidence) * spread * np.sqrt(1 / counts - 1 / samples)
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
    """Estimates the win rates that people would give on all samples, from those they ranked.

    Judges rate every sample, people rank some, drawn without looking at them. A system's share in a
    sample is the mean over its opponents of 1 for a win, 0.5 for a tie, 0 for a loss: `h` by
    people, over all who ranked the sample, and `X` by each judge. Weights `beta` bring the judges'
    shares to those of people on the ranked samples, both centred within each system, with the same
    weights for all systems. The rate is the mean over all samples of `X beta`, and the mean over
    ranked samples of `h - X beta`: what judges get wrong is corrected, not trusted. `regression`
    weighs each judge, by least squares from 30 ranked samples on, else with a ridge penalty (Hoerl,
    Kennard and Baldwin 1975). `ppi` weighs their mean share as PPI++ does (Angelopoulos, Duchi and
    Zrnic 2023). Standard errors come from residuals of each ranked sample by weights fitted without
    it, with the correction for a finite number of samples; intervals use Student's t.

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
        The rates beside those of judges alone and of people alone.

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
        raise ScoreError(
            f"protocol is {protocol!r}: expected 'corrected', which alone knows people"
        )
    if method not in get_args(Method):
        raise ScoreError(unknown("method", method, get_args(Method)))
    if not 0 < confidence < 1:
        raise ScoreError(f"confidence is {confidence!r}: expected a number such as 0.95")
    is_read = isinstance(ratings, RatingTable)
    table = ratings if is_read else read_ratings(ratings, rubric=rubric, judges=judges)
    people = read_human(human)
    systems = [name for name in table.systems if name in people.systems]
    if len(systems) < 2:
        raise ScoreError(
            f"people ranked {list(people.systems)!r}, judges rated {list(table.systems)!r}: "
            "expected two systems or more in both"
        )
    shares, said = _shares(table, people, systems)
    ranked = ~np.isnan(said).all(axis=1)
    if (count := int(ranked.sum())) < FEWEST_SAMPLES:
        raise ScoreError(
            f"people ranked {count} of the rated samples: expected {FEWEST_SAMPLES} or more, so "
            f"rank {FEWEST_SAMPLES - count} more"
        )
    if method == "ppi":
        shares = shares.mean(axis=2, keepdims=True)
    fit = _fitted(shares[ranked], said[ranked], shares, method)
    counts = (~np.isnan(said)).sum(axis=0)
    enough = counts >= FEWEST_SAMPLES
    rates = shares.mean(axis=0) @ fit.beta
    rates += _mean(said[ranked] - shares[ranked] @ fit.beta)
    spread = np.sqrt(_variance(fit.residuals))
    errors = spread * np.sqrt(1 / np.maximum(counts, 1) - 1 / len(said))
    half = _t_quantile(counts - 1, confidence) * errors
    rates, errors = np.where(enough, rates, np.nan), np.where(enough, errors, np.nan)
    rate = named(systems, rates)
    order = best_first(rate)
    either = sorted({*table.systems, *people.systems} - {*systems})
    reasons = {name: Unscored.FEW_SAMPLES for name in order if rate[name] is None}
    for name in either:
        reasons[name] = Unscored.NOT_RANKED if name in table.systems else Unscored.NOT_RATED

    def by_system(values: Floats) -> dict[str, float | None]:
        known = named(systems, values)
        return {name: known.get(name) for name in (*order, *either)}

    ends = {
        name: None if rate[name] is None else (float(low), float(high))
        for name, low, high in zip(systems, rates - half, rates + half, strict=True)
    }
    weighed = table.judges if method == "regression" else (MEAN,)
    return HumanCorrected(
        win_rate=by_system(rates),
        interval={name: ends.get(name) for name in (*order, *either)},
        standard_error=by_system(errors),
        judges_alone=by_system(shares.mean(axis=(0, 2))),
        people_alone=by_system(_mean(said)),
        beta=dict(zip(weighed, fit.beta.tolist(), strict=True)),
        rho2=fit.rho2,
        effective_n=by_system(counts * divided(_variance(said), spread**2)),
        ranked=count,
        samples=len(said),
        reasons=reasons,
        definition={
            "measure": "human_corrected",
            "protocol": protocol,
            "method": method,
            "rubric": rubric,
            "judges": list(table.judges),
            "raters": list(people.raters),
            "confidence": confidence,
            "ridge": fit.ridge,
            "ranked_elsewhere": len({*people.samples} - {*table.samples}),
        },
        _spread=float(np.max(spread[enough], initial=-np.inf)) if enough.any() else np.nan,
    )


def _shares(
    table: RatingTable, people: HumanRanks, systems: Sequence[str]
) -> tuple[Floats, Floats]:
    """Shares by judges [sample, system, judge], and by people [sample, system]."""
    rated = table.ratings[:, [table.systems.index(name) for name in systems]]
    won, count = _points(rated)
    by_judge = divided(won, count)
    with np.errstate(invalid="ignore"):
        means = divided(np.nansum(by_judge, axis=2), (~np.isnan(by_judge)).sum(axis=2))
    # A judge who never compared a system says nothing of it.
    means = np.where(np.isnan(means), 0.5, means)
    by_judge = np.where(np.isnan(by_judge), means[:, :, None], by_judge)
    ranks = people.ranks[:, [people.systems.index(name) for name in systems]]
    won, count = (one.sum(axis=0) for one in _points(-ranks))
    place = {name: at for at, name in enumerate(people.samples)}
    at = np.array([place.get(name, -1) for name in table.samples])
    padded = np.pad(divided(won, count), ((0, 0), (0, 1)), constant_values=np.nan)
    return np.transpose(by_judge, (2, 1, 0)), padded[:, at].T


def _points(values: Floats) -> tuple[Floats, Floats]:
    """Points that each system wins from the others, and comparisons [who, system, sample]."""
    won, count = np.zeros(values.shape), np.zeros(values.shape)
    for system in range(values.shape[1]):
        verdicts = verdicts_of(values[:, [system]] - np.delete(values, system, axis=1))
        won[:, system] = np.nansum((verdicts + 1) / 2, axis=1)
        count[:, system] = (~np.isnan(verdicts)).sum(axis=1)
    return won, count


def _mean(values: Floats) -> Floats:
    return divided(np.nansum(values, axis=0), (~np.isnan(values)).sum(axis=0))


def _variance(values: Floats) -> Floats:
    around = np.nansum((values - _mean(values)) ** 2, axis=0)
    return divided(around, (~np.isnan(values)).sum(axis=0) - 1)


class _Fit(NamedTuple):
    beta: Floats
    residuals: Floats  # [ranked sample, system], each by weights fitted without that sample
    rho2: float | None
    ridge: float


def _fitted(shares: Floats, said: Floats, every: Floats, method: Method) -> _Fit:
    there = ~np.isnan(said)
    counts = np.maximum(there.sum(axis=0), 1)
    weight = there[:, :, None]
    x = np.where(weight, shares - (shares * weight).sum(axis=0) / counts[:, None], 0.0)
    y = np.where(there, said - _mean(said), 0.0)
    # What leaving a sample out takes from sums around the mean, which moves as well.
    moved = counts / np.maximum(counts - 1, 1)
    gram, gave = np.einsum("isj,isk->jk", x, x), np.einsum("isj,is->j", x, y)
    grams = gram - np.einsum("s,isj,isk->ijk", moved, x, x)
    gaves = gave - np.einsum("s,isj,is->ij", moved, x, y)
    ridge = 0.0
    if method == "regression":
        if len(said) < RIDGE_BELOW:
            ridge = _ridge(x, y, gram, gave, int(there.sum()) - there.shape[1])
        penalty = ridge * np.eye(len(gram))
        beta = _solved(gram + penalty, gave)
        left_out = _solved(grams + penalty, gaves)
    else:
        beta, left_out = (
            _power_tuned(gave, len(said), every),
            _power_tuned(gaves, len(said) - 1, every),
        )
    residuals = said - np.einsum("isj,ij->is", shares, left_out)
    around = residuals - _mean(residuals)
    total = float((y**2).sum())
    rho2 = 1 - float(np.nansum(around**2)) / total if total else None
    return _Fit(beta, residuals, rho2, ridge)


def _solved(grams: Floats, gaves: Floats) -> Floats:
    # A judge who says the same of all has no weight.
    found: Floats = np.einsum("...jk,...k->...j", np.linalg.pinv(grams, hermitian=True), gaves)
    return found


def _ridge(x: Floats, y: Floats, gram: Floats, gave: Floats, free: int) -> float:
    beta = _solved(gram, gave)
    noise = float(((y - x @ beta) ** 2).sum()) / max(free - len(beta), 1)
    size = float(beta @ beta)
    return len(beta) * noise / size if size else 0.0


def _power_tuned(gave: Floats, ranked: int, every: Floats) -> Floats:
    """The weight of PPI++, for a mean over all samples in place of those that nobody ranked."""
    unranked = max(len(every) - ranked, 0)
    variance = float(every[:, :, 0].var(axis=0, ddof=1).sum())
    if not unranked or not variance:
        return np.zeros_like(gave)
    whole = len(every) / unranked
    return np.clip(gave / ranked / variance / whole, 0.0, 1.0) * whole


def _t_quantile(free: Any, confidence: float) -> Floats:
    from scipy.special import stdtrit

    found: Floats = stdtrit(free, (1 + confidence) / 2)
    return found
