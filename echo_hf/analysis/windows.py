"""Sliding windows over texts that are longer than what a model sees at once, and their batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """A part of one text, and which of its tokens count.

    Attributes:
        text: Place of the text.
        start: Its first token.
        end: The token after its last one.
        scored: The first token that counts; those before it are only there to be looked back at.
    """

    text: int
    start: int
    end: int
    scored: int

    @property
    def size(self) -> int:
        """Tokens that the model sees."""
        return self.end - self.start


def windows(text: int, tokens: int, size: int, stride: int) -> Iterator[Window]:
    """Windows over one text, in which each token but the first counts exactly once.

    Args:
        text: Place of the text.
        tokens: Its length.
        size: Most tokens of a window, 2 or more.
        stride: New tokens of each further window, less than `size`: each of them has at least
            `size - stride` tokens before it. The last window reaches back as far as fits.

    Yields:
        The windows; none for a text of one token, which has nothing before it.

    Example:
        >>> [(one.start, one.end, one.scored) for one in windows(0, 10, 6, 3)]
        [(0, 6, 1), (3, 9, 6), (4, 10, 9)]
    """
    scored, end = 1, min(size, tokens)
    while scored < end:
        yield Window(text, max(end - size, 0), end, scored)
        scored, end = end, min(end + stride, tokens)


def batches(parts: Sequence[Window], most_tokens: int) -> Iterator[list[Window]]:
    """Windows of like sizes together, the longest first, so that little is padding.

    Args:
        parts: The windows.
        most_tokens: Most tokens of a batch, padding included; a longer window is alone.

    Yields:
        Batches; each window is in one.

    Example:
        >>> parts = [Window(at, 0, size, 1) for at, size in enumerate((2, 9, 3, 8))]
        >>> [[one.size for one in batch] for batch in batches(parts, 16)]
        [[9], [8, 3], [2]]
    """
    batch: list[Window] = []
    for part in sorted(parts, key=lambda one: (-one.size, one.text, one.start)):
        if batch and (len(batch) + 1) * batch[0].size > most_tokens:
            yield batch
            batch = []
        batch.append(part)
    if batch:
        yield batch
