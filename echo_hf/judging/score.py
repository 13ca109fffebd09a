"""Compute all figures of a run and write them down: win rates, metrics, agreement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf import metrics, scores
from echo_hf._infra.atomic import write_json
from echo_hf._infra.bootstrap import Interval
from echo_hf._infra.text import percent, pluralize
from echo_hf.config.evaluation import EvaluationBase
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ImageError, MissingExtraError, RunError, ScoreError, WeightsError
from echo_hf.hub.run_tables import AGREEMENT_FILE, RESULTS_FILE, STRENGTH, ResultRow
from echo_hf.judging.anchors import Anchors, select_anchors
from echo_hf.judging.audit import add_failed, find_drift, read_audits, read_failures
from echo_hf.judging.rate import read_flags
from echo_hf.judging.results import (
    FailedAudits,
    SavedHumanCorrected,
    SavedIdentity,
    SavedResults,
    SavedSplit,
    SavedWinRates,
)
from echo_hf.judging.trust import Trust, collect_trust_lines
from echo_hf.metrics import TEXT_RENDERING, TextRenderingResult
from echo_hf.metrics.result import MetricResult, coverage_of
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Outcome, Reason
from echo_hf.scores.agreement import Agreement, agreement
from echo_hf.scores.rating_table import RUBRIC, RatingTable, read_ratings
from echo_hf.scores.votes import ProtocolName
from echo_hf.scores.win_rate import METRIC, make_board
from echo_hf.systems.base import Task
from echo_hf.systems.evaluation_run import EvaluationRun, RunOrConfig
from echo_hf.systems.run_tables import UNKNOWN, Models, RunTables, read_human_file, read_models
from echo_hf.tables import HUMAN, RATINGS

BOOTSTRAP_DRAWS = 1000
_, TEXT_TO_IMAGE = BENCHMARKS
HUMAN_CORRECTED = "win_rate_human_corrected"
TARGET_HALF_WIDTH = 0.03  # half an interval; people are told how many rankings give it
NOT_ASKED_KEY = "not_asked"
NO_FITTING_SAMPLE = "it fits no sample of this split"
NO_TEXT_RATINGS = f"needs ratings by the rubric {TEXT_RENDERING}, which no judge has given"


@dataclass(frozen=True)
class SplitWinRates:
    """The win rates of a split: rows of results, rates by the run's protocol, tiers and details."""

    results: tuple[ResultRow, ...]
    rates: scores.WinRate
    tiers: tuple[tuple[str, ...], ...]
    trust: Trust
    details: SavedWinRates


@dataclass(frozen=True)
class SystemMetric:
    """One system's result by one metric, over the samples that the metric fits.

    Of `unknown` samples nobody has said whether it fits; where nobody was asked, it fits all.
    """

    metric: str
    system: str
    fitting: tuple[Task, ...]
    unknown: int
    was_asked: bool
    result: MetricResult | None
    missing: str | None

    @property
    def counts(self) -> dict[str, int]:
        counts = self.result.counts if self.result else {}
        not_asked = {NOT_ASKED_KEY: self.unknown} if self.unknown else {}
        return {**{str(reason): count for reason, count in counts.items()}, **not_asked}

    def build_row(self, split: str, protocol: ProtocolName) -> ResultRow:
        result, n = self.result, self.result.n if self.result else 0
        fields = dict(result.definition) if result else {"missing": self.missing}
        fields["samples"] = "samples that it was said to fit" if self.was_asked else "every sample"
        definition = {"metric": self.metric, **fields, "without_number": self.counts}
        columns = {"metric": self.metric, "protocol": protocol, "split": split, "n": n}
        columns["coverage"] = coverage_of(n, len(self.fitting) + self.unknown)
        value, interval = (result.value, result.interval) if result else (None, None)
        return _row(columns, self.system, value, interval, definition)

    def describe(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "system": self.system,
            "samples": [task.sample_id for task in self.fitting],
            "counts": self.counts,
            "missing": self.missing,
            "result": None if self.result is None else self.result.as_json(),
        }


