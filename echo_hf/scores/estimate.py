"""Rates on all samples, estimated from verdicts on some of them and ratings of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from echo_hf._infra.bootstrap import MIN_SAMPLES, Interval
from echo_hf.scores.rating_table import Floats, divide

RIDGE_BELOW_SAMPLES = 30  # known samples: a penalty keeps fewer from deciding the weights by chance
Method = Literal["regression", "ppi"]


@dataclass(frozen=True)
class RateEstimate:
    """The estimated mean of each system, NaN where fewer than 10 samples have a target.

    `shares` are those of judges [sample, system, judge], `targets` is what they explain [sample,
    system], NaN where no target is known; `spread` is the standard deviation of what they do not.
    """

    shares: Floats
    targets: Floats
    rates: Floats
    spread: Floats
    beta: Floats
    rho2: float | None
    ridge: float

    @property
    def counts(self) -> Floats:
        counts: Floats = (~np.isnan(self.targets)).sum(axis=0)
        return counts

    @property
    def effective_n(self) -> Floats:
        """How many samples with a target would tell as much without judges."""
        return self.counts * divide(nan_variance(self.targets), self.spread**2)

    @property
    def sample_values(self) -> Floats:
        """Values [system, sample] whose mean over samples is the rate."""
        explained = self.shares @ self.beta
        correction = divide(len(self.targets), self.counts) * (self.targets - explained)
        return (explained + np.where(np.isnan(correction), 0.0, correction)).T

    def standard_errors(self, *, others: bool) -> Floats:
        """Return standard errors of the rates on these samples, or on `others` like them."""
        counts, total = np.maximum(self.counts, 1), len(self.targets)
        variance = self.spread**2 * (1 / counts - 1 / total)
        variance += nan_variance(self.targets) / total if others else 0.0
        return np.where(np.isnan(self.rates), np.nan, np.sqrt(variance))

    def compute_intervals(self, confidence: float, *, others: bool) -> list[Interval | None]:
        """Return Student's t intervals around the rates."""
        half = compute_t_quantile(self.counts - 1, confidence) * self.standard_errors(others=others)
        bounds = zip(self.rates - half, self.rates + half, strict=True)
        return [None if np.isnan(low) else (float(low), float(high)) for low, high in bounds]


def estimate_rates(
    by_judge: Floats, targets: Floats, method: Method = "regression"
) -> RateEstimate:
    """Estimate rates from shares of judges [judge, system, sample] and targets [sample, system]."""
    # A judge who never compared a system says nothing of it.
    means = np.nan_to_num(nan_mean(by_judge, axis=2), nan=0.5)
    shares = np.where(np.isnan(by_judge), means[:, :, None], by_judge).transpose(2, 1, 0)
    if method == "ppi":
        shares = shares.mean(axis=2, keepdims=True)
    is_known = ~np.isnan(targets).all(axis=1)
    weights = _fit_weights(shares[is_known], targets[is_known], shares, method)
    rates = shares.mean(axis=0) @ weights.beta + nan_mean(
        (targets - shares @ weights.beta)[is_known]
    )
    rates = np.where((~np.isnan(targets)).sum(axis=0) >= MIN_SAMPLES, rates, np.nan)
    spread = np.sqrt(nan_variance(weights.residuals))
    return RateEstimate(shares, targets, rates, spread, weights.beta, weights.rho2, weights.ridge)


def nan_mean(values: Floats, axis: int = 0) -> Floats:
    return divide(np.nansum(values, axis=axis), (~np.isnan(values)).sum(axis=axis))


def nan_variance(values: Floats) -> Floats:
    squared_deviations = np.nansum((values - nan_mean(values)) ** 2, axis=0)
    return divide(squared_deviations, (~np.isnan(values)).sum(axis=0) - 1)


class _Fit(NamedTuple):
    beta: Floats
    residuals: Floats  # [known sample, system], each by weights fitted without that sample
    rho2: float | None
    ridge: float


def _fit_weights(shares: Floats, targets: Floats, all_shares: Floats, method: Method) -> _Fit:
    is_known = ~np.isnan(targets)
    counts = np.maximum(is_known.sum(axis=0), 1)
    weight = is_known[:, :, None]
    x = np.where(weight, shares - (shares * weight).sum(axis=0) / counts[:, None], 0.0)
    y = np.where(is_known, targets - nan_mean(targets), 0.0)
    # What leaving a sample out takes from sums around the mean, which moves as well.
    mean_shift = counts / np.maximum(counts - 1, 1)
    gram, moment = np.einsum("isj,isk->jk", x, x), np.einsum("isj,is->j", x, y)
    grams = gram - np.einsum("s,isj,isk->ijk", mean_shift, x, x)
    moments = moment - np.einsum("s,isj,is->ij", mean_shift, x, y)
    ridge = 0.0
    if method == "regression":
        if len(targets) < RIDGE_BELOW_SAMPLES:
            ridge = _choose_ridge(x, y, gram, moment, int(is_known.sum()) - is_known.shape[1])
        penalty = ridge * np.eye(len(gram))
        beta = _solve(gram + penalty, moment)
        left_out_betas = _solve(grams + penalty, moments)
    else:
        beta, left_out_betas = (
            _tune_power(moment, len(targets), all_shares),
            _tune_power(moments, len(targets) - 1, all_shares),
        )
    residuals = targets - np.einsum("isj,ij->is", shares, left_out_betas)
    centered = residuals - nan_mean(residuals)
    total = float((y**2).sum())
    rho2 = 1 - float(np.nansum(centered**2)) / total if total else None
    return _Fit(beta, residuals, rho2, ridge)


def _solve(grams: Floats, moments: Floats) -> Floats:
    # A judge who says the same of all has no weight.
    solution: Floats = np.einsum("...jk,...k->...j", np.linalg.pinv(grams, hermitian=True), moments)
    return solution


def _choose_ridge(x: Floats, y: Floats, gram: Floats, moment: Floats, free: int) -> float:
    beta = _solve(gram, moment)
    noise = float(((y - x @ beta) ** 2).sum()) / max(free - len(beta), 1)
    size = float(beta @ beta)
    return len(beta) * noise / size if size else 0.0


def _tune_power(moment: Floats, known_count: int, all_shares: Floats) -> Floats:
    """Return the weight of PPI++, for a mean over all samples instead of those without a target."""
    unranked = max(len(all_shares) - known_count, 0)
    variance = float(all_shares[:, :, 0].var(axis=0, ddof=1).sum())
    if not unranked or not variance:
        return np.zeros_like(moment)
    total_ratio = len(all_shares) / unranked
    return np.clip(moment / known_count / variance / total_ratio, 0.0, 1.0) * total_ratio


def compute_t_quantile(degrees_of_freedom: Any, confidence: float) -> Floats:
    from scipy.special import stdtrit

    quantile: Floats = stdtrit(degrees_of_freedom, (1 + confidence) / 2)
    return quantile
