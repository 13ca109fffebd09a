"""Strengths from verdicts on the same samples, and least squares that link groups of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from echo_hf.scores.estimate import compute_t_quantile
from echo_hf.scores.rating_table import Bools, Floats, Integers

DRAWN_POINT = 0.5  # a pair's, half a win and half a loss: keeps strengths finite
MAX_ROUNDS, PRECISION = 100, 1e-10
ESTIMABLE = 1e-8


class Verdicts(NamedTuple):
    """Verdicts [pair, sample] from 1 to -1, NaN for none, with the positions of both systems."""

    values: Floats
    first: Integers
    second: Integers
    samples: Integers

    def select(self, pairs: Any) -> Verdicts:
        """Return the verdicts on some pairs."""
        return Verdicts(self.values[pairs], self.first[pairs], self.second[pairs], self.samples)

    def on_samples(self, samples: Bools) -> Verdicts:
        """Return the verdicts on some samples."""
        return self._replace(values=self.values[:, samples], samples=self.samples[samples])

    def of_systems(self, systems: Sequence[int] | Integers) -> Verdicts:
        return self.select(np.isin(self.first, systems) & np.isin(self.second, systems))


class Fit(NamedTuple):
    """Strengths of systems with mean 0, and what each sample adds to their errors."""

    systems: Integers
    strength: Floats
    influence: Floats  # [system, sample]
    drawn: Floats  # the same of the drawn points, so that no system that always wins is certain
    samples: Integers
    size: int  # samples that the newest judges rated


def list_components(linked: Bools) -> list[Integers]:
    """Return the positions of what hangs together, the largest part first."""
    reached = linked | np.eye(len(linked), dtype=bool)
    for _ in range(len(linked).bit_length()):
        reached = reached @ reached
    parts = {tuple(np.flatnonzero(row)) for row in reached}
    return [np.array(part) for part in sorted(parts, key=lambda part: (-len(part), part))]


def fit_components(verdicts: Verdicts) -> list[Fit]:
    """Fit strengths (Bradley-Terry) to each part of the systems that verdicts connect."""
    compared = ~np.isnan(verdicts.values).all(axis=1)
    verdicts = verdicts.select(compared)
    systems = np.unique(np.r_[verdicts.first, verdicts.second])
    linked = np.zeros((len(systems), len(systems)), dtype=bool)
    first, second = (np.searchsorted(systems, side) for side in (verdicts.first, verdicts.second))
    linked[first, second] = linked[second, first] = True
    return [
        _fit(verdicts.of_systems(systems[part]), systems[part])
        for part in list_components(linked)
        if len(part) > 1
    ]


def _fit(verdicts: Verdicts, systems: Integers) -> Fit:
    valid = ~np.isnan(verdicts.values)
    used = valid.any(axis=0)
    valid, points = valid[:, used], np.nan_to_num(verdicts.values[:, used] + 1) / 2
    signs = (verdicts.first[:, None] == systems).astype(float)
    signs -= verdicts.second[:, None] == systems
    met = valid.sum(axis=1) + DRAWN_POINT
    won = points.sum(axis=1) + DRAWN_POINT / 2
    strength = np.zeros(len(systems))
    for _ in range(MAX_ROUNDS):
        chance = 1 / (1 + np.exp(-signs @ strength))
        weight = met * chance * (1 - chance)
        information = signs.T @ (weight[:, None] * signs) + 1 / len(systems)
        step = np.linalg.solve(information, signs.T @ (won - met * chance))
        strength = strength + np.clip(step, -1, 1)
        if np.abs(step).max() < PRECISION:
            break
    load = np.linalg.solve(information, signs.T)  # the mean of each column is 0
    influence = load @ np.where(valid, points - chance[:, None], 0.0)
    count = int(used.sum())
    influence *= np.sqrt(count / max(count - 1, 1))
    return Fit(systems, strength, influence, load / 2, verdicts.samples[used], count)


def refine(fit: Fit, whole: Verdicts, n_samples: int) -> Fit:
    """Bring in what judges said of all samples, of which `fit` has the ones rated by others.

    Strengths on the part, plus a share of how far those by the judges of all samples differ between
    all and that part: a control variate, with one weight for all systems.
    """
    systems = np.intersect1d(fit.systems, np.r_[whole.first, whole.second])
    whole = whole.of_systems(systems)
    fits = []
    for chosen in (whole, whole.on_samples(np.isin(whole.samples, fit.samples))):
        parts = fit_components(chosen)
        if len(systems) < 2 or not parts or len(parts[0].systems) < len(systems):
            return fit
        fits.append(parts[0])
    everything, part = fits
    if everything.size <= part.size:
        return fit
    rows = np.searchsorted(fit.systems, systems)
    dense = [np.zeros((len(rows), n_samples)) for _ in range(3)]
    for target, source in zip(dense, (fit, everything, part), strict=True):
        target[:, source.samples] = source.influence[rows] if source is fit else source.influence
    centered = dense[0] - dense[0].mean(axis=0)
    spread = float((dense[2] ** 2).sum())
    weight = float(np.clip((centered * dense[2]).sum() / spread, 0, 1)) if spread else 0.0
    strength, influence = fit.strength.copy(), np.zeros((len(fit.systems), n_samples))
    influence[:, fit.samples] = fit.influence
    strength[rows] += weight * (everything.strength - part.strength)
    influence[rows] += weight * (dense[1] - dense[2])
    samples = np.union1d(fit.samples, everything.samples)
    return fit._replace(strength=strength, influence=influence[:, samples], samples=samples)


class LeastSquares:
    """Values of cells explained by a design, with the errors of its contrasts.

    What the design leaves over beyond sampling errors is how far systems do not keep their
    distances from one group of samples to another.
    """

    def __init__(self, values: Floats, covariance: Floats, design: Floats, samples: int) -> None:
        """Fit the design; `samples` are the fewest that a cell rests on."""
        self.values, self.covariance, self.design, self.samples = (
            values,
            covariance,
            design,
            samples,
        )
        self.inverse = np.linalg.pinv(design)
        leftover = np.eye(len(values)) - design @ self.inverse
        self.df = len(values) - int(np.linalg.matrix_rank(design)) if len(values) else 0
        self.leftover = leftover
        self.excess = 0.0
        if self.df:
            squares = float(values @ leftover @ values)
            self.excess = (squares - float((leftover * covariance).sum())) / self.df

    def find_weights(self, row: Floats) -> Floats | None:
        """Return the weights of the cells for a contrast, null where they do not determine it."""
        weights: Floats = row @ self.inverse
        return weights if np.allclose(weights @ self.design, row, atol=ESTIMABLE) else None

    def half_width(self, variance: float, load: float, confidence: float) -> float:
        """Return half an interval: that of sampling, or with `load` times the excess if wider."""
        half = compute_t_quantile(self.samples - 1, confidence) * np.sqrt(variance)
        if load and self.df:
            total = max(variance + load * self.excess, 0.0)
            half = max(half, compute_t_quantile(self.df, confidence) * np.sqrt(total))
        return float(half)

    def bend_p(self) -> float | None:
        """Test by Hotelling's F whether anything is left over beyond sampling errors."""
        from scipy.special import fdtrc

        if not self.df or self.samples <= self.df:
            return None
        basis = np.linalg.svd(self.leftover)[0][:, : self.df]
        residuals = basis.T @ self.values
        spread = basis.T @ self.covariance @ basis
        distance = float(residuals @ np.linalg.pinv(spread, hermitian=True) @ residuals)
        free = self.samples - self.df
        return float(fdtrc(self.df, free, distance * free / (self.df * (self.samples - 1))))


def widest_links(counts: Integers) -> Integers:
    """Return for each two the largest count that every link of some chain between them has."""
    widest = counts.copy()
    for middle in range(len(widest)):
        through = np.minimum(widest[:, middle, None], widest[None, middle])
        widest = np.maximum(widest, through)
    return widest
