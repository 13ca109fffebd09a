"""Kendall's tau-b: how far two rankings of the same systems agree, sample by sample."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from echo_hf._infra.bootstrap import Interval, drawn_weights, percentiles
from echo_hf.errors import ScoreError
from echo_hf.reasons import Unscored
from echo_hf.scores.friedman import block_array, mid_ranks
from echo_hf.scores.rating_table import Floats, divided
from echo_hf.scores.tiers import sign_flip_test
from echo_hf.scores.votes import number, pairs_of


@dataclass(frozen=True)
class Draws:
    """How often chance is asked."""

    n_boot: int = 1000
    n_resamples: int = 10_000
    seed: int = 0


@dataclass(frozen=True)
class Mean:
    """A mean over samples."""

    value: float | None
    interval: Interval | None
    samples: int
    reason: Unscored | None


def means(values: Floats, draws: Draws) -> list[Mean]:
    """Means over samples."""
    return ratios(values, (~np.isnan(values)).astype(float), draws)


def ratios(parts: Floats, wholes: Floats, draws: Draws) -> list[Mean]:
    """Ratios of two sums over the same samples."""
    there = ~np.isnan(parts)
    above, below = np.where(there, parts, 0.0), np.where(there, wholes, 0.0)
    values = divided(above.sum(axis=1), below.sum(axis=1)).tolist()
    drawn = (
        divided(weights @ above.T, weights @ below.T)
        for weights in drawn_weights(above.shape[1], draws.n_boot, draws.seed)
    )
    columns, found = np.concatenate([np.empty((0, len(above))), *drawn]).T, []
    for value, column, samples in zip(values, columns, there.sum(axis=1).tolist(), strict=True):
        interval, reason = percentiles(column, samples)
        known = number(value)
        if known is None:
            interval, reason = None, Unscored.NO_ORDER
        found.append(Mean(known, interval, samples, reason))
    return found


@dataclass(frozen=True)
class TauB:
    """How far two rank the same systems alike: 1 the same order, -1 the opposite, 0 neither.

    Attributes:
        tau: Mean over samples of tau-b within each; null where no sample has one.
        interval: Lower and upper end at 95 %, by a bootstrap over samples, or null.
        p_value: Of a sign-flip test over samples.
        samples: How many samples have a tau: both rank two of the same systems, not all tied.
        reason: Why there is no tau, or no interval.
        pooled: Tau-b of the ranks of all samples, taken as one list; null where there is none.
        pooled_p: Its p value, as if the ranks of one sample were independent.
    """

    tau: float | None
    interval: Interval | None
    p_value: float | None
    samples: int
    reason: Unscored | None
    pooled: float | None
    pooled_p: float | None


def tau_b(
    one: ArrayLike,
    other: ArrayLike,
    *,
    n_boot: int = 1000,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> TauB:
    """Compares two rankings of the same systems on the same samples.

    Args:
        one: Array [sample, system] of values that are ranked within a sample; NaN for none.
        other: Array of the same shape.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        n_resamples: Draws of the sign-flip test.
        seed: Of all draws.


    Raises:
        ScoreError: The arrays have other shapes, or a number of draws or the seed is none.

    Examples:
        >>> found = tau_b([[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [3, 1, 2]])
        >>> round(found.tau, 3), found.samples
        (0.333, 2)
    """
    ones, others = block_array(one), block_array(other)
    if ones.shape != others.shape:
        raise ScoreError(
            f"the rankings have the shapes {ones.shape!r} and {others.shape!r}: expected the same"
        )
    return tau_table(ones.T[None], others.T[None], Draws(n_boot, n_resamples, seed))[0][0]


def tau_table(ones: Floats, others: Floats, draws: Draws) -> list[list[TauB]]:
    """Compares everybody with everybody."""
    taus = sample_taus(ones, others)
    flat = taus.reshape(-1, taus.shape[-1])
    p_values = sign_flip_test(np.nan_to_num(flat), n_resamples=draws.n_resamples, seed=draws.seed)
    pooled = [_pooled(one, other) for one in ones for other in others]
    found = []
    for mean, p_value, in_one_list in zip(means(flat, draws), p_values, pooled, strict=True):
        p_value = float(p_value) if mean.samples else None
        known = mean.value, mean.interval, p_value, mean.samples, mean.reason
        found.append(TauB(*known, *in_one_list))
    return [found[at : at + len(others)] for at in range(0, len(found), len(others) or 1)]


def sample_taus(ones: Floats, others: Floats) -> Floats:
    """Tau-b of each two rankings within each sample, over the systems that both rank."""
    one, other = _signs(ones), _signs(others)
    over_pairs = partial(np.einsum, "aps,bps->abs")
    concordant = over_pairs(np.nan_to_num(one), np.nan_to_num(other))
    untied_one = over_pairs(np.nan_to_num(one**2), ~np.isnan(other))
    untied_other = over_pairs(~np.isnan(one), np.nan_to_num(other**2))
    return divided(concordant, np.sqrt(untied_one * untied_other))


def _signs(ranks: Floats) -> Floats:
    """Whether the second of two systems is ranked lower (1), higher (-1) or equal (0)."""
    first, second = pairs_of(ranks.shape[-2])
    return np.asarray(np.sign(ranks[..., second, :] - ranks[..., first, :]))


def _pooled(one: Floats, other: Floats) -> tuple[float | None, float | None]:
    from scipy.stats import kendalltau

    common = ~np.isnan(one) & ~np.isnan(other)
    lists = [mid_ranks(np.where(common, ranks, np.nan).T).T[common] for ranks in (one, other)]
    if any(np.unique(ranks).size < 2 for ranks in lists):
        return None, None
    found = kendalltau(*lists)
    return number(found.statistic), number(found.pvalue)
