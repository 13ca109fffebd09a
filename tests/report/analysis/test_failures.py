"""What people say failed."""

from __future__ import annotations

from datetime import UTC, datetime

from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis.failures import PostTimes, failures
from tests.report.analysis.samples_for_analysis import sample

TIMES = PostTimes(
    {
        "u1": datetime(2026, 3, 31, 23, 59, tzinfo=UTC),
        "u2": datetime(2026, 4, 1, tzinfo=UTC),
        "u3": datetime(2026, 4, 2, tzinfo=UTC),
    }
)
SAMPLES = [
    sample("a", [("u2", "failure", "colour cast"), ("u1", "mixed", "Color-casts")]),
    sample("b", [("u3", "failure", "colour cast"), ("u9", "failure", "extra fingers")]),
    sample("c", [("u5", "success", None), ("u6", "failure", None), ("u7", None, None)]),
    sample("d", [("u8", "success", "colour cast")]),
]


def test_spellings_are_merged_and_counted() -> None:
    """Four failures by name, one without; a keyword beside a success is none."""
    found = failures(SAMPLES, TIMES).found
    assert found is not None
    first, second = found.keywords
    assert (first.keyword, first.comments, first.samples) == ("colour cast", 3, 2)
    assert first.spellings == {"colour cast": 2, "Color-casts": 1}
    assert (second.keyword, second.comments) == ("extra fingers", 1)
    assert (found.unnamed, found.untimed) == (1, 1)
    assert found.verdicts == {"failure": 4, "mixed": 1, "success": 2, "unasked": 1}


def test_months_are_those_of_utc() -> None:
    """A minute before April is March."""
    found = failures(SAMPLES, TIMES).found
    assert found is not None
    assert found.keywords[0].by_month == {"2026-03": 1, "2026-04": 2}
    assert found.keywords[1].by_month == {}


def test_examples_are_the_earliest_of_different_samples() -> None:
    """Sample a has the two earliest, and the second place goes to sample b."""
    found = failures(SAMPLES, TIMES, examples=2).found
    assert found is not None
    assert [one.post_url for one in found.keywords[0].examples] == ["u1", "u3"]
    assert found.keywords[0].examples[0].time == "2026-03-31T23:59:00+00:00"


def test_without_failures_there_is_a_reason() -> None:
    """Praise alone, or comments that nobody judged, are no failures."""
    part = failures([sample("a", [("u1", "success", None), ("u2", None, None)])], TIMES)
    assert (part.found, part.reason) == (None, NotAnalyzed.NO_COMMENTS)
