"""How alike two prompts are, letter by letter."""

from __future__ import annotations

import numpy as np

from echo_hf.context.spans import squeezed


def similarity(one: str, other: str) -> float:
    """The share of characters that two texts have in common, in order; white space is squeezed.

    It is 1 - d / n, where d is the Levenshtein distance, the fewest insertions, deletions and
    substitutions of a character that make one text the other, and n the length of the longer.

    Args:
        one: A text.
        other: Another one.

    Returns:
        From 0 (nothing in common) to 1 (equal).

    Example:
        >>> similarity("a red fox", "a  red ox")
        0.8888888888888888
    """
    one, other = squeezed(one), squeezed(other)
    longest = max(len(one), len(other))
    return 1 - distance(one, other) / longest if longest else 1.0


def distance(one: str, other: str) -> int:
    """The Levenshtein distance of two texts.

    Args:
        one: A text.
        other: Another one.

    Returns:
        The fewest insertions, deletions and substitutions that make one text the other.

    Example:
        >>> distance("kitten", "sitting")
        3
    """
    one, other = sorted((one, other), key=len)
    columns = np.arange(len(other) + 1)
    letters = np.array([ord(letter) for letter in other], dtype=np.int64)
    costs = columns.copy()
    for row, letter in enumerate(one, 1):
        reached = np.empty_like(costs)
        reached[0] = row
        reached[1:] = np.minimum(costs[1:] + 1, costs[:-1] + (letters != ord(letter)))
        # An insertion costs one a column: the cheapest start to the left of each.
        costs = np.minimum.accumulate(reached - columns) + columns
    return int(costs[-1])
