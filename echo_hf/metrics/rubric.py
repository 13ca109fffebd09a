"""Figures of rubrics: the mean rating of a system's outputs, or the share of yes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from echo_hf.config.evaluation import EvaluationBase
from echo_hf.config.rubrics import OVERALL, PUBLISHED_SCALE, RUBRICS, SPEAKS_TO_JUDGE, Rubric, Scale
from echo_hf.errors import ScoreError, unknown
from echo_hf.metrics.base import Metric, list_measured
from echo_hf.metrics.result import (
    MetricReason,
    MetricResult,
    Unmeasured,
    get_versions,
    make_mean_fields,
)

if TYPE_CHECKING:  # the package of scores imports datasets
    import pyarrow as pa
    from pandas import DataFrame

    from echo_hf.scores.votes import ProtocolName

Numbers = NDArray[np.float64]
# Takes ratings and the judge of each; gives numbers, NaN for a rating that is off its scale.
Converter = Callable[[Numbers, Sequence[str]], Numbers]


@dataclass(frozen=True, kw_only=True, repr=False)
class RubricResult(MetricResult):
    """One system's result by the ratings of a rubric.

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


def average_ratings(
    ratings: Any,
    rubric: str,
    convert: Converter,
    definition: Mapping[str, Any],
    system: str | None = None,
    *,
    divisor: float = 1.0,
    n_boot: int,
    seed: int,
) -> RubricResult:
    """Average a judge's repeats, then the judges of a sample, then the samples of one system."""
    import pyarrow as pa

    from echo_hf.scores.rating_table import find_scalar_judges, read_ratings, select_rubric_rows
    from echo_hf.tables import select_first_draws

    rows = _select_system(select_first_draws(select_rubric_rows(ratings, rubric, {})), system)
    raw = rows["rating"].to_numpy()
    judges = rows["judge"].to_pylist()
    # A number without a scale is on none.
    has_scale = ~np.isin(judges, sorted(find_scalar_judges(rows)))
    numbers = np.where(has_scale, convert(raw, judges), np.nan)
    off_scale: Mapping[str, list[float]] = defaultdict(list)
    for at in np.flatnonzero(np.isnan(numbers) & ~np.isnan(raw)):
        off_scale[rows["sample_id"][at].as_py()].append(float(raw[at]))
    column = pa.array(numbers, mask=np.isnan(numbers))
    counted = rows.set_column(rows.column_names.index("rating"), "rating", column)
    table = read_ratings(counted, rubric=rubric)
    # Numbers of the one system there is [judge, sample], NaN where there is none.
    by_judge = table.ratings.reshape(len(table.judges), len(table.samples)) / divisor
    asked_samples = {*table.part.samples}
    values = [
        _average(sample_ratings) if sample in asked_samples else None
        for sample, sample_ratings in zip(table.samples, by_judge.T, strict=True)
    ]
    reasons = [
        _find_reason(off_scale.get(sample, []), sample in asked_samples) if value is None else None
        for sample, value in zip(table.samples, values, strict=True)
    ]
    return RubricResult(
        **make_mean_fields(values, reasons, definition, n_boot=n_boot, seed=seed),
        sample_ids=table.samples,
        per_judge=dict(zip(table.judges, map(_average, by_judge), strict=True)),
        off_scale=sum(map(len, off_scale.values())),
    )


def _select_system(rows: pa.Table, system: str | None) -> pa.Table:
    import pyarrow.compute as pc

    systems = sorted(rows["system"].unique().to_pylist())
    if system is None and len(systems) > 1:
        names = ", ".join(map(repr, systems))
        fault = f"ratings of {len(systems)} systems: expected system= to name one of {names}"
        raise ScoreError(fault)
    if system is not None and systems and system not in systems:
        raise ScoreError(f"ratings: {unknown('system', system, systems)}")
    return rows if system is None else rows.filter(pc.equal(rows["system"], system))


def _average(numbers: Numbers) -> float | None:
    rated = numbers[~np.isnan(numbers)]
    return float(rated.mean()) if len(rated) else None


def _find_reason(off_scale: list[float], was_asked: bool) -> Unmeasured:
    values = ", ".join(sorted(map(repr, set(off_scale))))
    unrated = Unmeasured(MetricReason.UNRATED if was_asked else MetricReason.SPARED)
    return Unmeasured(MetricReason.OFF_SCALE, detail=f"rated {values}") if values else unrated


def make_rubric_metric(rubric: Rubric, scales: Mapping[str, Scale]) -> type[Metric]:
    """Make the metric of a rubric; `scales` are those of judges that have one of their own."""
    is_share = rubric.answer == "yes_no"
    lowest, highest = scale = (0.0, 1.0) if is_share else rubric.scale or PUBLISHED_SCALE

    def convert(ratings: Numbers, judges: Sequence[str]) -> Numbers:
        own = (scale if is_share else scales.get(judge, scale) for judge in judges)
        low, high = np.array(list(own), np.float64).reshape(-1, 2).T
        on_scale = (ratings >= low) & (ratings <= high)
        position = (ratings - low) / (high - low)  # of judges with scales of their own
        return np.where(on_scale, lowest + position * (highest - lowest), np.nan)

    class RubricMetric(Metric):
        name, title, better = rubric.name, rubric.label, rubric.better
        about = f"{'the share of yes to' if is_share else 'the mean rating by'} {rubric.label}"
        splits = rubric.splits or Metric.splits
        question, needs, bounds = rubric.question, ("ratings",), scale
        result = RubricResult

        def measure(
            self, *columns: Any, protocol: ProtocolName, options: Any, names: Sequence[str]
        ) -> MetricResult:
            del options, names
            definition = {
                "metric": rubric.name,
                "title": rubric.label,
                "protocol": protocol,
                "rubric": rubric.name,
                "value": "share of yes, mean over samples of the mean over judges"
                if is_share
                else "mean over samples of the mean over judges",
                "direction": f"{rubric.better} is better",
                "scale": f"{lowest:g} to {highest:g}",
                "versions": get_versions("echo-hf", "numpy"),
            }
            (ratings,) = columns
            draws: Any = {"n_boot": self.n_boot, "seed": self.seed}
            return average_ratings(ratings, rubric.name, convert, definition, **draws)

    RubricMetric.rubric = rubric.name
    return RubricMetric


def list_figures(config: EvaluationBase, rated: Collection[str] = ()) -> list[type[Metric]]:
    """Return the metrics of a run, and of each rubric that has no metric of its own.

    The rubrics are those of the config's judges, and those that `rated` names and are known here.
    """
    metrics = list_measured(config.metrics.root)
    measured = {metric.rubric for metric in metrics if "ratings" in metric.needs}
    own = {rubric.name: rubric for rubric in config.rubrics}
    known = {name for name in rated if name in own or name in RUBRICS.list_names()}
    known = known.union(*(judge.rubrics for judge in config.judges))
    rubrics = known - {OVERALL, SPEAKS_TO_JUDGE, *measured}
    scales = {judge.name: judge.scale for judge in config.judges if judge.scale}
    return metrics + [
        make_rubric_metric(config.find_rubric(name), scales) for name in sorted(rubrics)
    ]
