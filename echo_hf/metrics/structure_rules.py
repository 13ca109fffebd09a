"""From self-similarities to distances, and how the two protocols differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Literal, NamedTuple

import numpy as np

from echo_hf.errors import ScoreError, unknown
from echo_hf.metrics.loading import Protocol, check_protocol
from echo_hf.metrics.result import Unmeasured
from echo_hf.metrics.seen import Seen
from echo_hf.metrics.squashed import Squashed
from echo_hf.metrics.vit_keys import Similarity
from echo_hf.reasons import MetricReason

Reduction = Literal["min", "max", "mean"]
REDUCTIONS: Mapping[Reduction, Callable[[Sequence[float]], float]] = {
    "min": min,
    "max": max,
    "mean": fmean,
}


class Rule(NamedTuple):
    """What a protocol decides.

    Attributes:
        loader: How pictures are loaded.
        reduction: Which of the distances from several inputs is the sample's.
        zero: What a distance of 0 is.
    """

    loader: str
    reduction: Reduction
    zero: str


RULES: Mapping[Protocol, Rule] = {
    "published": Rule("plain conversion to RGB", "max", "taken for a missing output"),
    "corrected": Rule("echo_hf.load_rgb", "min", "a distance"),
}


def check_choices(protocol: Protocol, reduction: Reduction | None, **numbers: int) -> None:
    """Refuses choices that there are not, and numbers that are none.

    Args:
        protocol: `published` or `corrected`.
        reduction: `min`, `max`, `mean`, or null for that of the protocol.
        numbers: By name; whole ones, from 1, and `layer` from 0.

    Raises:
        ScoreError: Refused.
    """
    check_protocol(protocol)
    if reduction is not None and reduction not in REDUCTIONS:
        raise ScoreError(unknown("reduction", reduction, REDUCTIONS))
    for name, number in numbers.items():
        least = 0 if name == "layer" else 1
        if not isinstance(number, int) or number < least:
            raise ScoreError(f"{name} is {number!r}: expected a whole number from {least}")


def squared_difference(one: Similarity, other: Similarity) -> float:
    """The mean squared difference of two self-similarities.

    Args:
        one: Array [token, token] from -1 to 1.
        other: Likewise.

    Returns:
        From 0 to 4.

    Example:
        >>> squared_difference(np.eye(2, dtype=np.float32), np.ones((2, 2), np.float32))
        0.5
    """
    return float(np.square(one - other).mean(dtype=np.float64))


def distanced(sample: Seen[Squashed], found: Mapping[bytes, Similarity]) -> Seen[float]:
    """A sample with distances in place of its pictures.

    Args:
        sample: Its pictures.
        found: The self-similarities of all of them, by the digest of a picture.

    Returns:
        The sample with the distance of its output from each input; with none where it is not
        measured, and with the reason where one of them is not finite.
    """
    distances: tuple[float, ...] = ()
    if sample.unmeasured is None and sample.output is not None:
        made = found[sample.output.digest]
        distances = tuple(squared_difference(found[one.digest], made) for one in sample.inputs)
    unmeasured = sample.unmeasured or failed_of(distances)
    return Seen(distances, None, unmeasured, sample.digests, sample.notices)


def failed_of(distances: Sequence[float]) -> Unmeasured | None:
    """Why distances are none: weights or sums that overflow make numbers that are not finite.

    Args:
        distances: Of an output from each of its inputs.

    Returns:
        The reason, with the first of them that is not finite; null where all are.

    Example:
        >>> failed_of([0.25]), failed_of([0.25, math.nan]).detail
        (None, 'the distance from input 2 is nan')
    """
    for number, distance in enumerate(distances, 1):
        if not math.isfinite(distance):
            detail = f"the distance from input {number} is {distance}"
            return Unmeasured(MetricReason.MODEL_FAILED, detail=detail)
    return None


def reduced(
    distances: Sequence[float], reason: Unmeasured | None, protocol: Protocol, reduction: Reduction
) -> tuple[float | None, Unmeasured | None]:
    """The distance of a sample, or why it has none.

    Args:
        distances: Of its output from each of its inputs.
        reason: Why it cannot be measured, if so.
        protocol: The released code writes 0 for a missing output and then leaves out every 0, so
            that in `published` a sample with that distance has no number.
        reduction: Which distance counts.

    Returns:
        The number and null, or null and the reason.

    Example:
        >>> reduced([0.25, 0.5], None, "published", "max")
        (0.5, None)
    """
    if reason is not None:
        return None, reason
    distance = REDUCTIONS[reduction](distances)
    if distance == 0 and protocol == "published":
        return None, Unmeasured(MetricReason.ZERO_DISTANCE)
    return distance, None
