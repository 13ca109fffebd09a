"""All figures of a run: win rates and the four metrics, written down with how they were made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf import metrics
from echo_hf._infra.atomic import write_json
from echo_hf.builder.build import RUNS
from echo_hf.config.evaluation import Evaluated
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ImageError, MissingExtraError, ScoreError, WeightsError, unknown
from echo_hf.hub.run_tables import RESULTS_FILE, Result
from echo_hf.images.store import ImageStore
from echo_hf.judging.audit import Failures, drift_of, flagged, read_audits, read_failures
from echo_hf.judging.rate import flags_of
from echo_hf.judging.run_tables import UNKNOWN, Models, RunTables, models_of, read_run
from echo_hf.judging.trust import Trust, trust_lines
from echo_hf.metrics import TextRenderingResult
from echo_hf.metrics.names import TEXT_RENDERING
from echo_hf.metrics.result import MetricResult, coverage_of
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Outcome, Reason
from echo_hf.scores import bounds, sensitivity, tiers, win_rate
from echo_hf.scores.board import METRIC, board_of
from echo_hf.scores.pairwise_agreement import PairwiseAgreement, pairwise_agreement
from echo_hf.scores.rating_table import RUBRIC, RatingTable, read_ratings
from echo_hf.scores.votes import PROTOCOLS, Protocol
from echo_hf.scores.win_rate import WinRate
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import benchmark_of, load_evaluation
from echo_hf.tables import RATINGS

DRAWS = 1000
_, FROM_WORDS = BENCHMARKS
NOT_ASKED = "not_asked"
FITS_NONE = "it fits no sample of this split"
UNRATED = f"needs ratings by the rubric {TEXT_RENDERING}, which no judge has given"


@dataclass(frozen=True)
class SplitWinRates:
    """The win rates of a split: rows of results, those of the protocol, tiers, and all of it."""

    results: tuple[Result, ...]
    rates: WinRate
    tiers: tuple[tuple[str, ...], ...]
    trust: Trust
    details: Mapping[str, Any]


@dataclass(frozen=True)
class Measured:
    """What one system comes to by one metric, over the samples that the metric fits.

    Of `unknown` samples nobody has said whether it fits; where nobody was asked, it fits all.
    """

    metric: str
    system: str
    fitting: tuple[Task, ...]
    unknown: int
    asked: bool
    result: MetricResult | None
    missing: str | None

    @property
    def counts(self) -> dict[str, int]:
        counts = self.result.counts if self.result else {}
        not_asked = {NOT_ASKED: self.unknown} if self.unknown else {}
        return {**{str(reason): count for reason, count in counts.items()}, **not_asked}

    def row(self, split: str, protocol: Protocol) -> Result:
        result, n = self.result, self.result.n if self.result else 0
        known = dict(result.definition) if result else {"missing": self.missing}
        known["samples"] = "samples that it was said to fit" if self.asked else "every sample"
        low, high = (result.interval if result else None) or (None, None)
        return Result(
            metric=self.metric,
            protocol=protocol,
            split=split,
            system=self.system,
            value=result.value if result else None,
            low=low,
            high=high,
            n=n,
            coverage=coverage_of(n, len(self.fitting) + self.unknown),
            definition={"metric": self.metric, **known, "without_number": self.counts},
        )

    def details(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "system": self.system,
            "samples": [task.sample_id for task in self.fitting],
            "counts": self.counts,
            "missing": self.missing,
            "result": None if self.result is None else self.result.as_json(),
        }


@dataclass(frozen=True)
class SplitScores:
    split: str
    samples: int
    win_rates: SplitWinRates | None
    metrics: tuple[Measured, ...]
    pairwise: PairwiseAgreement | None = None

    def details(self) -> dict[str, Any]:
        return {
            "samples": self.samples,
            "win_rate": self.win_rates.details if self.win_rates else None,
            "metrics": [one.details() for one in self.metrics],
            "pairwise": asdict(self.pairwise) if self.pairwise else None,
        }


@dataclass(frozen=True)
class Scores:
    """All figures of a run, and where they are written."""

    path: Path
    protocol: Protocol
    splits: tuple[SplitScores, ...]
    left_out: Mapping[str, Mapping[Reason, int]] = field(default_factory=dict)
    failed: Failures = field(default_factory=dict)
    models: Models = UNKNOWN

    @property
    def results(self) -> list[Result]:
        found: list[Result] = []
        for split in self.splits:
            found += split.win_rates.results if split.win_rates else ()
            found += [one.row(split.split, self.protocol) for one in split.metrics]
        return found


def score(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    protocol: str | None = None,
    n_boot: int = DRAWS,
) -> Scores:
    """Computes all figures of a run, and writes them to its `results.json`."""
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    if protocol is not None:
        if protocol not in PROTOCOLS:
            raise ScoreError(unknown("protocol", protocol, PROTOCOLS))
        config = config.model_copy(update={"protocol": protocol})
    folder = RunFolder(Path(runs) / config.name)
    benchmark = benchmark_of(config, folder)
    tables, failed = read_run(benchmark, folder), read_failures(folder.root)
    models, audits = models_of(config, tables), read_audits(folder.root)
    folder.enter()
    parts = (config, models, tables, folder, failed, n_boot)
    splits = tuple(_split(name, *parts) for name in tables.tasks)
    place = folder.root / RESULTS_FILE
    scores = Scores(place, config.protocol, splits, tables.left_out, failed, models)
    trusted = {one.split: one.win_rates.trust for one in splits if one.win_rates}
    drifts = {name: found for name, one in audits.items() if (found := drift_of(one["rounds"]))}
    written = {
        "benchmark": benchmark.identity(),
        "protocol": scores.protocol,
        "left_out": scores.left_out,
        "failed_audit": failed,
        "systems": {name: one.model_dump() for name, one in models.systems.items()},
        "judges": {name: one.model_dump() for name, one in models.judges.items()},
        "trust": [{**asdict(one), "meaning": one.meaning} for one in trust_lines(trusted, drifts)],
        "judge_drift": drifts,
        "results": [row.model_dump(mode="json") for row in scores.results],
        "details": {one.split: one.details() for one in splits},
    }
    write_json(scores.path, written, default=list)
    return scores


def _split(
    name: str,
    config: Evaluated,
    models: Models,
    tables: RunTables,
    folder: RunFolder,
    failed: Failures,
    n_boot: int,
) -> SplitScores:
    outputs, ratings, fits, chosen = (
        tables.of_split(one, name)
        for one in (tables.outputs, tables.ratings, tables.applicability, tables.comparisons)
    )
    tasks = tables.tasks[name]
    systems = sorted(models.systems)
    rates, pairwise, overall, found = None, None, None, list[Measured]()
    if ratings is not None and RUBRIC in ratings["rubric"].to_pylist():
        overall = read_ratings(ratings, outputs)
        rates = win_rates(name, overall, None, config.protocol, n_boot, failed, models)
    if chosen is not None and chosen.num_rows:
        pairwise = pairwise_agreement(chosen, overall, n_boot=n_boot)
    if outputs is not None and any(task.inputs for task in tasks):
        made = {(row["system"], row["sample_id"]): row for row in outputs.to_pylist()}
        edits = [task for task in tasks if task.inputs]
        for metric, accumulator in accumulators(config).items():
            measured = partial(_measured, config, accumulator, made, folder.images, n_boot)
            found += _by_system(metric, systems, edits, fits, measured)
    text = RATINGS.empty() if ratings is None else ratings
    text = text.filter(pc.equal(text["rubric"], TEXT_RENDERING))
    if tasks and (name == FROM_WORDS or text.num_rows):
        measured = partial(_text_measured, text, config.protocol, n_boot, failed)
        found += _by_system(TEXT_RENDERING, systems, tasks, fits, measured)
    return SplitScores(name, len(tasks), rates, tuple(found), pairwise)


def win_rates(
    split: str,
    ratings: RatingTable | pa.Table,
    outputs: pa.Table | None,
    protocol: Protocol,
    n_boot: int,
    failed: Mapping[str, Sequence[str]],
    models: Models = UNKNOWN,
) -> SplitWinRates:
    """Win rates by both protocols, and how far to trust them; judges vote once for all of it."""
    table = ratings if isinstance(ratings, RatingTable) else read_ratings(ratings, outputs)
    rates, results = dict[Protocol, WinRate](), list[Result]()
    for each in get_args(Protocol):
        rate = win_rate(table, protocol=each, n_boot=n_boot)
        definition = flagged(rate.definition, rate.per_judge, failed)
        rates[each] = rate = replace(rate, definition=definition)
        about: dict[str, Any] = {"metric": METRIC, "protocol": each, "split": split}
        for row in board_of(rate):
            low, high = row.interval or (None, None)
            same = {name: getattr(row, name) for name in ("system", "value", "n", "coverage")}
            results.append(Result(**about, **same, low=low, high=high, definition=definition))
    groups, trust = tiers(table, protocol=protocol), Trust.of(table, protocol, models, n_boot)
    details: dict[str, Any] = {
        **{str(each): rate.as_json() for each, rate in rates.items()},
        "tiers": asdict(groups),
        "sensitivity": asdict(sensitivity(table)),
        "bounds": asdict(bounds(table, protocol=protocol)),
        **asdict(trust),
    }
    return SplitWinRates(tuple(results), rates[protocol], groups.tiers, trust, details)


Figures = tuple[MetricResult | None, str | None]  # or why there are none


def _by_system(
    metric: str,
    systems: Sequence[str],
    tasks: Sequence[Task],
    applicability: pa.Table | None,
    measured: Callable[[str, tuple[Task, ...]], Figures],
) -> Iterator[Measured]:
    """Measures all systems by a metric, on the samples that it was said to fit."""
    said = flags_of(applicability, metric)
    asked = any(flag is not None for flag in said.values())
    flags = [said.get(task.sample_id) if asked else True for task in tasks]
    fitting = tuple(task for task, flag in zip(tasks, flags, strict=True) if flag)
    for system in systems:
        result, missing = measured(system, fitting) if fitting else (None, FITS_NONE)
        ordered = fitting
        if isinstance(result, TextRenderingResult):
            by_name = {task.sample_id: task for task in fitting}
            ordered = tuple(by_name[name] for name in result.sample_ids)
        yield Measured(metric, system, ordered, flags.count(None), asked, result, missing)


def accumulators(config: Evaluated) -> Mapping[str, Callable[[], Any]]:
    """By name what makes an image metric; inputs are looked at once for all systems."""
    protocol, options = config.protocol, config.metrics
    faces = {"cache": metrics.FaceCache(), **options.face_identity.model_dump()}
    vit = {"cache": metrics.SimilarityCache(), **options.structure_distance.model_dump()}
    return {
        "color_shift": partial(metrics.ColorShift, protocol=protocol),
        "face_identity": partial(metrics.FaceIdentity, protocol=protocol, **faces),
        "structure_distance": partial(metrics.StructureDistance, protocol=protocol, **vit),
    }


def _measured(
    config: Evaluated,
    accumulator: Callable[[], Any],
    made: Mapping[tuple[str, str], Mapping[str, Any]],
    images: ImageStore,
    n_boot: int,
    system: str,
    fitting: tuple[Task, ...],
) -> Figures:

    def read(digest: str | None) -> bytes | None:
        try:
            return None if digest is None else images.open(digest)
        except ImageError:  # the very bytes that a digest names are not there any more
            return None

    def output(task: Task) -> bytes | None:
        row = made.get((system, task.sample_id), {})
        return read(row["image"]) if row.get("outcome") == Outcome.OK else None

    # One at a time: the images of a benchmark do not fit into memory.
    inputs = ([read(image.sha256) for image in task.inputs] for task in fitting)
    try:
        metric = accumulator()
        metric.add(inputs, map(output, fitting))
        return metric.compute(n_boot=n_boot, seed=0), None
    except (MissingExtraError, WeightsError) as error:
        said = str(error)
        for place in config.metrics.places:  # of this machine, and results are published
            said = said.replace(str(place), place.name)
        return None, said


def _text_measured(
    ratings: pa.Table,
    protocol: Protocol,
    n_boot: int,
    failed: Failures,
    system: str,
    fitting: tuple[Task, ...],
) -> Figures:
    """A system's text rendering, with an empty rating for each sample that nobody rated."""
    judges = sorted(set(ratings["judge"].to_pylist()))
    if not judges:
        return None, UNRATED
    names = {task.sample_id for task in fitting}
    own = ratings.filter(pc.equal(ratings["system"], system)).to_pylist()
    rows = [row for row in own if row["sample_id"] in names]
    empty = {"system": system, "judge": judges[0], "rubric": TEXT_RENDERING, "repeat": 0}
    unrated = names.difference(row["sample_id"] for row in rows)
    rows += [{**empty, "sample_id": name} for name in unrated]
    table = pa.Table.from_pylist(rows, RATINGS.schema)
    result = metrics.text_rendering(table, system=system, protocol=protocol, n_boot=n_boot)
    return replace(result, definition=flagged(result.definition, judges, failed)), None
