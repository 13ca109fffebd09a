"""Shares as the paper prints them."""

from __future__ import annotations


def share(part: int, whole: int) -> str:
    """A share in whole percent.

    Args:
        part: Count of the part.
        whole: Count of the whole.

    Returns:
        Whole percent, or a dash when there is nothing to divide.

    Example:
        >>> share(32_000, 68_000), share(0, 0)
        ('47 %', '-')
    """
    return f"{100 * part / whole:.0f} %" if whole else "-"