def _row(
    columns: Mapping[str, Any],
    system: str,
    value: float | None,
    interval: Interval | None,
    definition: Mapping[str, Any],
) -> ResultRow:
    low, high = interval or (None, None)
    figure: dict[str, Any] = {"system": system, "value": value, "low": low, "high": high}
    return ResultRow(**columns, **figure, definition=definition)


@dataclass(frozen=True)
class SplitScores:
    """All figures of a split; a string in `by_people` says why people's win rates are missing."""

    split: str
    samples: int
    win_rates: SplitWinRates | None
    metrics: tuple[SystemMetric, ...]
    pairwise: scores.PairwiseAgreement | None = None
    by_people: scores.HumanCorrected | str | None = None

    def describe(self) -> SavedSplit:
        return SavedSplit(
            samples=self.samples,
            win_rate=self.win_rates.details if self.win_rates else None,
            metrics=[metric.describe() for metric in self.metrics],
            pairwise=self.pairwise,
            by_people=_describe_people(self.by_people) if self.by_people else None,
        )


@dataclass(frozen=True)
class Scores:
    """All figures of a run, and the file they are written to."""

    path: Path
    protocol: ProtocolName
    splits: tuple[SplitScores, ...]
    left_out: Mapping[str, Mapping[Reason, int]] = field(default_factory=dict)
    failed: FailedAudits = field(default_factory=dict)
    models: Models = UNKNOWN

    @property
    def results(self) -> list[ResultRow]:
        rows: list[ResultRow] = []
        for split in self.splits:
            rows += split.win_rates.results if split.win_rates else ()
            if isinstance(split.by_people, scores.HumanCorrected):
                rows += _people_rows(split.by_people, split.split, self.failed)
            rows += [metric.build_row(split.split, self.protocol) for metric in split.metrics]
        return rows


def score(
    config: RunOrConfig,
    *,
    runs: Path | str | None = None,
    protocol: str | None = None,
    n_boot: int = BOOTSTRAP_DRAWS,
) -> Scores:
    """Compute all figures of a run, and write them to its `results.json`."""
    run = EvaluationRun.from_config(config, runs, protocol=protocol)
    config, folder, benchmark = run.config, run.folder, run.benchmark
    tables, failed = run.read_tables(), read_failures(folder.root)
    models, audits = read_models(config, tables), read_audits(folder.root)
    folder.log_entry()
    anchors = select_anchors(config, benchmark, tables, models)
    scored_run = ScoredRun(config, folder, tables, failed, n_boot, models)
    splits = tuple(scored_run.score_split(name, anchors.get(name, {})) for name in tables.tasks)
    path = folder.root / RESULTS_FILE
    run_scores = Scores(path, config.protocol, splits, tables.left_out, failed, models)
    trusted = {split.split: split.win_rates.trust for split in splits if split.win_rates}
    compared = {split.split: split.pairwise for split in splits if split.pairwise}
    all_drifts = {name: find_drift(audit["rounds"]) for name, audit in audits.items()}
    drifts = {name: drift for name, drift in all_drifts.items() if drift}
    lines = collect_trust_lines(trusted, drifts, compared)
    results = SavedResults(
        benchmark=SavedIdentity(**benchmark.identity()),
        protocol=run_scores.protocol,
        left_out=run_scores.left_out,
        failed_audit=failed,
        applicability=tables.fits_from,
        systems=models.systems,
        judges=models.judges,
        trust=[{**asdict(line), "meaning": line.meaning} for line in lines],
        judge_drift=drifts,
        results=tuple(run_scores.results),
        details={split.split: split.describe() for split in splits},
    )
    results.write(path)
    return run_scores


MetricOrReason = tuple[MetricResult | None, str | None]  # or why there is no result
FittingTasks = tuple[Task, ...]


