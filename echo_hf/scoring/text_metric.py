"""The text rendering of a split, from the ratings by that rubric."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.metrics import text_rendering
from echo_hf.metrics.loading import Protocol
from echo_hf.metrics.text_rendering import RUBRIC
from echo_hf.scoring.picture_metrics import Measured

METRIC = "text_rendering"


def text_measured(
    ratings: pa.Table | None, applicability: pa.Table | None, protocol: Protocol, *, n_boot: int
) -> Iterator[Measured]:
    """Measures the text of every system that has ratings of it.

    Args:
        ratings: Ratings of the split, by any rubric; null when there are none.
        applicability: Which samples have text to render, null when nobody was asked.
        protocol: The config's.
        n_boot: Draws of the bootstrap.

    Yields:
        A result for each system, in alphabetical order.
    """
    if ratings is None:
        return
    rows = ratings.filter(pc.equal(ratings["rubric"], RUBRIC))
    asked = applicability is not None and applicability[METRIC].null_count < len(applicability)
    if asked and applicability is not None:
        fitting = applicability.filter(pc.fill_null(applicability[METRIC], False))["sample_id"]
        rows = rows.filter(pc.is_in(rows["sample_id"], fitting.combine_chunks()))
    for system in sorted(set(rows["system"].to_pylist())):
        result = text_rendering(rows, system=system, protocol=protocol, n_boot=n_boot)
        yield Measured(METRIC, system, result.sample_ids, result, None, asked)
