"""Tests on ranks: which systems differ, and how far two rankings agree, sample by sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from echo_hf._infra.bootstrap import Interval, Unscored, compute_interval, draw_weights
from echo_hf._infra.summary import SummaryMixin
from echo_hf.errors import ScoreError
from echo_hf.scores.rating_table import Floats, divide
from echo_hf.scores.tiers import adjust_holm, sign_flip_test
from echo_hf.scores.votes import list_pairs, to_number

STARS = {0.001: "***", 0.01: "**", 0.05: "*"}


def mid_ranks(values: Floats) -> Floats:
    """Rank values along the last axis, 1 for the smallest; ties share the mean of their ranks."""
    first, second = values[..., :, None], values[..., None, :]
    below, equal = (first > second).sum(axis=-1), (first == second).sum(axis=-1)
    return np.asarray(np.where(np.isnan(values), np.nan, below + (equal + 1) / 2))


def as_block_array(values: ArrayLike, systems: Sequence[str] | None = None) -> Floats:
    """Return values as an array of blocks and systems, and refuse any other shape."""
    array = np.asarray(values, dtype=float)
    columns = array.shape[1] if array.ndim == 2 else 0
    if columns < 2 or (systems is not None and columns != len(systems)):
        expected_systems = "two or more systems" if systems is None else f"{list(systems)!r}"
        raise ScoreError(
            f"values have the shape {array.shape!r}: expected a row for each block, and in it a "
            f"number for each of {expected_systems}"
        )
    return array


@dataclass(frozen=True, repr=False)
class Friedman(SummaryMixin):
    """Friedman's test.

    Attributes:
        statistic: Chi-square, corrected for ties; null where no block has an order.
        degrees: Degrees of freedom, systems less 1.
        p_value: Chance of one as large where the systems do not differ; null as above.
        w: Kendall's W of the blocks, 0 to 1: statistic / (blocks * degrees); null as above.
        blocks: How many blocks count.
        incomplete: How many do not, because a value is missing.
        reason: Why there is no statistic.
    """

    statistic: float | None
    degrees: int
    p_value: float | None
    w: float | None
    blocks: int
    incomplete: int
    reason: Unscored | None


def friedman(values: ArrayLike) -> Friedman:
    """Test whether systems differ, by their ranks within blocks.

    Args:
        values: Array [block, system] of ranks, or of any values that are ranked within a block,
            smaller first; NaN where there is none. A block with a NaN is left out.

    Returns:
        The statistic with its p value, and what was tested.

    Raises:
        ScoreError: The array has another form, or fewer than two systems.

    Examples:
        >>> found = friedman([[1, 2, 3], [1, 3, 2], [1, 2, 3], [2, 1, 3]])
        >>> found.statistic, found.degrees, round(found.p_value, 4), found.w
        (4.5, 2, 0.1054, 0.5625)
    """
    from scipy.special import chdtrc

    array = as_block_array(values)
    complete = array[~np.isnan(array).any(axis=1)]
    w, degrees = to_number(float(compute_concordance(complete))), array.shape[1] - 1
    statistic = None if w is None else len(complete) * degrees * w
    return Friedman(
        statistic,
        degrees,
        None if statistic is None else float(chdtrc(degrees, statistic)),
        w,
        len(complete),
        len(array) - len(complete),
        Unscored.NO_ORDER if w is None else None,
    )


def kendalls_w(values: ArrayLike) -> float | None:
    """Kendall's coefficient of concordance: 0 for no agreement, 1 for all the same order.

    Args:
        values: Array [person, system], ranked for each person; one with a NaN is left out.

    Returns:
        W, corrected for ties; null with fewer than two people, or nothing but ties.

    Raises:
        ScoreError: The array has another form, or fewer than two systems.

    Examples:
        >>> kendalls_w([[1, 2, 3], [1, 2, 3]]), kendalls_w([[1, 2, 3], [3, 2, 1]])
        (1.0, 0.0)
    """
    return to_number(float(concordances(as_block_array(values)[:, :, None])[0]))


def concordances(ranks: Floats) -> Floats:
    """Compute Kendall's W of each sample, over the people who ranked every system of it."""
    coefficients = np.full(ranks.shape[-1], np.nan)
    for at, people in enumerate(np.asarray(~np.isnan(ranks).any(axis=1)).T):
        if people.sum() > 1:
            coefficients[at] = compute_concordance(ranks[people, :, at])
    return coefficients


