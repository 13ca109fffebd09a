"""From the distances of samples to the structure distance of a system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from echo_hf.metrics.estimate import mean_of
from echo_hf.metrics.result import MetricResult, Unmeasured, coverage_of
from echo_hf.metrics.seen import Seen, notices_of, reasons_of

Reduced = tuple[float | None, Unmeasured | None]


@dataclass(frozen=True, kw_only=True)
class StructureDistanceResult(MetricResult):
    """The structure distance of one system.

    Attributes:
        per_input: For each sample the distance of its output from each of its inputs, of which
            `per_sample` is the reduction; null for a sample that has no number.
    """

    per_input: tuple[tuple[float, ...] | None, ...]


def result_of(
    samples: Sequence[Seen[float]],
    rule: Callable[[Sequence[float], Unmeasured | None], Reduced],
    definition: Mapping[str, Any],
    *,
    n_boot: int,
    seed: int,
) -> StructureDistanceResult:
    """The structure distance of samples whose distances are known.

    Args:
        samples: All of one system, with the distance from each input in place of the inputs.
        rule: From the distances of a sample, and why it has no number if so, to its number.
        definition: Everything that decides the numbers.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.

    Returns:
        The result, with the samples in their order.

    Raises:
        ScoreError: `n_boot` is no number of draws.
    """
    found = [rule(one.inputs, why) for one, why in zip(samples, reasons_of(samples), strict=True)]
    estimate = mean_of([value for value, _ in found], n_boot=n_boot, seed=seed)
    reasons = tuple(reason for _, reason in found)
    n = reasons.count(None)
    return StructureDistanceResult(
        value=estimate.value,
        per_sample=estimate.per_sample,
        interval=estimate.interval,
        n=n,
        coverage=coverage_of(n, len(reasons)),
        reasons=reasons,
        notices=notices_of(samples),
        definition=definition,
        per_input=tuple(
            None if reason else one.inputs for one, reason in zip(samples, reasons, strict=True)
        ),
    )
