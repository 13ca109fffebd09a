"""What ranks say: which systems differ, and how far two rankings agree, sample by sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from echo_hf._infra.bootstrap import Interval, drawn_weights, percentiles
from echo_hf._infra.summary import Summarized
from echo_hf.errors import ScoreError
from echo_hf.reasons import Unscored
from echo_hf.scores.rating_table import Floats, divided
from echo_hf.scores.tiers import holm, sign_flip_test
from echo_hf.scores.votes import number, pairs_of

STARS = {0.001: "***", 0.01: "**", 0.05: "*"}


def mid_ranks(values: Floats) -> Floats:
    """Places along the last axis, 1 for the smallest value; ties share the mean of theirs."""
    one, other = values[..., :, None], values[..., None, :]
    below, equal = (one > other).sum(axis=-1), (one == other).sum(axis=-1)
    return np.asarray(np.where(np.isnan(values), np.nan, below + (equal + 1) / 2))


def block_array(values: ArrayLike, systems: Sequence[str] | None = None) -> Floats:
    """Values in blocks, as an array that is one."""
    given = np.asarray(values, dtype=float)
    columns = given.shape[1] if given.ndim == 2 else 0
    if columns < 2 or (systems is not None and columns != len(systems)):
        named = "two or more systems" if systems is None else f"{list(systems)!r}"
        raise ScoreError(
            f"values have the shape {given.shape!r}: expected a row for each block, and in it a "
            f"number for each of {named}"
        )
    return given


@dataclass(frozen=True, repr=False)
class Friedman(Summarized):
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
    """Tests whether systems differ, by their ranks within blocks.

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

    given = block_array(values)
    complete = given[~np.isnan(given).any(axis=1)]
    w, degrees = number(float(concordance(complete))), given.shape[1] - 1
    statistic = None if w is None else len(complete) * degrees * w
    return Friedman(
        statistic,
        degrees,
        None if statistic is None else float(chdtrc(degrees, statistic)),
        w,
        len(complete),
        len(given) - len(complete),
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
    return number(float(concordances(block_array(values)[:, :, None])[0]))


def concordances(ranks: Floats) -> Floats:
    """Kendall's W of the people who ranked every system of a sample, for each sample."""
    found = np.full(ranks.shape[-1], np.nan)
    for at, people in enumerate(np.asarray(~np.isnan(ranks).any(axis=1)).T):
        if people.sum() > 1:
            found[at] = concordance(ranks[people, :, at])
    return found


def concordance(values: Floats) -> Floats:
    """Kendall's W of complete blocks."""
    ranks = mid_ranks(values)
    blocks, systems = ranks.shape
    spread = ((ranks.sum(axis=0) - blocks * (systems + 1) / 2) ** 2).sum()
    tied = (values[:, :, None] == values[:, None, :]).sum(axis=-1)
    # Over the systems, t**2 - 1 adds up to t**3 - t for each group of t tied ones.
    most = blocks * (blocks * (systems**3 - systems) - (tied**2 - 1).sum())
    return divided(12 * spread, most)


@dataclass(frozen=True, repr=False)
class PairTest(Summarized):
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
    """Dunn's test (1964), with his correction for ties, for each two systems, the largest z first.

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
    given = block_array(values, systems)
    ranks = mid_ranks(given.reshape(1, -1)).reshape(given.shape) if given.size else given
    counts = (~np.isnan(given)).sum(axis=0)
    total = int(counts.sum())
    sizes = np.unique(given[~np.isnan(given)], return_counts=True)[1].astype(float)
    ties = float(divided((sizes**3 - sizes).sum(), 12 * (total - 1)))
    variance = total * (total + 1) / 12 - np.nan_to_num(ties)
    means = divided(np.nansum(ranks, axis=0), counts)
    first, second = pairs_of(len(systems))
    errors = np.sqrt(variance * (divided(1, counts[first]) + divided(1, counts[second])))
    return _tests(systems, means, errors)


def siegel_castellan(values: ArrayLike, systems: Sequence[str]) -> tuple[PairTest, ...]:
    """Siegel and Castellan's test (1988) of each two systems after Friedman's, the largest z first.

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
    given = block_array(values, systems)
    ranks = mid_ranks(given[~np.isnan(given).any(axis=1)])
    blocks, count = ranks.shape
    error = float(np.sqrt(divided(count * (count + 1), 6 * blocks)))
    means = divided(ranks.sum(axis=0), blocks)
    return _tests(systems, means, np.full(count * (count - 1) // 2, error))


def _tests(systems: Sequence[str], means: Floats, errors: Floats) -> tuple[PairTest, ...]:
    from scipy.special import ndtr

    first, second = pairs_of(len(systems))
    z = divided(means[second] - means[first], errors)
    tested = np.flatnonzero(~np.isnan(z))
    first, second, z = first[tested], second[tested], z[tested]
    p_values = np.asarray(2 * ndtr(-np.abs(z)))
    bonferroni, stepped = np.minimum(p_values * len(p_values), 1.0), holm(p_values)
    found = []
    for at in np.argsort(-np.abs(z), kind="stable"):
        better, worse = (first[at], second[at]) if z[at] >= 0 else (second[at], first[at])
        numbers = (float(one[at]) for one in (np.abs(z), p_values, bonferroni, stepped))
        size, p_value, corrected, adjusted = numbers
        stars = next((mark for level, mark in STARS.items() if corrected < level), "-")
        names = systems[better], systems[worse]
        found.append(PairTest(*names, size, p_value, corrected, adjusted, stars))
    return tuple(found)


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


@dataclass(frozen=True, repr=False)
class TauB(Summarized):
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

    Returns:
        The coefficient with its interval and p value, and how many samples it is made of.

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
