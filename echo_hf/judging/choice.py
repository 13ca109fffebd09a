"""Read a choice between two outputs from a judge's free answer, and whose win it is."""

from __future__ import annotations

import re
from typing import Literal

from echo_hf.reasons import Unrated

Choice = Literal["first", "second", "tie"]
Order = Literal["ab", "ba"]
Winner = Literal["a", "b", "tie"]
ORDERS: tuple[Order, ...] = ("ab", "ba")
TIE: Literal["tie"] = "tie"
# Without ASCII, letters that only look like these would match.
CHOICE = re.compile(r"\[\[\s*(first|second|tie)\s*\]\]", re.ASCII | re.IGNORECASE)
MEANT: dict[str, Choice] = {"first": "first", "second": "second", "tie": "tie"}


def read_choice(text: str) -> Choice | Unrated:
    """The choice in an answer.

    Args:
        text: The answer; first, second or tie stands in double square brackets, capitals or not.

    Returns:
        The choice, or why there is none: an answer that makes two different ones has none.

    Example:
        >>> read_choice("The second fox has six legs: [[First]]")
        'first'
        >>> print(read_choice("[[first]], or rather [[second]]"))
        two_choices
        >>> print(read_choice("the first"))
        no_choice
    """
    made = {one.lower() for one in CHOICE.findall(text)}
    if len(made) > 1:
        return Unrated.TWO_CHOICES
    return MEANT[made.pop()] if made else Unrated.NO_CHOICE


def winner_of(choice: Choice, order: Order) -> Winner:
    """The system that a choice is for.

    Args:
        choice: Which place was preferred.
        order: `ab` if the output of system a was shown first, `ba` if that of b was.

    Returns:
        a, b or tie.

    Example:
        >>> winner_of("first", "ab"), winner_of("first", "ba"), winner_of("tie", "ba")
        ('a', 'b', 'tie')
    """
    if choice == TIE:
        return TIE
    return "a" if (choice == "first") == (order == "ab") else "b"
