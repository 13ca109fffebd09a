"""Read a rating from a judge's free answer: as the released code does, or more carefully."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from echo_hf.reasons import Unrated

Protocol = Literal["published", "corrected"]

# Whole numbers from 1 to 10 and nothing else: the first of them counts.
PUBLISHED = re.compile(r"\[\[\s*(10|[1-9])\s*\]\]")
PUBLISHED_SCALE = (1.0, 10.0)
# Any number in double square brackets: the last of them counts.
CORRECTED = re.compile(r"\[\[\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*\]\]")


@dataclass(frozen=True, slots=True)
class Scale:
    """The ratings that a judge may give.

    Attributes:
        lowest: The worst.
        highest: The best.
        decimals: Whether there are ratings between whole numbers.
    """

    lowest: float
    highest: float
    decimals: bool = False

    def holds(self, rating: float) -> bool:
        """Whether a number is one of them.

        Example:
            >>> Scale(1, 10).holds(7), Scale(1, 10).holds(7.5), Scale(1, 10).holds(0)
            (True, False, False)
        """
        whole = self.decimals or float(rating).is_integer()
        return whole and self.lowest <= rating <= self.highest


def read_rating(text: str, scale: Scale, protocol: Protocol) -> float | Unrated:
    """The rating in an answer.

    `published` takes the first whole number from 1 to 10 that stands in double square brackets,
    and passes over any other. `corrected` takes the last number there, because an answer may name
    others before it decides, and refuses it when it is not on the judge's scale.

    Args:
        text: The answer.
        scale: The judge's; plays no part as published.
        protocol: `published` or `corrected`.

    Returns:
        The rating, or why there is none; never a number that nobody gave.

    Example:
        >>> text = "At first sight [[3]], but no: Rating: [[8]]"
        >>> read_rating(text, Scale(1, 10), "published")
        3.0
        >>> read_rating(text, Scale(1, 10), "corrected")
        8.0
        >>> print(read_rating("[[11]]", Scale(1, 10), "corrected"))
        beyond_scale
    """
    if protocol == "published":
        found = PUBLISHED.search(text)
        return float(found[1]) if found else Unrated.NO_RATING
    numbers = CORRECTED.findall(text)
    if not numbers:
        return Unrated.NO_RATING
    rating = float(numbers[-1])
    return rating if scale.holds(rating) else Unrated.BEYOND_SCALE
