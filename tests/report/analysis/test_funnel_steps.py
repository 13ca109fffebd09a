"""The funnel as numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis.activity import funnel_steps


def _manifest(**stages: dict[str, Any]) -> Any:
    rows = [SimpleNamespace(stage=stage, counts=counts) for stage, counts in stages.items()]
    return cast("Any", SimpleNamespace(funnel=rows))


def test_each_stage_has_what_it_read_kept_and_lost() -> None:
    """Rejects and quarantine are lost; notices and tallies are not."""
    counts = {
        "rows_in": 10,
        "kept": 6,
        "rejected": {"not_relevant": 3},
        "quarantined": {"engine_error": 1},
        "noted": {"duplicate": 5},
        "tally": {"5": 6},
    }
    collect = {"rows_in": 12, "kept": 10, "rejected": {"not_json": 2}}
    steps = funnel_steps(_manifest(collect=collect, relevance=counts)).found
    assert steps is not None
    first, second = steps
    assert (first.stage, first.rows_in, first.kept, first.lost) == (
        "collect",
        12,
        10,
        {"not_json": 2},
    )
    assert second.lost == {"not_relevant": 3, "engine_error": 1}
    assert (second.reads, second.makes) == ("posts", "posts")


def test_stages_of_another_version_are_left_out() -> None:
    """A release may be older or newer than this toolkit."""
    part = funnel_steps(_manifest(divination={"rows_in": 1, "kept": 1}))
    assert (part.found, part.reason) == (None, NotAnalyzed.NO_RUN)


def test_without_a_manifest_there_is_a_reason() -> None:
    """The dataset of ECHO's authors has none."""
    assert funnel_steps(None).reason is NotAnalyzed.NO_RUN
