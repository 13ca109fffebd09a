"""Samples and systems to carry along from an older release, so that both compare."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from echo_hf._infra.bootstrap import LEVEL, MIN_SAMPLES
from echo_hf._infra.summary import SummaryMixin
from echo_hf.errors import ScoreError
from echo_hf.scores.bradley_terry import bradley_terry
from echo_hf.scores.rating_table import read_ratings
from echo_hf.scores.votes import count_votes

DEFAULT_DEVIATION = 0.375  # of a pair's outcomes of 0, 0.5 and 1, where few are known
BRIDGES = 3  # the fewest that give a verdict


@dataclass(frozen=True, repr=False)
class CarryPlan(SummaryMixin):
    """Samples and systems to carry along.

    Attributes:
        samples: How many samples give differences of two systems that half width.
        width: The half width asked for.
        deviation: The standard deviation of a pair's outcomes that this rests on.
        compared: The comparisons that it was seen on; with fewer than 10 samples it is a guess,
            0.375, and this is 0.
        bridges: Where new systems cannot be run on old prompts, the systems to run on new ones:
            as far apart in strength as there are, without the best, whose distance says least.
        definition: Every parameter.
    """

    samples: int
    width: float
    deviation: float
    compared: int
    bridges: tuple[str, ...]
    definition: Mapping[str, Any]


def carry_plan(
    ratings: Any, width: float, *, bridges: int = BRIDGES, confidence: float = LEVEL
) -> CarryPlan:
    """Plan how many samples of a release to carry along, and which systems are good bridges.

    Args:
        ratings: Rows of that release, as for `win_rate`.
        width: The half width that a difference of two systems should have, as a share: 0.1.
        bridges: How many bridges to name.
        confidence: Of the interval.

    Returns:
        The plan.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: Ratings contradict each other, or the width or the confidence is out of range.

    Examples:
        >>> names = [f"{at:02}" for at in range(40)]
        >>> rows = {"sample_id": names * 2, "system": ["a"] * 40 + ["b"] * 40, "judge": ["j"] * 80}
        >>> plan = carry_plan({**rows, "rating": [6, 5, 5, 4] * 10 + [5] * 40}, 0.1)
        >>> plan.samples, round(plan.deviation, 3), plan.bridges  # (1.96 x 0.358 / 0.1) squared
        (50, 0.358, ('b',))
    """
    if not 0 < width < 0.5:
        raise ScoreError(f"width is {width!r}: expected a share above 0 and below 0.5, such as 0.1")
    if not 0.5 <= confidence < 1:
        raise ScoreError(f"confidence is {confidence!r}: expected 0.5 to 1, such as 0.95")
    from scipy.special import ndtri

    table = read_ratings(ratings)
    verdicts = count_votes(table).pair_verdicts / 2
    counts = (~np.isnan(verdicts)).sum(axis=1)
    known = verdicts[counts >= MIN_SAMPLES]
    deviation, compared = DEFAULT_DEVIATION, int(counts[counts >= MIN_SAMPLES].sum())
    if compared:
        # Two systems that always tie say nothing of how others differ.
        deviation = math.sqrt(float(np.nanvar(known, axis=1, ddof=1).mean())) or DEFAULT_DEVIATION
    samples = math.ceil((float(ndtri((1 + confidence) / 2)) * deviation / width) ** 2)
    strength = bradley_terry(table, n_boot=0).strength
    others = [name for name, value in strength.items() if value is not None][1:]
    places = np.unique(np.linspace(0, len(others) - 1, min(bridges, len(others))).round())
    return CarryPlan(
        max(samples, MIN_SAMPLES),
        width,
        deviation,
        compared,
        tuple(others[at] for at in places.astype(int)),
        {"measure": "carry_plan", "confidence": confidence, "formula": "(z x deviation / width)^2"},
    )