def compute_concordance(values: Floats) -> Floats:
    """Compute Kendall's W of complete blocks."""
    ranks = mid_ranks(values)
    blocks, systems = ranks.shape
    spread = ((ranks.sum(axis=0) - blocks * (systems + 1) / 2) ** 2).sum()
    tied = (values[:, :, None] == values[:, None, :]).sum(axis=-1)
    # Over the systems, t**2 - 1 adds up to t**3 - t for each group of t tied ones.
    largest_sum = blocks * (blocks * (systems**3 - systems) - (tied**2 - 1).sum())
    return divide(12 * spread, largest_sum)


@dataclass(frozen=True, repr=False)
class PairTest(SummaryMixin):
    """A test of two systems.

    Attributes:
        better: The system with the lower mean rank; of equals the first in the given order.
        worse: The other.
        z: Difference of mean ranks in standard errors, 0 or more.
        p_value: Two-sided, for this pair alone.
        bonferroni: The same times the number of pairs, at most 1.
        holm: Adjusted by Holm's method.
        stars: Of Bonferroni's p: `***` below 0.001, `**` below 0.01, `*` below 0.05, else `-`.
    """

    better: str
    worse: str
    z: float
    p_value: float
    bonferroni: float
    holm: float
    stars: str


def dunn(values: ArrayLike, systems: Sequence[str]) -> tuple[PairTest, ...]:
    """Run Dunn's test (1964), corrected for ties, on each pair of systems, largest z first.

    It takes all values for independent, which those ranked within a block are not.

    Args:
        values: Array [block, system], lower is better, NaN where there is none.
        systems: Their names.

    Returns:
        A test for each two systems, with plain and with adjusted p values.

    Raises:
        ScoreError: Names and array do not fit, or there are fewer than two systems.

    Examples:
        >>> test = dunn([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]], ["a", "b"])[0]
        >>> test.better, round(test.z, 4), round(test.p_value, 4), test.stars
        ('a', 1.964, 0.0495, '*')
    """
    array = as_block_array(values, systems)
    ranks = mid_ranks(array.reshape(1, -1)).reshape(array.shape) if array.size else array
    counts = (~np.isnan(array)).sum(axis=0)
    total = int(counts.sum())
    sizes = np.unique(array[~np.isnan(array)], return_counts=True)[1].astype(float)
    ties = float(divide((sizes**3 - sizes).sum(), 12 * (total - 1)))
    variance = total * (total + 1) / 12 - np.nan_to_num(ties)
    means = divide(np.nansum(ranks, axis=0), counts)
    first, second = list_pairs(len(systems))
    errors = np.sqrt(variance * (divide(1, counts[first]) + divide(1, counts[second])))
    return _test_pairs(systems, means, errors)


