"""Whether systems differ at all (Friedman's test, Kendall's W), and which two of them differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from echo_hf.errors import ScoreError
from echo_hf.reasons import Unscored
from echo_hf.scores.rating_table import Floats, divided
from echo_hf.scores.tiers import holm
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


@dataclass(frozen=True)
class Friedman:
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
    for at, people in enumerate(~np.isnan(ranks).any(axis=1).T):
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


@dataclass(frozen=True)
class PairTest:
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
    numbers = np.array([np.abs(z), p_values, bonferroni, stepped]).T
    found = []
    for at in np.argsort(-np.abs(z), kind="stable"):
        better, worse = (first[at], second[at]) if z[at] >= 0 else (second[at], first[at])
        stars = next((mark for level, mark in STARS.items() if bonferroni[at] < level), "-")
        found.append(PairTest(systems[better], systems[worse], *numbers[at].tolist(), stars))
    return tuple(found)