@dataclass(frozen=True)
class ScoredRun:
    """The inputs from which the figures of a run are computed."""

    config: EvaluationBase
    folder: RunFolder
    tables: RunTables
    failed: FailedAudits = field(default_factory=dict)
    n_boot: int = 0
    models: Models = UNKNOWN

    def score_split(self, name: str, anchors: Anchors) -> SplitScores:
        tables, protocol = self.tables, self.config.protocol
        outputs, ratings, comparisons, human = (
            tables.select_split(table, name)
            for table in (tables.outputs, tables.ratings, tables.comparisons, tables.human)
        )
        rates, pairwise, by_people, overall = None, None, None, None
        if ratings is not None and RUBRIC in ratings["rubric"].to_pylist():
            overall = read_ratings(ratings, outputs)
            rates = score_win_rates(
                name, overall, protocol, self.n_boot, self.failed, self.models, anchors
            )
            by_people = _correct_by_people(overall, human) if human else None
        if comparisons is not None and comparisons.num_rows:
            people = None if isinstance(by_people, str) else human or None
            pairwise = scores.pairwise_agreement(comparisons, overall, people, n_boot=self.n_boot)
        figures = tuple(self.measure(name, image_metrics(self.config), sorted(self.models.systems)))
        return SplitScores(name, len(tables.tasks[name]), rates, figures, pairwise, by_people)

    def measure(
        self,
        split: str,
        measures: Mapping[str, Callable[..., MetricResult]],
        systems: Sequence[str],
    ) -> Iterator[SystemMetric]:
        """Measure systems by the given image metrics, and by text rendering."""
        tasks, tables = self.tables.tasks[split], self.tables
        parts = (tables.outputs, tables.ratings, tables.applicability)
        outputs, ratings, fits = (tables.select_split(table, split) for table in parts)
        edits = [task for task in tasks if task.inputs]
        if outputs is not None and edits:
            output_rows = {(row["system"], row["sample_id"]): row for row in outputs.to_pylist()}
            for metric, measure in measures.items():
                by_images = partial(self._measure_images, measure, output_rows)
                yield from _measure_each_system(metric, systems, edits, fits, by_images)
        text_ratings = RATINGS.make_empty() if ratings is None else ratings
        text_ratings = text_ratings.filter(pc.equal(text_ratings["rubric"], TEXT_RENDERING))
        if tasks and (split == TEXT_TO_IMAGE or text_ratings.num_rows):
            by_ratings = partial(self._measure_ratings, text_ratings)
            yield from _measure_each_system(TEXT_RENDERING, systems, tasks, fits, by_ratings)

    def _measure_images(
        self,
        measure: Callable[..., MetricResult],
        output_rows: Mapping[tuple[str, str], Mapping[str, Any]],
        system: str,
        fitting: FittingTasks,
    ) -> MetricOrReason:
        def read_image(digest: str | None) -> bytes | None:
            try:
                return None if digest is None else self.folder.images.open(digest)
            except ImageError:  # the store no longer holds exactly these bytes
                return None

        def read_output(task: Task) -> bytes | None:
            row = output_rows.get((system, task.sample_id), {})
            return read_image(row["image"]) if row.get("outcome") == Outcome.OK else None

        # Read one at a time: all images of a benchmark would not fit into memory.
        inputs = ([read_image(image.sha256) for image in task.inputs] for task in fitting)
        try:
            return measure(inputs, map(read_output, fitting), n_boot=self.n_boot, seed=0), None
        except (MissingExtraError, WeightsError) as error:
            message = str(error)
            # Results are published: they name no path of this machine.
            for place in self.config.metrics.places:
                message = message.replace(str(place), place.name)
            return None, message

    def _measure_ratings(
        self, ratings: pa.Table, system: str, fitting: FittingTasks
    ) -> MetricOrReason:
        """Measure a system's text rendering; samples that nobody rated count as empty ratings."""
        judges = sorted(set(ratings["judge"].to_pylist()))
        if not judges:
            return None, NO_TEXT_RATINGS
        names = {task.sample_id for task in fitting}
        own = ratings.filter(pc.equal(ratings["system"], system)).to_pylist()
        rows = [row for row in own if row["sample_id"] in names]
        empty = {"system": system, "judge": judges[0], "rubric": TEXT_RENDERING, "repeat": 0}
        unrated = names.difference(row["sample_id"] for row in rows)
        rows += [{**empty, "sample_id": name} for name in unrated]
        table, protocol = pa.Table.from_pylist(rows, RATINGS.schema), self.config.protocol
        result = metrics.text_rendering(table, system=system, protocol=protocol, n_boot=self.n_boot)
        definition = add_failed(result.definition, judges, self.failed)
        return replace(result, definition=definition), None


