"""Whether systems differ at all: Friedman's test, and Kendall's W, which says how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from echo_hf.errors import ScoreError
from echo_hf.reasons import Unscored
from echo_hf.scores.arrays import Floats, divided
from echo_hf.scores.by_system import number
from echo_hf.scores.people.ranks import mid_ranks


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

    Returns:
        The test.

    Raises:
        ScoreError: The array has another form, or fewer than two systems.

    Example:
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
    """Kendall's coefficient of concordance, corrected for ties.

    Args:
        values: Array [person, system] of ranks, or of any values that are ranked for each person.
            A person with a NaN is left out.

    Returns:
        From 0 (no agreement) to 1 (all the same order); null where fewer than two people are left,
        or all of them see nothing but ties.

    Raises:
        ScoreError: The array has another form, or fewer than two systems.

    Example:
        >>> kendalls_w([[1, 2, 3], [1, 2, 3]]), kendalls_w([[1, 2, 3], [3, 2, 1]])
        (1.0, 0.0)
    """
    return number(float(concordances(block_array(values)[:, :, None])[0]))


def concordances(ranks: Floats) -> Floats:
    """Kendall's W of the people who ranked every system of a sample, for each sample.

    Args:
        ranks: Array [person, system, sample], NaN where not ranked.

    Returns:
        Array [sample], NaN where fewer than two people are left, or all see nothing but ties.
    """
    complete = np.asarray(~np.isnan(ranks).any(axis=1))
    found = [
        concordance(ranks[people, :, at]) if people.sum() > 1 else np.nan
        for at, people in enumerate(complete.T)
    ]
    return np.array(found, dtype=float)


def concordance(values: Floats) -> Floats:
    """Kendall's W of complete blocks.

    Args:
        values: Array [block, system] without NaN.

    Returns:
        Array of no dimension, NaN where no block has an order.

    Example:
        >>> round(float(concordance(np.array([[1.0, 1.0, 2.0], [1.0, 2.0, 3.0]]))), 4)
        0.9286
    """
    ranks = mid_ranks(values)
    blocks, systems = ranks.shape
    spread = ((ranks.sum(axis=0) - blocks * (systems + 1) / 2) ** 2).sum()
    tied = (values[:, :, None] == values[:, None, :]).sum(axis=-1)
    # Over the systems, t**2 - 1 adds up to t**3 - t for each group of t tied ones.
    most = blocks * (blocks * (systems**3 - systems) - (tied**2 - 1).sum())
    return divided(12 * spread, most)


def block_array(values: ArrayLike) -> Floats:
    """Values in blocks, as an array that is one.

    Args:
        values: What should be an array [block, system].

    Returns:
        The array.

    Raises:
        ScoreError: It has another form, or fewer than two systems.

    Example:
        >>> block_array([[1, 2]]).tolist()
        [[1.0, 2.0]]
    """
    given = np.asarray(values, dtype=float)
    if given.ndim != 2 or given.shape[1] < 2:
        raise ScoreError(
            f"values have the shape {given.shape!r}: expected a row for each block, and in it a "
            "number for each of two or more systems"
        )
    return given
