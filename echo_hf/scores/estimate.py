"""What is known of some samples, estimated on all of them by what judges say of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from echo_hf._infra.bootstrap import FEWEST_SAMPLES, Interval
from echo_hf.scores.rating_table import Floats, divided

RIDGE_BELOW = 30  # known samples: a penalty keeps fewer from deciding the weights by chance
Method = Literal["regression", "ppi"]


@dataclass(frozen=True)
class Estimate:
    """The mean of each system on all samples, NaN where fewer than 10 are known.

    `shares` are those of judges [sample, system, judge], `known` is what they explain [sample,
    system], NaN where nobody knows; `spread` is the standard deviation of what they do not.
    """

    shares: Floats
    known: Floats
    rates: Floats
    spread: Floats
    beta: Floats
    rho2: float | None
    ridge: float

    @property
    def counts(self) -> Floats:
        counted: Floats = (~np.isnan(self.known)).sum(axis=0)
        return counted

    @property
    def effective_n(self) -> Floats:
        """How many known samples would tell as much without judges."""
        return self.counts * divided(variance_known(self.known), self.spread**2)

    @property
    def by_sample(self) -> Floats:
        """Values of each system [system, sample] whose mean is its rate."""
        explained = self.shares @ self.beta
        missed = divided(len(self.known), self.counts) * (self.known - explained)
        return (explained + np.where(np.isnan(missed), 0.0, missed)).T

    def errors(self, *, others: bool) -> Floats:
        """Standard errors of the means on these samples, or on others that are like them."""
        counts, every = np.maximum(self.counts, 1), len(self.known)
        variance = self.spread**2 * (1 / counts - 1 / every)
        variance += variance_known(self.known) / every if others else 0.0
        return np.where(np.isnan(self.rates), np.nan, np.sqrt(variance))

    def ends(self, confidence: float, *, others: bool) -> list[Interval | None]:
        """Student's t around the means."""
        half = t_quantile(self.counts - 1, confidence) * self.errors(others=others)
        every = zip(self.rates - half, self.rates + half, strict=True)
        return [None if np.isnan(low) else (float(low), float(high)) for low, high in every]


def estimated(by_judge: Floats, known: Floats, method: Method = "regression") -> Estimate:
    """From shares of judges [judge, system, sample] and what is known of some [sample, system]."""
    # A judge who never compared a system says nothing of it.
    means = np.nan_to_num(mean_known(by_judge, axis=2), nan=0.5)
    shares = np.where(np.isnan(by_judge), means[:, :, None], by_judge).transpose(2, 1, 0)
    if method == "ppi":
        shares = shares.mean(axis=2, keepdims=True)
    some = ~np.isnan(known).all(axis=1)
    fit = _fitted(shares[some], known[some], shares, method)
    rates = shares.mean(axis=0) @ fit.beta + mean_known((known - shares @ fit.beta)[some])
    rates = np.where((~np.isnan(known)).sum(axis=0) >= FEWEST_SAMPLES, rates, np.nan)
    spread = np.sqrt(variance_known(fit.residuals))
    return Estimate(shares, known, rates, spread, fit.beta, fit.rho2, fit.ridge)


def mean_known(values: Floats, axis: int = 0) -> Floats:
    return divided(np.nansum(values, axis=axis), (~np.isnan(values)).sum(axis=axis))


def variance_known(values: Floats) -> Floats:
    around = np.nansum((values - mean_known(values)) ** 2, axis=0)
    return divided(around, (~np.isnan(values)).sum(axis=0) - 1)


class _Fit(NamedTuple):
    beta: Floats
    residuals: Floats  # [known sample, system], each by weights fitted without that sample
    rho2: float | None
    ridge: float


def _fitted(shares: Floats, said: Floats, every: Floats, method: Method) -> _Fit:
    there = ~np.isnan(said)
    counts = np.maximum(there.sum(axis=0), 1)
    weight = there[:, :, None]
    x = np.where(weight, shares - (shares * weight).sum(axis=0) / counts[:, None], 0.0)
    y = np.where(there, said - mean_known(said), 0.0)
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
    around = residuals - mean_known(residuals)
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


def _power_tuned(gave: Floats, known: int, every: Floats) -> Floats:
    """The weight of PPI++, for a mean over all samples in place of those that are not known."""
    unranked = max(len(every) - known, 0)
    variance = float(every[:, :, 0].var(axis=0, ddof=1).sum())
    if not unranked or not variance:
        return np.zeros_like(gave)
    whole = len(every) / unranked
    return np.clip(gave / known / variance / whole, 0.0, 1.0) * whole


def t_quantile(free: Any, confidence: float) -> Floats:
    from scipy.special import stdtrit

    found: Floats = stdtrit(free, (1 + confidence) / 2)
    return found
