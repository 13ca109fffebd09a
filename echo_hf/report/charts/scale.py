"""Where a number lies between the two ends of an axis."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Scale:
    """An axis.

    Attributes:
        low: The number at its left end.
        high: The number at its right end, above `low`.
        ticks: Numbers that are named on it.
        digits: Decimals of these names.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    digits: int = 0

    def share(self, value: float) -> float:
        """Where a number lies, from 0 at the left to 1 at the right.

        Args:
            value: A number; one beyond an end lies at that end.

        Example:
            >>> Scale(0, 4, (0, 2, 4)).share(1)
            0.25
        """
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def percent(self, value: float) -> str:
        """The same as SVG has it.

        Example:
            >>> Scale(0, 3, (0, 3)).percent(1)
            '33.33%'
        """
        return percent(self.share(value))


# Shares of points from 0 to 1: one half is what a system gets that does as well as the others.
UNIT = Scale(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), 2)


def percent(part: float) -> str:
    """A share of the width as SVG has it.

    Example:
        >>> percent(0.5), percent(1 / 3)
        ('50%', '33.33%')
    """
    return f"{100 * part:.2f}".rstrip("0").rstrip(".") + "%"


def round_scale(
    values: Iterable[float], *, ticks: int = 4, from_zero: bool = True, whole: bool = False
) -> Scale:
    """An axis with round numbers that reaches over all values.

    Args:
        values: Finite numbers; none for an axis from 0 to 1.
        ticks: About how many steps it has.
        from_zero: Whether it begins at 0 where all values are above.
        whole: Whether only whole numbers are named, as for counts.

    Returns:
        The axis.

    Example:
        >>> round_scale([3, 28.8]).ticks
        (0.0, 10.0, 20.0, 30.0)
    """
    known = sorted(values)
    low, high = (known[0], known[-1]) if known else (0.0, 1.0)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    step = _step((high - low) / ticks or max(abs(high), 1.0) / ticks, whole)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    power = math.floor(math.log10(step) + 1e-9)
    digits = max(0, (1 if math.isclose(step, 2.5 * 10.0**power) else 0) - power)
    named = tuple(round(at * step, 10) + 0.0 for at in range(first, last + 1))
    return Scale(named[0], named[-1], named, digits)


def _step(least: float, whole: bool) -> float:
    """The smallest round number that is no smaller."""
    least = max(least, 1.0) if whole else least
    power = 10.0 ** math.floor(math.log10(least))
    steps = (power * step for step in STEPS if not whole or (power * step).is_integer())
    return next(step for step in steps if step >= least * (1 - 1e-9))
