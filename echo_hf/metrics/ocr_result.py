"""From the scores of samples to the OCR accuracy of a system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from echo_hf.metrics.estimate import mean_of
from echo_hf.metrics.ocr_scores import OcrScore, Reading, Rule
from echo_hf.metrics.result import Estimate, MetricResult, Unmeasured, coverage_of
from echo_hf.reasons import MetricReason, PictureNotice


@dataclass(frozen=True, kw_only=True)
class OcrAccuracyResult(MetricResult):
    """The OCR accuracy of one system: numbers that are never mixed.

    `value`, `per_sample`, `n` and `coverage` are of the samples whose prompt quotes text; the
    others have a reason there, `nothing_quoted` where the second rule measured them.

    Attributes:
        exact: Share of the quoted strings that were read without a fault, over the same samples:
            short strings have letters in common with any text, and a value that says little.
        in_vocabulary: Share of the words in an output that there are, for samples whose prompt
            quotes nothing.
        unknown_letters: How many quoted strings have no number, since the reader cannot write one
            of their letters or signs; `readings` says which.
        by: The rule that each sample was measured by: `quoted`, `vocabulary`, or null.
        readings: What was read in each output; null where none could be.
    """

    exact: Estimate
    in_vocabulary: Estimate
    unknown_letters: int
    by: tuple[Rule | None, ...]
    readings: tuple[Reading | None, ...]


def result_of(
    scores: Sequence[OcrScore | Unmeasured],
    notices: Mapping[PictureNotice, int],
    definition: Mapping[str, Any],
    *,
    n_boot: int,
    seed: int,
) -> OcrAccuracyResult:
    """The OCR accuracy of samples that were read.

    Args:
        scores: Of each sample its score, or why its output could not be read.
        notices: How many pictures had something that had to be decided on loading.
        definition: Everything that decides the numbers.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.

    Returns:
        The result, with the samples in their order.

    Raises:
        ScoreError: `n_boot` is no number of draws.
    """
    quoted, exact, known = (
        mean_of(values, n_boot=n_boot, seed=seed)
        for values in (
            [_value(one, "quoted") for one in scores],
            [one.exact if isinstance(one, OcrScore) else None for one in scores],
            [_value(one, "vocabulary") for one in scores],
        )
    )
    n = sum(value is not None for value in quoted.per_sample)
    readings = tuple(one.reading if isinstance(one, OcrScore) else None for one in scores)
    return OcrAccuracyResult(
        value=quoted.value,
        per_sample=quoted.per_sample,
        interval=quoted.interval,
        n=n,
        coverage=coverage_of(n, len(scores)),
        reasons=tuple(map(_reason, scores)),
        notices=notices,
        definition=definition,
        exact=exact,
        in_vocabulary=known,
        unknown_letters=sum(bool(quote.unknown) for one in readings if one for quote in one.quotes),
        by=tuple(one.by if isinstance(one, OcrScore) else None for one in scores),
        readings=readings,
    )


def _value(scored: OcrScore | Unmeasured, rule: Rule) -> float | None:
    return scored.value if isinstance(scored, OcrScore) and scored.by == rule else None


def _reason(scored: OcrScore | Unmeasured) -> Unmeasured | None:
    if isinstance(scored, Unmeasured):
        return scored
    nothing_quoted = Unmeasured(MetricReason.NOTHING_QUOTED)
    return nothing_quoted if scored.by == "vocabulary" else scored.unmeasured
