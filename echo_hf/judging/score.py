"""Compute all figures of a run and write them down: win rates, metrics, agreement."""

from __future__ import annotations

import datetime
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf import scores
from echo_hf._infra.atomic import write_json
from echo_hf._infra.bootstrap import Interval
from echo_hf._infra.registry import OWN_PACKAGE
from echo_hf._infra.text import percent, pluralize
from echo_hf.config.evaluation import EvaluationBase, MetricsOptions
from echo_hf.errors import ImageError, MissingExtraError, RunError, ScoreError, WeightsError
from echo_hf.hub.run_tables import (
    AGREEMENT_FILE,
    CERTIFICATES,
    RESULTS_FILE,
    STRENGTH,
    CertificateFacts,
    ResultRow,
)
from echo_hf.images.store import ImageStore
from echo_hf.judging.anchors import Anchors, select_anchors
from echo_hf.judging.audit import add_failed, find_drift, read_audits, read_failures
from echo_hf.judging.certificates import collect_facts, read_certificates, select_overall
from echo_hf.judging.choice_board import make_choice_rows, score_choices
from echo_hf.judging.failure_rates import (
    find_misfits,
    make_result_rows,
    measure_checks,
    save_checks,
)
from echo_hf.judging.labels import tally_labels
from echo_hf.judging.rate import read_flags
from echo_hf.judging.reliability import has_several_draws, make_reliability_rows, score_reliability
from echo_hf.judging.results import (
    FailedAudits,
    SavedCheck,
    SavedChoices,
    SavedFailureRate,
    SavedHumanCorrected,
    SavedIdentity,
    SavedReliability,
    SavedResults,
    SavedSealed,
    SavedSlices,
    SavedSpeech,
    SavedSplit,
    SavedWinRates,
)
from echo_hf.judging.ruler import update_ruler
from echo_hf.judging.sealed import make_sealed_rows, read_sealed_tables, score_dates, score_sealed
from echo_hf.judging.slices import make_slice_rows, read_kinds, score_slices
from echo_hf.judging.speaks_to_judge import count_speech, make_speech_rows, read_speech
from echo_hf.judging.trust import ContaminationFigure, Trust, collect_trust_lines
from echo_hf.metrics.base import Metric, registered
from echo_hf.metrics.result import MetricResult, coverage_of, describe_error
from echo_hf.metrics.rubric import list_figures
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Reason
from echo_hf.scores.agreement import Agreement, agreement
from echo_hf.scores.pairwise_agreement import Way
from echo_hf.scores.rating_table import RUBRIC, DrawChoice, RatingTable, read_ratings
from echo_hf.scores.votes import ProtocolName
from echo_hf.scores.win_rate import METRIC, make_board
from echo_hf.systems.base import Task
from echo_hf.systems.checks import Check
from echo_hf.systems.evaluation_run import EvaluationRun, RunOrConfig
from echo_hf.systems.run_tables import UNKNOWN, Models, RunTables, read_human_file, read_models
from echo_hf.tables import DRAW, HUMAN, RATINGS, Outcome, fill_draws

logger = logging.getLogger(__name__)
BOOTSTRAP_DRAWS = 1000
HUMAN_CORRECTED = "win_rate_human_corrected"
TARGET_HALF_WIDTH = 0.03  # half an interval; people are told how many rankings give it
NOT_ASKED_KEY = "not_asked"
NO_FITTING_SAMPLE = "it fits no sample of this split"


