"""The funnel as numbers: what each stage read, kept and lost, for a picture of it (figure 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from echo_hf.analysis.figures import Part
from echo_hf.analysis.result import FunnelStep
from echo_hf.hub.manifest import Manifest
from echo_hf.reasons import NotAnalyzed
from echo_hf.stage_result import StageStats
from echo_hf.steps import STEPS, stage_class

FunnelPart = Part[tuple[FunnelStep, ...]]


def funnel_steps(manifest: Manifest | None) -> FunnelPart:
    """The stages of a build, in order.

    Args:
        manifest: What a release says of itself; null where it says nothing.

    Returns:
        The counts of each stage that this version knows.
    """
    rows = [row for row in manifest.funnel if row.stage in STEPS] if manifest else []
    if not rows:
        return FunnelPart(reason=NotAnalyzed.NO_RUN, detail=NotAnalyzed.NO_RUN.meaning)
    stats = {row.stage: _stats(row.stage, row.counts) for row in rows}
    return FunnelPart(found=tuple(_step(one, stats) for one in stats.values()))


def _stats(stage: str, counts: Mapping[str, Any]) -> StageStats:
    made_by = stage_class(stage)
    return StageStats(
        stage=stage,
        rows_in=counts.get("rows_in", 0),
        kept=counts.get("kept", 0),
        rejected=dict(counts.get("rejected") or {}),
        quarantined=dict(counts.get("quarantined") or {}),
        tally=dict(counts.get("tally") or {}),
        reads=made_by.inputs.name,
        makes=made_by.outputs.name,
    )


def _step(one: StageStats, stats: Mapping[str, StageStats]) -> FunnelStep:
    return FunnelStep(
        stage=one.stage,
        rows_in=one.rows_in,
        kept=one.kept,
        reads=one.reads,
        makes=one.makes,
        lost={**one.rejected, **one.quarantined},
        headline=stage_class(one.stage).headline(stats),
    )
