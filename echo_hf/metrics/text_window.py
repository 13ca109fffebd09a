"""The part of a text that is most like a string, and how many letters apart the two are.

Libraries of edit distances compare whole strings, or windows of the string's own length, in which
one missing letter counts twice; this takes windows of every length, after Sellers (1980).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Window(NamedTuple):
    """A part of a text.

    Attributes:
        distance: How many letters are missing, too many or wrong in it (Levenshtein).
        start: Where it begins.
        end: Where it ends; equal to `start` where nothing of the text is like the string.
    """

    distance: int
    start: int
    end: int


def best_window(wanted: str, text: str) -> Window:
    """The window of a text with the smallest edit distance to a string.

    Args:
        wanted: The string.
        text: The text.

    Returns:
        The window; of several, the first to end, and of those the longest. Its distance is at
        most the length of the string, which an empty window has.

    Example:
        >>> best_window("birthday", "happybirtday,mia")
        Window(distance=1, start=5, end=12)
    """
    letters = _codes(text)
    ends = _distances(_codes(wanted), letters, anywhere=True)
    end = int(ends.argmin())
    distance = int(ends[end])
    starts = _distances(_codes(wanted)[::-1], letters[:end][::-1], anywhere=False)
    longest = int(np.flatnonzero(starts == distance)[-1])
    return Window(distance, end - longest, end)


def _distances(
    wanted: NDArray[np.uint32], text: NDArray[np.uint32], *, anywhere: bool
) -> NDArray[np.int64]:
    """Distance of a string to the windows that end after each number of letters, 0 first.

    `anywhere`: to the nearest of the windows that end there; else to the one from the beginning.
    """
    places = np.arange(len(text) + 1)
    row = np.zeros_like(places) if anywhere else places
    for count, letter in enumerate(wanted, 1):
        changed = row[:-1] + (text != letter)
        without = np.concatenate([[count], np.minimum(changed, row[1:] + 1)])
        # A letter too many costs one for each place: a running minimum along the slope.
        row = np.minimum.accumulate(without - places) + places
    return row


def _codes(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