Worth = Mapping[Way, Mapping[str, CertificateFacts]]


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
    checks: tuple[SavedFailureRate, ...] = ()
    sealed: SavedSealed | None = None
    dated: scores.Contamination | None = None
    overall: RatingTable | None = None
    reliability: SavedReliability | None = None
    speech: tuple[SavedSpeech, ...] = ()
    choices: SavedChoices | None = None
    slices: SavedSlices | None = None

    def describe(self) -> SavedSplit:
        return SavedSplit(
            samples=self.samples,
            win_rate=self.win_rates.details if self.win_rates else None,
            metrics=[metric.describe() for metric in self.metrics],
            pairwise=self.pairwise,
            choices=self.choices,
            by_people=_describe_people(self.by_people) if self.by_people else None,
            checks=self.checks,
            sealed=self.sealed,
            dated=self.dated,
            reliability=self.reliability,
            speaks_to_judge=self.speech,
            slices=self.slices,
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
    checks: tuple[SavedCheck, ...] = ()
    worth: Worth = field(default_factory=dict)  # of judges

    @property
    def results(self) -> list[ResultRow]:
        rows: list[ResultRow] = []
        for split in self.splits:
            if split.win_rates:
                rows += (self._add_worth(row, "pointwise") for row in split.win_rates.results)
            if isinstance(split.by_people, scores.HumanCorrected):
                rows += _people_rows(split.by_people, split.split, self.failed)
            if split.choices and split.choices.is_board:
                counted = split.split, self.protocol, split.samples, self.failed
                chosen = make_choice_rows(split.choices, *counted)
                rows += (self._add_worth(row, "pairwise") for row in chosen)
            rows += [metric.build_row(split.split, self.protocol) for metric in split.metrics]
            context = self.checks, split.split, self.protocol, split.samples
            rows += make_result_rows(split.checks, *context)
            if split.reliability and split.reliability.result:
                found = split.reliability.result
                rows += make_reliability_rows(found, split.split, self.protocol, split.samples)
            rows += make_speech_rows(split.speech, split.split, self.protocol)
            if split.sealed:
                rows += make_sealed_rows(split.sealed, split.split, self.protocol)
            if split.slices:
                rows += make_slice_rows(split.slices, split.split, self.protocol)
        return rows

    def _add_worth(self, row: ResultRow, way: Way) -> ResultRow:
        """Add to a figure's definition what its judges are worth."""
        names = row.definition.get("judges") if isinstance(row.definition, dict) else None
        if not isinstance(row.definition, dict) or not isinstance(names, list):
            return row
        worth = self.worth.get(way, {})
        facts = {
            str(name): worth[str(name)].model_dump(mode="json", exclude_defaults=True)
            for name in names
            if name in worth
        }
        known = {CERTIFICATES: facts} if facts else {}
        return row.model_copy(update={"definition": {**row.definition, **known}})


def score(
    config: RunOrConfig,
    *,
    runs: Path | str | None = None,
    protocol: str | None = None,
    n_boot: int = BOOTSTRAP_DRAWS,
    by: Sequence[str] | None = None,
    since: datetime.date | str | None = None,
    demand: str | None = None,
) -> Scores:
    """Compute all figures of a run, and write them to its `results.json`.

    Where the run carries samples of older releases, all systems are also put on one scale. What is
    given of `by`, `since` and `demand` stands in place of that key of the config's `slices`.
    """
    run = EvaluationRun.from_config(config, runs, protocol=protocol)
    config, folder, benchmark = run.asked_config, run.folder, run.benchmark
    options = config.slices.replace(by=by, since=since, demand=demand)
    tables, failed = run.read_tables(), read_failures(folder.root)
    models = read_models(config, tables)
    folder.log_entry()
    anchors = select_anchors(config, benchmark, tables, models)
    checks = run.read_checks()
    scored_run = ScoredRun(config, folder, tables, failed, n_boot, models, checks)
    sealed_tables = read_sealed_tables(run)
    splits = list[SplitScores]()
    kinds = {name: read_kinds(benchmark, name, options) for name in tables.tasks}
    for name in tables.tasks:
        split = scored_run.score_split(name, anchors.get(name, {}))
        if (overall := split.overall) is not None:
            dated = score_dates(config, benchmark, overall, name)
            split = replace(split, dated=dated)
            if not options.is_empty:
                slices = score_slices(options, overall, kinds[name], config.protocol, n_boot)
                split = replace(split, slices=slices)
        if sealed_tables is not None:
            sealed = score_sealed(tables, sealed_tables, name, config.protocol, n_boot)
            split = replace(split, sealed=sealed)
        splits.append(split)
    path = folder.root / RESULTS_FILE
    saved_checks, left_out = save_checks(checks), tables.left_out
    certificates = read_certificates(folder.root)
    rates = [split.win_rates.rates for split in splits if split.win_rates]
    boards = [split.choices for split in splits if split.choices and split.choices.is_board]
    raters = {judge for rate in rates for judge in rate.per_judge}
    choosers = {str(judge) for board in boards for judge in board.strengths.definition["judges"]}
    judged: dict[Way, tuple[pa.Table | None, set[str]]] = {
        "pointwise": (select_overall(tables.ratings), raters),
        "pairwise": (tables.comparisons, choosers),
    }
    worth = {
        way: collect_facts(certificates, rows, judges, way)
        for way, (rows, judges) in judged.items()
        if judges
    }
    run_scores = Scores(
        path, config.protocol, tuple(splits), left_out, failed, models, saved_checks, worth
    )
    trusted = {split.split: split.win_rates.trust for split in splits if split.win_rates}
    compared = {split.split: split.pairwise for split in splits if split.pairwise}
    audits = read_audits(folder.root)
    rounds = {name: audit["rounds"] for name, audit in audits.items()}
    tested = collect_contamination(splits)
    pictures = {name: parts for name, audit in audits.items() if (parts := audit.get("pictures"))}
    drifts = {name: drift for name, turns in rounds.items() if (drift := find_drift(turns))}
    SavedResults(
        benchmark=SavedIdentity(**benchmark.identity()),
        protocol=run_scores.protocol,
        left_out=run_scores.left_out,
        failed_audit=failed,
        applicability=tables.fits_from,
        systems=models.systems,
        judges=models.judges,
        trust=tuple(collect_trust_lines(trusted, drifts, compared, tested, worth, pictures)),
        judge_pictures=pictures,
        judge_drift=drifts,
        certificates={
            judge: certificates[judge]
            for judge in sorted(certificates.keys() & (raters | choosers))
        },
        uncertified={
            way: {judge: facts.reason for judge, facts in by_judge.items() if facts.reason}
            for way, by_judge in worth.items()
        },
        checks=saved_checks,
        results=tuple(run_scores.results),
        details={split.split: split.describe() for split in splits},
    ).write(path)
    update_ruler(run)
    return run_scores


def collect_contamination(splits: Iterable[SplitScores]) -> Iterator[ContaminationFigure]:
    """Yield what was tested of training, by split and measure."""
    for split in splits:
        if split.sealed:
            yield "contamination", split.split, split.sealed.contamination
        if split.dated:
            yield "dated_contamination", split.split, split.dated


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
    checks: tuple[Check, ...] = ()

    def score_split(self, name: str, anchors: Anchors) -> SplitScores:
        tables, protocol = self.tables, self.config.protocol
        ratings, comparisons, human = (
            tables.select_split(table, name)
            for table in (tables.ratings, tables.comparisons, tables.human)
        )
        rates, pairwise, overall = None, None, None
        by_people: scores.HumanCorrected | str | None = None
        if ratings is not None and RUBRIC in ratings["rubric"].to_pylist():
            overall = self.read_overall(name)
            rates = score_win_rates(
                name, overall, protocol, self.n_boot, self.failed, self.models, anchors
            )
            try:
                # People rank first outputs.
                is_first = overall.draws == "first"
                first = overall if is_first or not human else self.read_overall(name, "first")
                by_people = scores.human_corrected(first, human) if human else None
            except ScoreError as error:
                by_people = str(error)
        choices = None
        if comparisons is not None and comparisons.num_rows:
            choices = score_choices(comparisons, human, self.config)
            people = None if isinstance(by_people, str) else human or None
            pairwise = scores.pairwise_agreement(comparisons, overall, people, n_boot=self.n_boot)
        rated = [] if tables.ratings is None else tables.ratings["rubric"].unique().to_pylist()
        measured = sorted(list_figures(self.config, rated), key=attrgetter("name"))
        systems = sorted(self.models.systems)
        figures = tuple(self.measure(name, measured, systems))
        misfits = {
            check.key: find_misfits(tables.applicability, check.key) for check in self.checks
        }
        labels = tally_labels(tables.labels)
        failures = measure_checks(self.checks, ratings, labels, systems, misfits)
        samples = len(tables.tasks[name])
        figures_of = name, samples, rates, figures, pairwise, by_people, failures
        reliability = self.score_reliability(name, figures, misfits)
        outputs = tables.select_split(tables.outputs, name)
        speech = count_speech(read_speech(self.folder.root), outputs, ratings)
        beside: Any = {"overall": overall, "reliability": reliability, "choices": choices}
        return SplitScores(*figures_of, **beside, speech=speech)

    def score_reliability(
        self, split: str, figures: Sequence[SystemMetric], misfits: Mapping[str, frozenset[str]]
    ) -> SavedReliability | None:
        """Score how often systems succeed; null where each drew one output of a sample."""
        outputs, ratings = (
            self.tables.select_split(table, split) for table in self.tables.of_draws("all")
        )
        if not has_several_draws(outputs, ratings):
            return None
        options, rated = self.config.success, RATINGS.make_empty() if ratings is None else ratings
        values = list[Mapping[str, Any]]()
        named = () if isinstance(options.rule, str) else options.rule
        draws = np.union1d(*(table[DRAW] for table in (outputs or rated, rated))).tolist()
        for figure, draw in product(figures, draws):
            if figure.metric not in named or not figure.fitting:
                continue
            result, names = figure.result, [task.sample_id for task in figure.fitting]
            if draw:
                metric = registered()[figure.metric](n_boot=0, seed=0)
                own = outputs and outputs.filter(pc.equal(outputs[DRAW], draw))
                is_own = pc.and_(
                    pc.equal(rated[DRAW], draw), pc.equal(rated["rubric"], metric.rubric)
                )
                # Metrics of ratings read those of first outputs.
                of_draw = rated.filter(is_own).drop_columns([DRAW])
                given = figure.fitting, own, fill_draws(of_draw, RATINGS)
                result, _ = self._measure_system(metric, figure.system, *given)
            if result is not None:
                about = {"system": figure.system, DRAW: draw, "metric": figure.metric}
                names = getattr(result, "sample_ids", names)
                values += (
                    {**about, "sample_id": name, "value": value}
                    for name, value in zip(names, result.per_sample, strict=True)
                )
        kept = {check.key: misfits[check.key] for check in self.checks if check.status == "kept"}
        return score_reliability(outputs, ratings, options, kept, values)

    def read_overall(self, split: str, draws: DrawChoice | None = None) -> RatingTable:
        """Read the ratings of a split that its board is made of."""
        draws = draws or self.config.draws
        tables = self.tables.of_draws(draws)
        outputs, ratings = (self.tables.select_split(table, split) for table in tables)
        return read_ratings(ratings, outputs, draws=draws)

    def measure(
        self, split: str, chosen: Iterable[type[Metric]], systems: Sequence[str]
    ) -> Iterator[SystemMetric]:
        """Measure systems by metrics, each on the samples that it fits."""
        tables = self.tables
        parts = (tables.outputs, tables.ratings, tables.applicability)
        outputs, ratings, fits = (tables.select_split(table, split) for table in parts)
        for metric_class in chosen:
            metric, needs = metric_class(n_boot=self.n_boot, seed=0), metric_class.needs
            tasks = [task for task in tables.tasks[split] if task.inputs or "inputs" not in needs]
            rated = RATINGS.make_empty() if ratings is None else ratings
            rated = rated.filter(pc.equal(rated["rubric"], metric.rubric))
            is_rated = "ratings" in needs and rated.num_rows
            is_drawn = outputs is not None or not {"inputs", "outputs"} & {*needs}
            if not tasks or not is_drawn or not (split in metric.splits or is_rated):
                continue
            flags: Sequence[bool | None] = [True] * len(tasks)
            flag_by_sample = read_flags(fits, metric.name)
            was_asked = any(flag is not None for flag in flag_by_sample.values())
            if was_asked:
                flags = [flag_by_sample.get(task.sample_id) for task in tasks]
            fitting = tuple(task for task, flag in zip(tasks, flags, strict=True) if flag)
            for system in systems:
                measured: MetricOrReason = None, NO_FITTING_SAMPLE
                if fitting:
                    measured = self._measure_system(metric, system, fitting, outputs, rated)
                (result, missing), ordered = measured, fitting
                if result is not None and (names := getattr(result, "sample_ids", ())):
                    by_name = {task.sample_id: task for task in fitting}
                    ordered = tuple(by_name[name] for name in names)
                unknown = flags.count(None)
                yield SystemMetric(
                    metric.name, system, ordered, unknown, was_asked, result, missing
                )

    def _measure_system(
        self,
        metric: Metric,
        system: str,
        fitting: FittingTasks,
        outputs: pa.Table | None,
        rated: pa.Table,
    ) -> MetricOrReason:
        images = self.folder.images
        own = outputs and outputs.filter(pc.equal(outputs["system"], system))
        digests = {
            row["sample_id"]: row["image"]
            for row in (own.to_pylist() if own else ())
            if row["outcome"] == Outcome.OK
        }
        judges = sorted(set(rated["judge"].to_pylist()))
        if "ratings" in metric.needs and not judges:
            return None, f"needs ratings by the rubric {metric.rubric}, which no judge has given"
        names = tuple(task.sample_id for task in fitting)
        columns: Mapping[str, Callable[[], Any]] = {
            # Read one at a time: all images of a benchmark would not fit into memory.
            "inputs": lambda: (
                [read_image(images, image.sha256) for image in task.inputs] for task in fitting
            ),
            "outputs": lambda: (read_image(images, digests.get(name)) for name in names),
            "prompts": lambda: [task.prompt for task in fitting],
            "ratings": lambda: _select_ratings(rated, system, metric.rubric, judges, names),
        }
        settings = self.config.metrics
        result, missing = run_metric(metric, columns, names, settings, self.config.protocol)
        if result is None:
            return None, missing
        definition = {"direction": f"{metric.better} is better", **result.definition}
        if "ratings" in metric.needs:
            definition = dict(add_failed(definition, judges, self.failed))
        return replace(result, definition=definition), None


def read_image(images: ImageStore, digest: str | None) -> bytes | None:
    try:
        return None if digest is None else images.open(digest)
    except ImageError:  # the store no longer holds exactly these bytes
        return None


def run_metric(
    metric: Metric,
    columns: Mapping[str, Callable[[], Any]],
    names: Sequence[str],
    settings: MetricsOptions,
    protocol: ProtocolName,
) -> MetricOrReason:
    """Measure outputs by a metric, or say what it lacks; `columns` gives what it may need."""
    options = settings.root.get(metric.name) or metric.Options()
    try:
        metric.check_installed()
        given = (columns[need]() for need in metric.needs)
        result = metric.measure(*given, protocol=protocol, options=options, names=names)
    except (MissingExtraError, WeightsError) as error:
        message = str(error)
        # Results are published: they name no path of this machine.
        for place in settings.places:
            message = message.replace(str(place), place.name)
        return None, message
    except Exception as error:
        if type(metric).__module__.partition(".")[0] == OWN_PACKAGE:
            raise
        logger.warning("metric %r failed", metric.name, exc_info=True)
        return None, f"it failed: {describe_error(error)}"
    if {len(result.per_sample), len(result.reasons)} != {len(names)}:
        raise ScoreError(
            f"metric {metric.name!r} gave {len(result.per_sample)} numbers and "
            f"{len(result.reasons)} reasons for {len(names)} samples: expected one of each, "
            "null for none; mend its package"
        )
    numbers = (result.value, *result.per_sample)
    if not all(math.isfinite(number) for number in numbers if number is not None):
        raise ScoreError(
            f"metric {metric.name!r} gave a number that is not finite: expected null and a "
            "reason where there is none; mend its package"
        )
    return result, None


def _select_ratings(
    rated: pa.Table, system: str, rubric: str, judges: Sequence[str], names: Sequence[str]
) -> pa.Table:
    """Select a system's ratings of samples, with an empty one for a sample that nobody rated."""
    own = rated.filter(pc.equal(rated["system"], system)).to_pylist()
    rows = [row for row in own if row["sample_id"] in {*names}]
    empty = {"system": system, "judge": judges[0], "rubric": rubric, "repeat": 0}
    unrated = {*names}.difference(row["sample_id"] for row in rows)
    rows += [{**empty, "sample_id": name} for name in unrated]
    return pa.Table.from_pylist(rows, RATINGS.schema)


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