def siegel_castellan(values: ArrayLike, systems: Sequence[str]) -> tuple[PairTest, ...]:
    """Run Siegel and Castellan's test (1988) on each pair of systems after Friedman's.

    Args:
        values: Array [block, system] of values that are ranked within a block, smaller first. A
            block with a NaN is left out.
        systems: Their names.

    Returns:
        A test for each two systems, with plain and with adjusted p values.

    Raises:
        ScoreError: Names and array do not fit, or there are fewer than two systems.

    Examples:
        >>> test = siegel_castellan([[1, 2, 3]] * 8, ["a", "b", "c"])[0]
        >>> test.better, test.worse, test.z, round(test.bonferroni, 6)
        ('a', 'c', 4.0, 0.00019)
    """
    array = as_block_array(values, systems)
    ranks = mid_ranks(array[~np.isnan(array).any(axis=1)])
    blocks, count = ranks.shape
    error = float(np.sqrt(divide(count * (count + 1), 6 * blocks)))
    means = divide(ranks.sum(axis=0), blocks)
    return _test_pairs(systems, means, np.full(count * (count - 1) // 2, error))


def _test_pairs(systems: Sequence[str], means: Floats, errors: Floats) -> tuple[PairTest, ...]:
    from scipy.special import ndtr

    first, second = list_pairs(len(systems))
    z = divide(means[second] - means[first], errors)
    tested = np.flatnonzero(~np.isnan(z))
    first, second, z = first[tested], second[tested], z[tested]
    p_values = np.asarray(2 * ndtr(-np.abs(z)))
    bonferroni, stepped = np.minimum(p_values * len(p_values), 1.0), adjust_holm(p_values)
    tests = []
    for pair in np.argsort(-np.abs(z), kind="stable"):
        better, worse = (first[pair], second[pair]) if z[pair] >= 0 else (second[pair], first[pair])
        numbers = (float(figures[pair]) for figures in (np.abs(z), p_values, bonferroni, stepped))
        size, p_value, corrected, adjusted = numbers
        stars = next((mark for level, mark in STARS.items() if corrected < level), "-")
        names = systems[better], systems[worse]
        tests.append(PairTest(*names, size, p_value, corrected, adjusted, stars))
    return tuple(tests)


@dataclass(frozen=True)
class Resampling:
    """How many bootstrap and permutation draws are made, and their seed."""

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


def means(values: Floats, draws: Resampling) -> list[Mean]:
    """Return means over samples."""
    return ratios(values, (~np.isnan(values)).astype(float), draws)


def ratios(parts: Floats, wholes: Floats, draws: Resampling) -> list[Mean]:
    """Return ratios of two sums over the same samples."""
    valid = ~np.isnan(parts)
    numerators, denominators = np.where(valid, parts, 0.0), np.where(valid, wholes, 0.0)
    values = divide(numerators.sum(axis=1), denominators.sum(axis=1)).tolist()
    draws_of_ratios = (
        divide(weights @ numerators.T, weights @ denominators.T)
        for weights in draw_weights(numerators.shape[1], draws.n_boot, draws.seed)
    )
    columns, mean_list = np.concatenate([np.empty((0, len(numerators))), *draws_of_ratios]).T, []
    for value, column, samples in zip(values, columns, valid.sum(axis=1).tolist(), strict=True):
        interval, reason = compute_interval(column, samples)
        mean_value = to_number(value)
        if mean_value is None:
            interval, reason = None, Unscored.NO_ORDER
        mean_list.append(Mean(mean_value, interval, samples, reason))
    return mean_list


@dataclass(frozen=True, repr=False)
class TauB(SummaryMixin):
    """How far two rankings agree: 1 is the same order, -1 the opposite, 0 neither.

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
    """Compare two rankings of the same systems on the same samples.

    Args:
        one: Array [sample, system] of values that are ranked within a sample; NaN for none.
        other: Array of the same shape.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        n_resamples: Draws of the sign-flip test.
        seed: Of all draws.

    Returns:
        The coefficient with its interval and p value, and how many samples it is made of.

    Raises:
        ScoreError: The arrays have other shapes, or a number of draws or the seed is none.

    Examples:
        >>> found = tau_b([[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [3, 1, 2]])
        >>> round(found.tau, 3), found.samples
        (0.333, 2)
    """
    first, second = as_block_array(one), as_block_array(other)
    if first.shape != second.shape:
        raise ScoreError(
            f"the rankings have the shapes {first.shape!r} and {second.shape!r}: expected the same"
        )
    return tau_table(first.T[None], second.T[None], Resampling(n_boot, n_resamples, seed))[0][0]


def tau_table(first: Floats, second: Floats, draws: Resampling) -> list[list[TauB]]:
    """Compare each ranking of one group with each of another."""
    taus = sample_taus(first, second)
    flat = taus.reshape(-1, taus.shape[-1])
    p_values = sign_flip_test(np.nan_to_num(flat), n_resamples=draws.n_resamples, seed=draws.seed)
    pooled = [_pool_taus(left_ranks, right_ranks) for left_ranks in first for right_ranks in second]
    coefficients = []
    for mean, p_value, in_one_list in zip(means(flat, draws), p_values, pooled, strict=True):
        p_value = float(p_value) if mean.samples else None
        mean_fields = mean.value, mean.interval, p_value, mean.samples, mean.reason
        coefficients.append(TauB(*mean_fields, *in_one_list))
    return [
        coefficients[start : start + len(second)]
        for start in range(0, len(coefficients), len(second) or 1)
    ]


def sample_taus(first: Floats, second: Floats) -> Floats:
    """Compute tau-b of each pair of rankings within each sample, over the systems both rank."""
    first_signs, second_signs = _compute_signs(first), _compute_signs(second)
    over_pairs = partial(np.einsum, "aps,bps->abs")
    concordant = over_pairs(np.nan_to_num(first_signs), np.nan_to_num(second_signs))
    untied_first = over_pairs(np.nan_to_num(first_signs**2), ~np.isnan(second_signs))
    untied_second = over_pairs(~np.isnan(first_signs), np.nan_to_num(second_signs**2))
    return divide(concordant, np.sqrt(untied_first * untied_second))


def _compute_signs(ranks: Floats) -> Floats:
    """Return whether the second system of each pair is ranked lower (1), higher (-1), equal (0)."""
    first, second = list_pairs(ranks.shape[-2])
    return np.asarray(np.sign(ranks[..., second, :] - ranks[..., first, :]))


def _pool_taus(first: Floats, second: Floats) -> tuple[float | None, float | None]:
    from scipy.stats import kendalltau

    common = ~np.isnan(first) & ~np.isnan(second)
    lists = [mid_ranks(np.where(common, ranks, np.nan).T).T[common] for ranks in (first, second)]
    if any(np.unique(ranks).size < 2 for ranks in lists):
        return None, None
    correlation = kendalltau(*lists)
    return to_number(correlation.statistic), to_number(correlation.pvalue)
