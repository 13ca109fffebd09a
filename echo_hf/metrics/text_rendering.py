"""Text rendering: the mean rating of the text in a system's outputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from echo_hf.errors import ScoreError, unknown
from echo_hf.metrics.base import Metric, read_card, register
from echo_hf.metrics.image_features import check_protocol
from echo_hf.metrics.result import MetricResult, Unmeasured, get_versions, make_mean_fields
from echo_hf.prompts import fill_prompt
from echo_hf.reasons import MetricReason

if TYPE_CHECKING:  # the package of scores imports datasets
    import pyarrow as pa
    from pandas import DataFrame

    from echo_hf.scores.votes import ProtocolName

RUBRIC = "text_rendering"
HIGHEST = 10.0
# What the released code reads from a judge's answer: whole numbers from 1.
PUBLISHED_SCALE = range(1, 11)


@dataclass(frozen=True, kw_only=True, repr=False)
class TextRenderingResult(MetricResult):
    """The text rendering of one system.

    Attributes:
        sample_ids: The samples in alphabetical order, which is that of `per_sample`.
        per_judge: Mean over the samples that a judge rated; null for one that rated none.
        off_scale: How many ratings are not on the scale, and do not count.
    """

    sample_ids: tuple[str, ...]
    per_judge: Mapping[str, float | None]
    off_scale: int

    def to_pandas(self) -> DataFrame:
        """Return a row for each sample, as for other metrics, with its `sample_id` first."""
        frame = super().to_pandas()
        frame.insert(0, "sample_id", list(self.sample_ids))
        return frame


def text_rendering(
    ratings: Any,
    *,
    system: str | None = None,
    protocol: ProtocolName = "corrected",
    n_boot: int = 1000,
    seed: int = 0,
) -> TextRenderingResult:
    """Return the mean rating of the text in one system's outputs, divided by 10 (section 5.2).

    A judge's repeats are averaged first, then the judges of a sample, then the samples; higher is
    better. `published` takes whole ratings from 1 to 10, which are all that the released code
    reads; `corrected` takes any from 0 to 10. Others do not count. Where the column outcome says
    that a judge was spared samples (`not_needed`), the mean is over those that all judges rated.

    Args:
        ratings: Rows with sample_id, system, judge and rating, and repeat where there are repeats;
            of a column rubric, rows of `text_rendering` count. A Dataset, a pyarrow Table, a data
            frame, a list of dicts or a dict of columns, in any order.
        system: The system; may be left out where all rows are of one.
        protocol: `corrected` or `published`.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.

    Returns:
        `value`, `interval` and `per_sample` from 0 to 1. A sample whose output no judge rated has
        no number but a reason, as one that failed does.

    Raises:
        TableError: It is no table, a column is missing, or holds something else.
        ScoreError: A rating is infinite, two rows have the same key, no row has the rubric, the
            rows are of several systems and none is named, or a choice is unknown.

    Examples:
        >>> rows = [
        ...     {"sample_id": sample, "system": "a", "judge": judge, "rating": rating}
        ...     for sample, judge, rating in [
        ...         ("s", "one", 9), ("s", "two", 6), ("t", "one", 5), ("u", "one", None)
        ...     ]
        ... ]
        >>> result = text_rendering(rows)
        >>> result.value, result.per_sample, result.coverage == 2 / 3
        (0.625, (0.75, 0.5, None), True)
    """
    from echo_hf.scores.rating_table import read_ratings, select_rubric_rows

    check_protocol(protocol)
    rows = _of_system(select_rubric_rows(ratings, RUBRIC, {}), system)
    counted, off_scale = _on_scale(rows, protocol)
    table = read_ratings(counted, rubric=RUBRIC)
    # Ratings from 0 to 1 of the one system there is [judge, sample], NaN where there is none.
    by_judge = table.ratings.reshape(len(table.judges), len(table.samples)) / HIGHEST
    asked_samples = {*table.part.samples}
    values = [
        _mean(sample_ratings) if sample in asked_samples else None
        for sample, sample_ratings in zip(table.samples, by_judge.T, strict=True)
    ]
    reasons = [
        _reason(off_scale.get(sample, []), sample in asked_samples) if value is None else None
        for sample, value in zip(table.samples, values, strict=True)
    ]
    definition = {
        "metric": "text_rendering",
        "protocol": protocol,
        "rubric": RUBRIC,
        "value": "mean over samples of the mean over judges of rating / 10",
        "direction": "higher is better",
        "scale": "whole numbers from 1 to 10" if protocol == "published" else "0 to 10",
        "versions": get_versions("echo-hf", "numpy"),
    }
    return TextRenderingResult(
        **make_mean_fields(values, reasons, definition, n_boot=n_boot, seed=seed),
        sample_ids=table.samples,
        per_judge=dict(zip(table.judges, map(_mean, by_judge), strict=True)),
        off_scale=sum(map(len, off_scale.values())),
    )


def _of_system(rows: pa.Table, system: str | None) -> pa.Table:
    import pyarrow.compute as pc

    systems = sorted(rows["system"].unique().to_pylist())
    if system is None and len(systems) > 1:
        names = ", ".join(map(repr, systems))
        fault = f"ratings of {len(systems)} systems: expected system= to name one of {names}"
        raise ScoreError(fault)
    if system is not None and systems and system not in systems:
        raise ScoreError(f"ratings: {unknown('system', system, systems)}")
    return rows if system is None else rows.filter(pc.equal(rows["system"], system))


def _on_scale(rows: pa.Table, protocol: ProtocolName) -> tuple[pa.Table, Mapping[str, list[float]]]:
    """Return the rows with null for ratings off the scale, and those ratings by sample."""
    import pyarrow as pa

    ratings = rows["rating"].to_numpy()
    on_scale = (ratings >= 0) & (ratings <= HIGHEST)
    if protocol == "published":
        on_scale = np.isin(ratings, PUBLISHED_SCALE)
    off_scale: Mapping[str, list[float]] = defaultdict(list)
    for at in np.flatnonzero(~on_scale & ~np.isnan(ratings)):
        off_scale[rows["sample_id"][at].as_py()].append(float(ratings[at]))
    kept = pa.array(ratings, mask=~on_scale)
    return rows.set_column(rows.column_names.index("rating"), "rating", kept), off_scale


def _mean(values: NDArray[np.float64]) -> float | None:
    rated = values[~np.isnan(values)]
    return float(rated.mean()) if len(rated) else None


def _reason(off_scale: list[float], was_asked: bool) -> Unmeasured:
    values = ", ".join(sorted(map(repr, set(off_scale))))
    unrated = Unmeasured(MetricReason.UNRATED if was_asked else MetricReason.SPARED)
    return Unmeasured(MetricReason.OFF_SCALE, detail=f"rated {values}") if values else unrated


@register
class TextRenderingMetric(Metric):
    """The text rendering of the outputs of a run, as its judges rate it."""

    name, title = RUBRIC, "Text rendering"
    about = "how well the text in one system's outputs is written, as judges rate it, from 0 to 1"
    splits = ("text_to_image",)
    question = fill_prompt("judging/measure_text_rendering", {}).text
    paper_name, compares_samples = "Text Rendering Accuracy", False
    needs, rubric, bounds = ("ratings",), RUBRIC, (0, 1)
    card = read_card(name)
    function, result = staticmethod(text_rendering), TextRenderingResult
