"""Pearson's correlation between judges: whether they see the same in the same outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from echo_hf.scores.arrays import Floats
from echo_hf.scores.by_system import number
from echo_hf.scores.people.judge_ranks import JudgeRatings


@dataclass(frozen=True)
class PearsonR:
    """How far two judges' ratings rise and fall together.

    Attributes:
        r: Pearson's correlation over all outputs that both rated, -1 to 1; null where one of them
            gives all the same rating, or fewer than two were rated by both.
        p_value: Two-sided, as if ratings were normal and independent; null as above.
        outputs: How many outputs both rated.
    """

    r: float | None
    p_value: float | None
    outputs: int


def pearson(one: Floats, other: Floats) -> PearsonR:
    """Pearson's correlation of two judges' ratings.

    Args:
        one: Array of ratings, NaN where there is none.
        other: Array of the same form.

    Returns:
        The correlation.

    Example:
        >>> one, other = np.array([1.0, 2.0, np.nan, 3.0]), np.array([2.0, 1.0, 5.0, 3.0])
        >>> round(pearson(one, other).r, 6)
        0.5
    """
    from scipy.stats import pearsonr

    common = ~np.isnan(one) & ~np.isnan(other)
    count = int(common.sum())
    if any(np.unique(ratings[common]).size < 2 for ratings in (one, other)):
        return PearsonR(None, None, count)
    found = pearsonr(one[common], other[common])
    return PearsonR(number(found.statistic), number(found.pvalue), count)


def pearson_table(said: JudgeRatings) -> Mapping[str, Mapping[str, PearsonR]]:
    """Pearson's correlation of each two judges.

    Args:
        said: The ratings.

    Returns:
        Correlations by the first and then by the second judge.
    """
    return {
        judge: {
            other: pearson(said.ratings[at], said.ratings[beyond])
            for beyond, other in enumerate(said.judges)
            if beyond > at
        }
        for at, judge in enumerate(said.judges[:-1])
    }
