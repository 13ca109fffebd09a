"""How long prompts are, in words and in characters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from echo_hf.analysis.figures import Part
from echo_hf.analysis.prompt_set import PromptSet
from echo_hf.analysis.result import Quartiles, SetLengths
from echo_hf.analysis.words import UnsegmentedError, word_definition, words

Lengths = Part[tuple[SetLengths, ...]]


def quartiles(values: Sequence[float]) -> Quartiles | None:
    """The middle of a distribution, between two values by linear interpolation.

    Args:
        values: Any numbers.

    Returns:
        Quartiles, null without values.

    Example:
        >>> quartiles([1, 2, 3, 4])
        Quartiles(low=1.75, median=2.5, high=3.25)
    """
    if not len(values):
        return None
    low, median, high = (float(one) for one in np.quantile(values, [0.25, 0.5, 0.75]))
    return Quartiles(low=low, median=median, high=high)


def lengths(sets: Sequence[PromptSet]) -> Lengths:
    """Measures the prompts of each set.

    Args:
        sets: The prompt sets.

    Returns:
        Quartiles by set, in the same order.
    """
    definition = {**word_definition(), "characters": "code points", "quartiles": "interpolated"}
    return Lengths(found=tuple(map(_of_set, sets)), definition=definition)


def _of_set(one: PromptSet) -> SetLengths:
    counted = [count for prompt in one.prompts if (count := _words(prompt)) is not None]
    return SetLengths(
        name=one.name,
        characters=quartiles([len(prompt) for prompt in one.prompts]),
        words=quartiles(counted),
        words_of=len(counted),
    )


def _words(prompt: str) -> int | None:
    try:
        return sum(1 for _ in words(prompt))
    except UnsegmentedError:
        return None
