"""Samples with scores become a result, without a reader."""

from __future__ import annotations

import pytest

from echo_hf.metrics.ocr_accuracy import result_of
from echo_hf.metrics.ocr_scores import OcrScore, QuoteMatch, Reading
from echo_hf.metrics.result import Unmeasured
from echo_hf.reasons import MetricReason

FULL, HALF = QuoteMatch("ab", "ab", 0, 1.0), QuoteMatch("ab", "a", 1, 0.5)
LACKING = QuoteMatch("äö", "", None, None, "äö")
UNKNOWN = Unmeasured(MetricReason.UNKNOWN_LETTERS)
MISSING = Unmeasured(MetricReason.MISSING_OUTPUT)


def _read(*quotes: QuoteMatch) -> Reading:
    return Reading((), (), quotes, 0, None)


def test_each_number_is_the_mean_of_its_own_samples() -> None:
    """By hand, and none is mixed with another."""
    scores = [
        OcrScore("quoted", 0.75, 0.5, None, _read(FULL, HALF, LACKING)),
        OcrScore("quoted", 0.5, 0.0, None, _read(HALF)),
        OcrScore("vocabulary", 0.8, None, None, _read()),
        OcrScore(None, None, None, UNKNOWN, _read(LACKING)),
        MISSING,
    ]
    result = result_of(scores, {}, {}, n_boot=0, seed=0)
    assert result.value == pytest.approx(0.625)
    assert result.exact.value == pytest.approx(0.25)
    assert result.in_vocabulary.value == pytest.approx(0.8)
    assert result.per_sample == (0.75, 0.5, None, None, None)
    assert result.exact.per_sample == (0.5, 0.0, None, None, None)
    assert result.by == ("quoted", "quoted", "vocabulary", None, None)
    assert (result.n, result.coverage, result.unknown_letters) == (2, 0.4, 2)
    assert result.counts == {
        MetricReason.NOTHING_QUOTED: 1,
        MetricReason.UNKNOWN_LETTERS: 1,
        MetricReason.MISSING_OUTPUT: 1,
    }
    assert [one is None for one in result.readings] == [False] * 4 + [True]
