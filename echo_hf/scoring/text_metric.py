"""The text rendering of a split, from the ratings by that rubric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.auditing.audit_file import Failures
from echo_hf.auditing.flagged import flagged
from echo_hf.metrics import text_rendering
from echo_hf.metrics.loading import Protocol
from echo_hf.metrics.text_rendering import RUBRIC
from echo_hf.scoring.applicable import Applicable, applicable
from echo_hf.scoring.measured import Measured
from echo_hf.scoring.picture_metrics import FITS_NONE
from echo_hf.systems.base import Task
from echo_hf.tables import RATINGS

METRIC = "text_rendering"
UNRATED = f"needs ratings by the rubric {RUBRIC}, which no judge has given"


def text_measured(
    systems: Sequence[str],
    tasks: Sequence[Task],
    ratings: pa.Table | None,
    applicability: pa.Table | None,
    protocol: Protocol,
    *,
    n_boot: int,
    failed: Failures,
) -> Iterator[Measured]:
    """Measures the text of every system.

    Args:
        systems: All systems, rated or not.
        tasks: The tasks of the split.
        ratings: Its ratings, by any rubric; null when there are none.
        applicability: Which samples have text to render, null when nobody was asked.
        protocol: The config's.
        n_boot: Draws of the bootstrap.
        failed: What judges have failed on in their audits; every figure names those of its judges.

    Yields:
        A result for each system in order; a sample that nobody rated has no number but a reason.
    """
    about = applicable(METRIC, tasks, applicability)
    rows = text_ratings(ratings)
    judges = sorted(set(rows["judge"].to_pylist()))
    for system in systems:
        if not judges or not about.fitting:
            missing = FITS_NONE if not about.fitting else UNRATED
            yield Measured(METRIC, system, about, None, missing)
            continue
        asked = _of_system(rows, system, about, judges[0])
        result = text_rendering(asked, system=system, protocol=protocol, n_boot=n_boot)
        result = replace(result, definition=flagged(result.definition, judges, failed))
        yield Measured(METRIC, system, _in_order(about, result.sample_ids), result)


def text_ratings(ratings: pa.Table | None) -> pa.Table:
    """The ratings of text.

    Args:
        ratings: Ratings by any rubric; null when there are none.

    Returns:
        Rows of `RATINGS`.
    """
    rows = RATINGS.empty() if ratings is None else ratings
    return rows.filter(pc.equal(rows["rubric"], RUBRIC))


def _of_system(rows: pa.Table, system: str, about: Applicable, judge: str) -> pa.Table:
    """The ratings of a system, with an empty one for each sample that nobody rated."""
    names = pa.array([task.sample_id for task in about.fitting], pa.string())
    own = rows.filter(pc.and_(pc.equal(rows["system"], system), pc.is_in(rows["sample_id"], names)))
    unrated = set(names.to_pylist()) - set(own["sample_id"].to_pylist())
    empty = {**dict.fromkeys(RATINGS.columns), "system": system, "judge": judge}
    added = [{**empty, "sample_id": name, "rubric": RUBRIC, "repeat": 0} for name in unrated]
    return pa.concat_tables([own, pa.Table.from_pylist(added, own.schema)])


def _in_order(about: Applicable, names: Sequence[str]) -> Applicable:
    """The same samples in the order in which the metric has them."""
    by_name = {task.sample_id: task for task in about.fitting}
    return Applicable(tuple(by_name[name] for name in names), about.unknown, about.asked)
