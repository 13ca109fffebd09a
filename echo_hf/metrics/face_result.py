"""From the faces of samples to the face identity of a system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from echo_hf.metrics.estimate import mean_of
from echo_hf.metrics.face_comparison import Found
from echo_hf.metrics.face_match import FaceMatch
from echo_hf.metrics.result import MetricResult, Unmeasured, coverage_of
from echo_hf.metrics.seen import Seen, notices_of, reasons_of
from echo_hf.reasons import MetricReason


@dataclass(frozen=True, kw_only=True)
class FaceIdentityResult(MetricResult):
    """The face identity of one system.

    A face that an output lost lowers `coverage`, not `value`: the count of `no_face_in_output`
    belongs beside the number.

    Attributes:
        matches: For each sample the two faces that are most alike, also where the protocol drops
            their cosine; null where there are no two.
    """

    matches: tuple[FaceMatch | None, ...]


def result_of(
    samples: Sequence[Seen[Found]],
    rule: Callable[[Found], float | Unmeasured],
    definition: Mapping[str, Any],
    *,
    n_boot: int,
    seed: int,
) -> FaceIdentityResult:
    """The face identity of samples whose faces were compared.

    Args:
        samples: All of one system, with the best pair, or why there is none, as outputs.
        rule: From the best pair of a sample, or why there is none, to its number.
        definition: Everything that decides the numbers.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.

    Returns:
        The result, with the samples in their order.

    Raises:
        ScoreError: `n_boot` is no number of draws.
    """
    found: list[Found] = [
        reason or sample.output or Unmeasured(MetricReason.MISSING_OUTPUT)
        for sample, reason in zip(samples, reasons_of(samples), strict=True)
    ]
    scores = [rule(one) for one in found]
    values = [None if isinstance(one, Unmeasured) else one for one in scores]
    estimate = mean_of(values, n_boot=n_boot, seed=seed)
    n = sum(value is not None for value in values)
    return FaceIdentityResult(
        value=estimate.value,
        per_sample=estimate.per_sample,
        interval=estimate.interval,
        n=n,
        coverage=coverage_of(n, len(values)),
        reasons=tuple(one if isinstance(one, Unmeasured) else None for one in scores),
        notices=notices_of(samples),
        definition=definition,
        matches=tuple(one if isinstance(one, FaceMatch) else None for one in found),
    )
