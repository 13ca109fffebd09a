"""A share of things that samples have, with an interval that draws whole samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from echo_hf.bootstrap import Interval, drawn_weights, percentiles
from echo_hf.reasons import Unscored
from echo_hf.scores.arrays import Floats, divided


@dataclass(frozen=True)
class Share:
    """A share from 0 to 1.

    Attributes:
        value: The share, null when there is nothing to have a share of.
        interval: Lower and upper end at 95 %, drawing whole samples; null when there is none.
        count: How many things it is a share of.
        reason: Why a number is null.
    """

    value: float | None
    interval: Interval | None
    count: int
    reason: Unscored | None


def share_of(part: Floats, whole: Floats, missing: Unscored, *, n_boot: int, seed: int) -> Share:
    """The share of all samples' things together.

    Args:
        part: Array [sample]: how many of its things count.
        whole: Array [sample]: how many there are.
        missing: The reason when there are none at all.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.

    Returns:
        The share, with its interval.

    Example:
        >>> share_of(np.array([1, 2]), np.array([2, 2]), Unscored.NO_VERDICTS, n_boot=0, seed=0)
        Share(value=0.75, interval=None, count=4, reason=<Unscored.NO_DRAWS: 'no_draws'>)
    """
    counted = np.flatnonzero(whole)
    if not len(counted):
        return Share(None, None, 0, missing)
    part, whole = part[counted], whole[counted]
    drawn = [np.empty(0)]
    drawn += [divided(w @ part, w @ whole) for w in drawn_weights(len(counted), n_boot, seed)]
    interval, reason = percentiles(np.concatenate(drawn), len(counted))
    return Share(float(part.sum() / whole.sum()), interval, int(whole.sum()), reason)