def _measure_each_system(
    metric: str,
    systems: Sequence[str],
    tasks: Sequence[Task],
    applicability: pa.Table | None,
    measure: Callable[[str, FittingTasks], MetricOrReason],
) -> Iterator[SystemMetric]:
    """Measure all systems by a metric, on the samples that it fits."""
    flag_by_sample = read_flags(applicability, metric)
    was_asked = any(flag is not None for flag in flag_by_sample.values())
    flags = [flag_by_sample.get(task.sample_id) if was_asked else True for task in tasks]
    fitting = tuple(task for task, flag in zip(tasks, flags, strict=True) if flag)
    for system in systems:
        result, missing = measure(system, fitting) if fitting else (None, NO_FITTING_SAMPLE)
        ordered = fitting
        if isinstance(result, TextRenderingResult):
            by_name = {task.sample_id: task for task in fitting}
            ordered = tuple(by_name[name] for name in result.sample_ids)
        yield SystemMetric(metric, system, ordered, flags.count(None), was_asked, result, missing)


def image_metrics(config: EvaluationBase) -> Mapping[str, Callable[..., MetricResult]]:
    """Return the image metrics by name; each input is analyzed once for all systems."""
    protocol, options = config.protocol, config.metrics
    faces = {"cache": metrics.InputCache(), **options.face_identity.model_dump()}
    vit = {"cache": metrics.InputCache(), **options.structure_distance.model_dump()}
    return {
        "color_shift": partial(metrics.color_shift, protocol=protocol),
        "face_identity": partial(metrics.face_identity, protocol=protocol, **faces),
        "structure_distance": partial(metrics.structure_distance, protocol=protocol, **vit),
    }


def score_win_rates(
    split: str,
    table: RatingTable,
    protocol: ProtocolName,
    n_boot: int,
    failed: Mapping[str, Sequence[str]],
    models: Models = UNKNOWN,
    anchors: Anchors | None = None,
) -> SplitWinRates:
    """Compute win rates by both protocols, and how far to trust them."""
    rates, results = dict[ProtocolName, scores.WinRate](), list[ResultRow]()
    for protocol_name in get_args(ProtocolName):
        rate = scores.win_rate(table, protocol=protocol_name, n_boot=n_boot)
        definition = add_failed(rate.definition, rate.per_judge, failed)
        rates[protocol_name] = rate = replace(rate, definition=definition)
        columns: dict[str, Any] = {"metric": METRIC, "protocol": protocol_name, "split": split}
        for row in make_board(rate):
            counted = {**columns, "n": row.n, "coverage": row.coverage}
            results.append(_row(counted, row.system, row.value, row.interval, definition))
    groups = scores.tiers(table, protocol=protocol)
    trust = Trust.from_ratings(table, protocol, models, n_boot, rates[protocol].coverage, anchors)
    details = SavedWinRates(
        **rates,
        **vars(trust),
        tiers=groups,
        sensitivity=scores.sensitivity(table),
        bounds=scores.bounds(table, protocol=protocol),
        decisions=scores.decisions(table, protocol=protocol) if table.is_stopped else None,
        anchors=anchors or {},
    )
    if anchors:
        anchor_rows = {name: anchor.model_dump(mode="json") for name, anchor in anchors.items()}
        fitted = trust.bradley_terry
        columns = {"metric": STRENGTH, "protocol": protocol, "split": split}
        for name, value in fitted.strength.items():
            definition = {**fitted.definition, "anchor": anchor_rows.get(name)}
            results.append(_row(columns, name, value, fitted.interval[name], definition))
    return SplitWinRates(tuple(results), rates[protocol], groups.tiers, trust, details)


def _correct_by_people(rated: RatingTable, human: pa.Table) -> scores.HumanCorrected | str:
    try:
        return scores.human_corrected(rated, human)
    except ScoreError as error:
        return str(error)


