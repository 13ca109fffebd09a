"""What the predictions and references of an `evaluate` config hold, and how they are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from datasets import Features

Stored = Mapping[str, list[Any]]


@dataclass(frozen=True)
class EvaluateColumns:
    """A kind of input of `evaluate` modules.

    Attributes:
        features: How `evaluate` stores `predictions` and, where there are any, `references`.
        meaning: What each of them is, for messages and documentation.
        store: From what the user gives, by name, to parts of rows in the form of the features:
            each part is written before the next is made.
        read: From the stored columns, as Arrow holds them, to the arguments of the measure.
        at_once: How many rows a part has at most: a column of them has to stay below 2 GB.
    """

    features: Features
    meaning: Mapping[str, str]
    store: Callable[..., Iterator[Stored]]
    read: Callable[..., tuple[Any, ...]]
    at_once: int
