"""What a metric gives, as JSON."""

from __future__ import annotations

import json

from echo_hf.metrics.result import MetricResult, Unmeasured, coverage_of
from echo_hf.reasons import BadImage, ImageNotice, MetricReason


def test_a_result_is_json() -> None:
    """Reasons and notices by name, and nothing left out."""
    result = MetricResult(
        value=0.5,
        per_sample=(0.5, None),
        interval=(0.25, 0.75),
        n=1,
        coverage=0.5,
        reasons=(None, Unmeasured(MetricReason.BAD_OUTPUT, BadImage.HTML, "output: a page")),
        definition={"protocol": "corrected"},
        notices={ImageNotice.TRANSPARENT: 2},
    )
    assert json.loads(json.dumps(result.as_json(), allow_nan=False)) == {
        "value": 0.5,
        "per_sample": [0.5, None],
        "interval": [0.25, 0.75],
        "n": 1,
        "coverage": 0.5,
        "reasons": [None, {"reason": "bad_output", "cause": "html", "detail": "output: a page"}],
        "definition": {"protocol": "corrected"},
        "notices": {"transparent": 2},
    }


def test_no_samples_are_not_covered_and_not_uncovered() -> None:
    """There is no share of nothing."""
    assert coverage_of(0, 0) is None
    assert coverage_of(0, 3) == 0
