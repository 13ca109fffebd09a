"""The ratio of two independent numbers above zero, with an interval."""

from __future__ import annotations

import math

from echo_hf.analysis.figures import Estimate
from echo_hf.reasons import NotAnalyzed, Unscored

QUANTILE = 1.959963984540054  # of the normal distribution at 97.5 %


def ratio(value: float, error: float, other: float, other_error: float) -> Estimate:
    """A ratio, its interval by the delta method on its logarithm.

    Args:
        value: Above the line.
        error: Its standard error.
        other: Below the line.
        other_error: Its standard error.

    Returns:
        The ratio; without a value where one of the two is not above zero.

    Example:
        >>> found = ratio(6.0, 0.3, 2.0, 0.1)
        >>> found.value, round(found.low, 3), round(found.high, 3)
        (3.0, 2.612, 3.446)
    """
    if value <= 0 or other <= 0:
        return Estimate(value=None, reason=NotAnalyzed.NO_PROMPTS)
    share = value / other
    reach = QUANTILE * math.hypot(error / value, other_error / other)
    if not reach:
        return Estimate(value=share, reason=Unscored.NO_SPREAD)
    return Estimate(value=share, low=share * math.exp(-reach), high=share * math.exp(reach))
