"""The text rendering of a split, from the ratings by that rubric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.metrics import text_rendering
from echo_hf.metrics.loading import Protocol
from echo_hf.metrics.text_rendering import RUBRIC
from echo_hf.scoring.picture_metrics import Measured
from echo_hf.tables import RATINGS

METRIC = "text_rendering"
UNRATED = f"needs ratings by the rubric {RUBRIC}, which no judge has given"


def text_measured(
    systems: Sequence[str],
    ratings: pa.Table | None,
    applicability: pa.Table | None,
    protocol: Protocol,
    *,
    n_boot: int,
) -> Iterator[Measured]:
    """Measures the text of every system.

    Args:
        systems: All systems.
        ratings: Ratings of the split, by any rubric; null when there are none.
        applicability: Which samples have text to render, null when nobody was asked.
        protocol: The config's.
        n_boot: Draws of the bootstrap.

    Yields:
        A result for each system in order; one that nobody rated says so.
    """
    rows = RATINGS.empty() if ratings is None else ratings
    rows = rows.filter(pc.equal(rows["rubric"], RUBRIC))
    asked = applicability is not None and applicability[METRIC].null_count < len(applicability)
    if asked and applicability is not None:
        fitting = applicability.filter(pc.fill_null(applicability[METRIC], False))["sample_id"]
        rows = rows.filter(pc.is_in(rows["sample_id"], fitting.combine_chunks()))
    rated = set(rows["system"].to_pylist())
    for system in systems:
        if system in rated:
            result = text_rendering(rows, system=system, protocol=protocol, n_boot=n_boot)
            yield Measured(METRIC, system, result.sample_ids, result, None, asked)
        else:
            yield Measured(METRIC, system, (), None, UNRATED, asked)
