"""Invented threads of outputs that people complained about or praised, and a check's answers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CONCENTRATION = 7 / 3  # of the beta: answers in a thread correlate by 1 / (1 + 7 / 3), 0.3


class Answered(NamedTuple):
    yes: NDArray[np.int64]
    complained: NDArray[np.int64]
    threads: list[str]


def answer_threads(
    rng: np.random.Generator, count: int, sensitivity: float, specificity: float
) -> Answered:
    """Draw answers in threads of 1 to 4 outputs, half of them complaints; each has its own rate."""
    yes, complained, threads = list[int](), list[int](), list[str]()
    sizes = rng.integers(1, 5, count)
    for number, size in enumerate(sizes):
        is_complaint = number < count // 2
        mean = sensitivity if is_complaint else 1 - specificity
        rate = rng.beta(mean * CONCENTRATION, (1 - mean) * CONCENTRATION)
        yes += (rng.random(size) < rate).astype(int).tolist()
        complained += [int(is_complaint)] * int(size)
        threads += [f"t{number:03}"] * int(size)
    return Answered(np.array(yes), np.array(complained), threads)
