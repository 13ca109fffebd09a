"""Validity of measures: whether metrics and checks tell what people complain about in posts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
from pydantic import NonNegativeInt

from echo_hf._infra.bootstrap import Unscored
from echo_hf.config.evaluation import MetricsOptions
from echo_hf.curate.feedback import normalize_keyword
from echo_hf.errors import ScoreError
from echo_hf.images.store import ImageStore
from echo_hf.judging.complaints import CommentedSample, ComplaintGroup
from echo_hf.judging.figures import FigureModel
from echo_hf.judging.rate import compute_random_key, read_flags
from echo_hf.judging.score import read_image, run_metric
from echo_hf.metrics.base import Better, Metric, registered
from echo_hf.reasons import Reason
from echo_hf.scores.certificate import MIN_THREADS
from echo_hf.scores.validity import (
    MIN_AUC,
    Validity,
    ValidityVerdict,
    certificate_validity,
    validity,
)
from echo_hf.scores.votes import ProtocolName
from echo_hf.systems.checks import Check, select_newest

FEWEST_THREADS = 5  # of each kind: with fewer a group is counted, and not measured
MAX_THREADS = 100  # of each kind, drawn by a hash
MAX_GROUPS = 12
NOT_FITTING = "not_fitting"  # among the reasons of outputs without a number
NEEDS_RATINGS = "judges rate the outputs of systems, and none in posts"
OutputKey = tuple[str, int]  # a sample, and which of its outputs


class MeasureValidity(FigureModel):
    """How well a measure separates the outputs that a group complains about from praised ones.

    `complaints`, `praise` and threads are those with a number; `without_number` counts the others.
    """

    measure: str
    auc: float | None
    low: float | None
    high: float | None
    threshold: float | None
    j: float | None
    verdict: ValidityVerdict
    complaints: NonNegativeInt
    praise: NonNegativeInt
    complaint_threads: NonNegativeInt
    praise_threads: NonNegativeInt
    without_number: Mapping[str, NonNegativeInt] = {}
    reason: Unscored | None = None


class GroupValidity(FigureModel):
    """A failure that people name, and each measure beside it; none where threads are too few."""

    keyword: str
    spellings: Mapping[str, NonNegativeInt]
    complaint_threads: NonNegativeInt
    praise_threads: NonNegativeInt
    measures: tuple[MeasureValidity, ...] = ()

    def find(self, measure: str) -> MeasureValidity | None:
        return next((each for each in self.measures if each.measure == measure), None)


class Measure(FigureModel):
    """A metric or a kept check; `missing` says why it was not held against complaints."""

    name: str
    title: str
    kind: Literal["metric", "check"]
    better: Better
    missing: str | None = None


class ComplaintMeasures(FigureModel):
    """Complaints of people, and what each measure sees of them.

    `left_out` counts the samples with comments that are no evidence.
    """

    groups: tuple[GroupValidity, ...]
    measures: tuple[Measure, ...]
    left_out: Mapping[str, NonNegativeInt] = {}


@dataclass(frozen=True)
class MeasureOptions:
    """The metrics that are asked, and how."""

    metrics: MetricsOptions = field(default_factory=lambda: MetricsOptions({}))
    protocol: ProtocolName = "corrected"
    applicability: pa.Table | None = None
    checks: Sequence[Check] = ()
    n_boot: int = 1000
    seed: int = 0


def measure_complaints(
    groups: Sequence[ComplaintGroup],
    images: ImageStore,
    options: MeasureOptions,
    left_out: Mapping[Reason, int],
) -> ComplaintMeasures:
    """Hold every measure against the groups of complaints; each output is measured once."""
    chosen = {
        group.keyword: [*_draw_threads(group.complaints), *_draw_threads(group.praised)]
        for group in groups[:MAX_GROUPS]
        if min(count_threads(group.complaints), count_threads(group.praised)) >= FEWEST_THREADS
    }
    samples = {sample.sample_id: sample for part in chosen.values() for sample in part}
    measures, cells = list[Measure](), dict[str, list[MeasureValidity]]()
    for metric_class in registered().values():
        metric = metric_class(n_boot=0, seed=options.seed)
        missing, numbers = _find_reason(metric, options), dict[OutputKey, float | str]()
        if missing is None and samples:
            missing, numbers = _measure_outputs(metric, samples.values(), images, options)
        fields = {"name": metric.name, "title": metric.title, "better": metric.better}
        measures.append(Measure(**fields, kind="metric", missing=missing))
        for group in groups if missing is None else ():
            if group.keyword in chosen:
                cell = _measure_metric(metric, group, chosen[group.keyword], numbers, options)
                cells.setdefault(group.keyword, []).append(cell)
    for check in select_newest(options.checks).values():
        if check.status != "kept" or check.deciding is None:
            continue
        fields = {"name": check.key, "title": check.title, "better": "lower"}
        measures.append(Measure(**fields, kind="check"))
        forms = {normalize_keyword(keyword) for keyword in check.keywords}
        for group in groups:
            if group.forms & forms:
                cell = _write_cell(check.key, certificate_validity(check.deciding.certificate))
                cells.setdefault(group.keyword, []).append(cell)
    return ComplaintMeasures(
        groups=tuple(
            GroupValidity(
                keyword=group.keyword,
                spellings=group.spellings,
                complaint_threads=count_threads(group.complaints),
                praise_threads=count_threads(group.praised),
                measures=tuple(cells.get(group.keyword, ())),
            )
            for group in groups
        ),
        measures=tuple(measures),
        left_out={str(reason): count for reason, count in left_out.items()},
    )


def describe_measures(options: MeasureOptions) -> dict[str, Any]:
    """Return what decides which outputs are measured, and when a measure means what people mean."""
    return {
        "outputs": "those in posts: with a complaint of the group, and praised ones without any",
        "auc": "chance that an output complained about is worse than a praised one",
        "check": "(1 + J) / 2 of its certificate, of the vote or else the first judge",
        "yes": {"auc": MIN_AUC, "interval": "above 0.5", "threads_of_each_kind": MIN_THREADS},
        "measured": {"threads_of_each_kind": FEWEST_THREADS, "at_most": MAX_THREADS},
        "groups": MAX_GROUPS,
        "protocol": options.protocol,
        "n_boot": options.n_boot,
        "seed": options.seed,
    }


def count_threads(samples: Iterable[CommentedSample]) -> int:
    return len({sample.thread for sample in samples})


def _draw_threads(samples: Sequence[CommentedSample]) -> list[CommentedSample]:
    threads = {sample.thread for sample in samples}
    order = sorted(threads, key=lambda thread: compute_random_key(0, "validity", thread))
    drawn = set(order[:MAX_THREADS])
    return [sample for sample in samples if sample.thread in drawn]


def _find_reason(metric: Metric, options: MeasureOptions) -> str | None:
    if "ratings" in metric.needs:
        return NEEDS_RATINGS
    if metric.enabled or metric.name in options.metrics.root:
        return None
    return f"it is measured where a config names it (metrics: {{{metric.name}: {{}}}})"


def _measure_outputs(
    metric: Metric, samples: Iterable[CommentedSample], images: ImageStore, options: MeasureOptions
) -> tuple[str | None, dict[OutputKey, float | str]]:
    """Return the number of each output, or the reason for none; or what the metric lacks."""
    flags = read_flags(options.applicability, metric.name)
    numbers, fitting = dict[OutputKey, float | str](), list[CommentedSample]()
    for sample in samples:
        has_inputs = sample.inputs or "inputs" not in metric.needs
        is_fit = sample.split in metric.splits and flags.get(sample.sample_id) is not False
        if has_inputs and is_fit:
            fitting.append(sample)
        else:
            keys = ((sample.sample_id, at) for at in range(len(sample.outputs)))
            numbers |= dict.fromkeys(keys, NOT_FITTING)
    # A metric takes one output of a sample at a time.
    for at in range(max((len(sample.outputs) for sample in fitting), default=0)):
        part = [sample for sample in fitting if at < len(sample.outputs)]
        names = [sample.sample_id for sample in part]
        try:
            result, missing = run_metric(
                metric, _make_columns(part, at, images), names, options.metrics, options.protocol
            )
        except ScoreError as error:  # of a plug-in: the others have their figures
            result, missing = None, str(error)
        if result is None:
            return missing, {}
        own_order = getattr(result, "sample_ids", ()) or names
        for name, number, reason in zip(own_order, result.per_sample, result.reasons, strict=True):
            without = str(reason.reason) if reason else NOT_FITTING
            numbers[name, at] = without if number is None else number
    return None, numbers


def _make_columns(
    samples: Sequence[CommentedSample], at: int, images: ImageStore
) -> dict[str, Callable[[], Any]]:
    return {
        "inputs": lambda: (
            [read_image(images, digest) for digest in sample.inputs] for sample in samples
        ),
        "outputs": lambda: (read_image(images, sample.outputs[at]) for sample in samples),
        "prompts": lambda: [sample.prompt for sample in samples],
    }


def _measure_metric(
    metric: Metric,
    group: ComplaintGroup,
    samples: Iterable[CommentedSample],
    numbers: Mapping[OutputKey, float | str],
    options: MeasureOptions,
) -> MeasureValidity:
    complaining = {sample.sample_id for sample in group.complaints}
    without, rows = Counter[str](), list[tuple[float, bool, str]]()
    for sample in samples:
        for at in range(len(sample.outputs)):
            value = numbers[sample.sample_id, at]
            if isinstance(value, str):
                without[value] += 1
            else:
                rows.append((value, sample.sample_id in complaining, sample.thread))
    values, complained, threads = zip(*rows, strict=True) if rows else ((), (), ())
    separation = validity(
        values, complained, threads, better=metric.better, n_boot=options.n_boot, seed=options.seed
    )
    return _write_cell(metric.name, separation, without)


def _write_cell(
    name: str, separation: Validity, without_number: Mapping[str, int] | None = None
) -> MeasureValidity:
    low, high = separation.interval or (None, None)
    complaints, praise = separation.outputs
    complaint_threads, praise_threads = separation.threads
    return MeasureValidity(
        measure=name,
        auc=separation.auc,
        low=low,
        high=high,
        threshold=separation.threshold,
        j=separation.j,
        verdict=separation.verdict,
        complaints=complaints,
        praise=praise,
        complaint_threads=complaint_threads,
        praise_threads=praise_threads,
        without_number=dict(sorted((without_number or {}).items())),
        reason=separation.reason,
    )