def _people_rows(
    human: scores.HumanCorrected, split: str, failed: FailedAudits
) -> Iterator[ResultRow]:
    counts = {"ranked": human.ranked, "samples": human.samples}
    definition = add_failed({**human.definition, **counts}, human.definition["judges"], failed)
    columns: dict[str, Any] = {"metric": HUMAN_CORRECTED, "protocol": "corrected", "split": split}
    columns |= {"n": human.ranked, "coverage": coverage_of(human.ranked, human.samples)}
    for system, rate in human.win_rate.items():
        missing = {} if rate is not None else {"missing": human.reasons[system]}
        yield _row(columns, system, rate, human.interval[system], {**definition, **missing})


def _describe_people(human: scores.HumanCorrected | str) -> SavedHumanCorrected:
    """Describe people's win rates, how much judges add to them, and the rankings still missing."""
    if isinstance(human, str):
        return SavedHumanCorrected(missing=human, said=f"no win rates by people: {human}")
    effective_sizes = [size for size in human.effective_n.values() if size is not None]
    explained = max(human.rho2 or 0.0, 0.0)
    needed = human.n_for(TARGET_HALF_WIDTH)
    missing = "no" if needed is None or needed <= human.ranked else f"{needed - human.ranked:,}"
    samples = pluralize(human.samples, "sample")
    summary = (
        f"people ranked {human.ranked:,} of {samples}; judges explain "
        f"{percent(explained)} of how people's verdicts vary (rho2)"
        + (f": as good as {fmean(effective_sizes):,.0f} without judges" if effective_sizes else "")
        + (f"; intervals of ±{TARGET_HALF_WIDTH} need {missing} more" if needed else "")
    )
    return SavedHumanCorrected(said=summary, result=human)


@dataclass(frozen=True)
class RunAgreement:
    """How far judges agree with people, over all samples and in each split."""

    path: Path
    merged: Agreement
    splits: Mapping[str, Agreement]
    left_out: Mapping[str, Mapping[Reason, int]]
    failed: FailedAudits = field(default_factory=dict)


def measure_agreement(
    config: RunOrConfig,
    *,
    runs: Path | str | None = None,
    human: Path | None = None,
    protocol: str | None = None,
    n_boot: int = BOOTSTRAP_DRAWS,
) -> RunAgreement:
    """Compare a run's judges with people, and write the figures to its `agreement.json`."""
    run = EvaluationRun.from_config(config, runs, protocol=protocol)
    config, folder, benchmark = run.config, run.folder, run.benchmark
    tables = run.read_tables(None if human is None else read_human_file(human))
    ranks, ratings = tables.human, tables.ratings
    if ranks is None or not ranks.num_rows:
        lost = sum(tables.left_out.get(HUMAN.name, {}).values())
        raise RunError(
            f"people ranked nothing of the benchmark in {str(folder.root)!r}, and {lost} ranks are "
            "of other samples: run `echo-hf rank` with this config first, or name a file of ranks "
            "with its sample_ids (--human FILE)"
        )
    folder.log_entry()

    def compare_ranks(ranks: pa.Table, rated: pa.Table | None) -> Agreement:
        overall = rated is not None and RUBRIC in rated["rubric"].to_pylist()
        return agreement(ranks, rated if overall else None, protocol=config.protocol, n_boot=n_boot)

    parts = {name: tables.select_split(ranks, name) for name in tables.tasks}
    ranked = {name: part for name, part in parts.items() if part}
    splits: dict[str, Agreement] = {}
    for name, part in ranked.items() if len(ranked) > 1 else ():
        samples = part["sample_id"].unique()
        rated = ratings and ratings.filter(pc.is_in(ratings["sample_id"], samples))
        splits[name] = compare_ranks(part, rated)
    path, failed = folder.root / AGREEMENT_FILE, read_failures(folder.root)
    figures = RunAgreement(path, compare_ranks(ranks, ratings), splits, tables.left_out, failed)
    payload = {
        "benchmark": benchmark.identity(),
        "protocol": figures.merged.protocol,
        "left_out": tables.left_out,
        "failed_audit": failed,
        "merged": figures.merged.as_json(),
        "splits": {name: split_agreement.as_json() for name, split_agreement in splits.items()},
    }
    write_json(path, payload)
    return figures
