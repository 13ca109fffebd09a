"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Mapping

NOTHING = "–"
Interval = tuple[float, float]


def number(value: float | None, digits: int = 3) -> str:
    """A number with a fixed number of decimals.

    Example:
        >>> number(0.5), number(None), number(-0.0001)
        ('0.500', '–', '0.000')
    """
    if value is None:
        return NOTHING
    said = f"{value:.{digits}f}"
    return said.lstrip("-") if not float(said) else said.replace("-", "−")


def interval(ends: Interval | None, digits: int = 3) -> str:
    """Both ends of an interval.

    Example:
        >>> interval((0.25, 0.75), 2), interval(None)
        ('0.25 – 0.75', '–')
    """
    if ends is None:
        return NOTHING
    return f"{number(ends[0], digits)} – {number(ends[1], digits)}"


def share(value: float | None) -> str:
    """A share as a whole number of per cent.

    Example:
        >>> share(0.857), share(None)
        ('86 %', '–')
    """
    return NOTHING if value is None else f"{100 * value:.0f} %"


def count(value: int) -> str:
    """A count with its thousands apart.

    Example:
        >>> count(68000)
        '68,000'
    """
    return f"{value:,}"


def p_value(value: float | None) -> str:
    """A probability under the null hypothesis.

    Example:
        >>> p_value(0.0004), p_value(0.02)
        ('< 0.001', '0.020')
    """
    if value is None:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def plural(number_of: int, noun: str, more: str | None = None) -> str:
    """A count with its noun.

    Example:
        >>> plural(1, "sample"), plural(2000, "sample"), plural(0, "box", "boxes")
        ('1 sample', '2,000 samples', '0 boxes')
    """
    said = noun if number_of == 1 else more or f"{noun}s"
    return f"{count(number_of)} {said}"


def listed(counts: Mapping[str, int], most: int = 12) -> str:
    """Names with their counts, the largest count first.

    Example:
        >>> listed({"b": 1, "c": 2000, "a": 1}, most=2)
        'c 2,000, a 1, ...'
    """
    pairs = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    said = [f"{name} {count(number_of)}" for name, number_of in pairs[:most]]
    return ", ".join([*said, *(["..."] if len(pairs) > most else [])])
