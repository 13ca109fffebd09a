"""All figures of a run: win rates and the four metrics, written down with how they were made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args
from typing import Protocol as TypingProtocol

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
from echo_hf.judging.audit_file import Failures, flagged, read_failures
from echo_hf.judging.run_tables import RunTables, read_run, systems_in
from echo_hf.metrics import text_rendering
from echo_hf.metrics.result import MetricResult, coverage_of
from echo_hf.metrics.samples import Protocol as MetricProtocol
from echo_hf.metrics.text_rendering import RUBRIC as TEXT_RUBRIC
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Outcome, Reason
from echo_hf.scores import bounds, sensitivity, tiers, win_rate
from echo_hf.scores.pairwise_agreement import PairwiseAgreement, pairwise_agreement
from echo_hf.scores.rating_table import RUBRIC
from echo_hf.scores.votes import PROTOCOLS, Protocol
from echo_hf.scores.win_rate import WinRate
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import benchmark_of, load_evaluation
from echo_hf.tables import RATINGS

METRIC = "win_rate"


@dataclass(frozen=True)
class SplitWinRates:
    results: tuple[Result, ...]
    rates: WinRate
    tiers: tuple[tuple[str, ...], ...]
    details: Mapping[str, Any]


def win_rates(
    split: str,
    ratings: pa.Table,
    outputs: pa.Table | None,
    protocol: Protocol,
    n_boot: int,
    failed: Mapping[str, Sequence[str]],
) -> SplitWinRates:
    rates = {
        each: _flagged(win_rate(ratings, outputs, protocol=each, n_boot=n_boot), failed)
        for each in get_args(Protocol)
    }
    groups = tiers(ratings, outputs, protocol=protocol)
    details = {
        **{each: rate.as_json() for each, rate in rates.items()},
        "tiers": asdict(groups),
        "sensitivity": asdict(sensitivity(ratings, outputs)),
        "bounds": asdict(bounds(ratings, outputs, protocol=protocol)),
    }
    results = (row for each, rate in rates.items() for row in _results(split, rate))
    return SplitWinRates(tuple(results), rates[protocol], groups.tiers, details)


def _flagged(rate: WinRate, failed: Mapping[str, Sequence[str]]) -> WinRate:
    """The same rates, with the judges that failed their audits in the definition."""
    return replace(rate, definition=flagged(rate.definition, rate.per_judge, failed))


def _results(split: str, rate: WinRate) -> Iterator[Result]:
    for system, value in rate.win_rate.items():
        low, high = rate.interval[system] or (None, None)
        yield Result(
            metric=METRIC,
            protocol=rate.protocol,
            split=split,
            system=system,
            value=value,
            low=low,
            high=high,
            n=sum(rate.pairs[system].values()),
            coverage=rate.coverage[system],
            definition=dict(rate.definition),
        )


@dataclass(frozen=True)
class Applicable:
    fitting: tuple[Task, ...]
    unknown: int
    asked: bool

    @property
    def samples(self) -> int:
        return len(self.fitting) + self.unknown


def applicable(metric: str, tasks: Sequence[Task], applicability: pa.Table | None) -> Applicable:
    said = _said(metric, applicability)
    if all(answer is None for answer in said.values()):
        return Applicable(tuple(tasks), 0, asked=False)
    answers = [said.get(task.sample_id) for task in tasks]
    fitting = tuple(task for task, answer in zip(tasks, answers, strict=True) if answer)
    return Applicable(fitting, answers.count(None), asked=True)


def _said(metric: str, applicability: pa.Table | None) -> dict[str, bool | None]:
    if applicability is None:
        return {}
    columns = (applicability[name].to_pylist() for name in ("sample_id", metric))
    return dict(zip(*columns, strict=True))


NOT_ASKED = "not_asked"


@dataclass(frozen=True)
class Measured:
    metric: str
    system: str
    about: Applicable
    result: MetricResult | None
    missing: str | None = None

    @property
    def n(self) -> int:
        return self.result.n if self.result else 0

    @property
    def coverage(self) -> float | None:
        """Share of the samples with a number, of those for which one is wanted."""
        return coverage_of(self.n, self.about.samples)

    @property
    def counts(self) -> dict[str, int]:
        """How many samples have no number, by reason."""
        counts = self.result.counts if self.result else {}
        unknown = {NOT_ASKED: self.about.unknown} if self.about.unknown else {}
        return {**{str(reason): count for reason, count in counts.items()}, **unknown}

    def row(self, split: str, protocol: MetricProtocol) -> Result:
        result = self.result
        low, high = (result.interval if result else None) or (None, None)
        return Result(
            metric=self.metric,
            protocol=protocol,
            split=split,
            system=self.system,
            value=result.value if result else None,
            low=low,
            high=high,
            n=self.n,
            coverage=self.coverage,
            definition=self._definition(),
        )

    def details(self) -> dict[str, Any]:
        """All that a report shows of it; JSON can hold it."""
        return {
            "metric": self.metric,
            "system": self.system,
            "samples": [task.sample_id for task in self.about.fitting],
            "counts": self.counts,
            "missing": self.missing,
            "result": None if self.result is None else self.result.as_json(),
        }

    def _definition(self) -> dict[str, Any]:
        fits = "samples that it was said to fit" if self.about.asked else "every sample"
        known = dict(self.result.definition) if self.result else {"missing": self.missing}
        return {"metric": self.metric, **known, "samples": fits, "without_number": self.counts}


FITS_NONE = "it fits no sample of this split"


class Accumulator(TypingProtocol):
    """A metric whose images come in batches, such as `echo_hf.metrics.ColorShift`."""

    def add(self, inputs: Any, outputs: Any) -> None: ...

    def compute(self, *, n_boot: int, seed: int) -> MetricResult: ...


def measured(
    config: Evaluated,
    systems: Sequence[str],
    tasks: Sequence[Task],
    outputs: pa.Table | None,
    applicability: pa.Table | None,
    images: ImageStore,
    *,
    n_boot: int,
) -> Iterator[Measured]:
    """Measures all systems by all image metrics; inputs are looked at once for all systems."""
    rows = [] if outputs is None else outputs.to_pylist()
    made = {(row["system"], row["sample_id"]): row for row in rows}
    edits = [task for task in tasks if task.inputs]
    for metric, accumulator in accumulators(config).items():
        about = applicable(metric, edits, applicability)
        for system in systems:
            result, missing = None, None if about.fitting else FITS_NONE
            if missing is None:
                drawn = (made.get((system, task.sample_id)) for task in about.fitting)
                result, said = _computed(accumulator, about, drawn, images, n_boot)
                missing = None if said is None else _without_places(said, config)
            yield Measured(metric, system, about, result, missing)


def accumulators(config: Evaluated) -> Mapping[str, Callable[[], Accumulator]]:
    protocol, options = config.protocol, config.metrics
    similarities, faces = metrics.SimilarityCache(), metrics.FaceCache()
    return {
        "color_shift": partial(metrics.ColorShift, protocol=protocol),
        "face_identity": partial(
            metrics.FaceIdentity,
            protocol=protocol,
            cache=faces,
            **options.face_identity.model_dump(),
        ),
        "structure_distance": partial(
            metrics.StructureDistance,
            protocol=protocol,
            cache=similarities,
            **options.structure_distance.model_dump(),
        ),
    }


def _computed(
    accumulator: Callable[[], Accumulator],
    about: Applicable,
    drawn: Iterator[Mapping[str, Any] | None],
    images: ImageStore,
    n_boot: int,
) -> tuple[MetricResult | None, str | None]:
    # One at a time: the images of a benchmark do not fit into memory.
    inputs = (_inputs(task, images) for task in about.fitting)
    outputs = (_output(row, images) for row in drawn)
    try:
        metric = accumulator()
        metric.add(inputs, outputs)
        return metric.compute(n_boot=n_boot, seed=0), None
    except (MissingExtraError, WeightsError) as error:
        return None, str(error)


def _without_places(said: str, config: Evaluated) -> str:
    """A message without the folders of this machine: results are published."""
    for place in config.metrics.places:
        said = said.replace(str(place), place.name)
    return said


def _inputs(task: Task, images: ImageStore) -> list[bytes | None]:
    return [_bytes(image.sha256, images) for image in task.inputs]


def _output(row: Mapping[str, Any] | None, images: ImageStore) -> bytes | None:
    if row is None or row["outcome"] != Outcome.OK or row["image"] is None:
        return None
    return _bytes(row["image"], images)


def _bytes(digest: str, images: ImageStore) -> bytes | None:
    """The very bytes that a digest names; null where they are not there any more."""
    try:
        return images.open(digest)
    except ImageError:
        return None


TEXT_METRIC = "text_rendering"
UNRATED = f"needs ratings by the rubric {TEXT_RUBRIC}, which no judge has given"


def text_measured(
    systems: Sequence[str],
    tasks: Sequence[Task],
    ratings: pa.Table | None,
    applicability: pa.Table | None,
    protocol: MetricProtocol,
    *,
    n_boot: int,
    failed: Failures,
) -> Iterator[Measured]:
    about = applicable(TEXT_METRIC, tasks, applicability)
    rows = text_ratings(ratings)
    judges = sorted(set(rows["judge"].to_pylist()))
    for system in systems:
        if not judges or not about.fitting:
            missing = FITS_NONE if not about.fitting else UNRATED
            yield Measured(TEXT_METRIC, system, about, None, missing)
            continue
        asked = _of_system(rows, system, about, judges[0])
        result = text_rendering(asked, system=system, protocol=protocol, n_boot=n_boot)
        result = replace(result, definition=flagged(result.definition, judges, failed))
        yield Measured(TEXT_METRIC, system, _in_order(about, result.sample_ids), result)


def text_ratings(ratings: pa.Table | None) -> pa.Table:
    rows = RATINGS.empty() if ratings is None else ratings
    return rows.filter(pc.equal(rows["rubric"], TEXT_RUBRIC))


def _of_system(rows: pa.Table, system: str, about: Applicable, judge: str) -> pa.Table:
    """The ratings of a system, with an empty one for each sample that nobody rated."""
    names = pa.array([task.sample_id for task in about.fitting], pa.string())
    own = rows.filter(pc.and_(pc.equal(rows["system"], system), pc.is_in(rows["sample_id"], names)))
    unrated = set(names.to_pylist()) - set(own["sample_id"].to_pylist())
    empty = {**dict.fromkeys(RATINGS.columns), "system": system, "judge": judge}
    added = [{**empty, "sample_id": name, "rubric": TEXT_RUBRIC, "repeat": 0} for name in unrated]
    return pa.concat_tables([own, pa.Table.from_pylist(added, own.schema)])


def _in_order(about: Applicable, names: Sequence[str]) -> Applicable:
    """The same samples in the order in which the metric has them."""
    by_name = {task.sample_id: task for task in about.fitting}
    return Applicable(tuple(by_name[name] for name in names), about.unknown, about.asked)


DRAWS = 1000
_, FROM_WORDS = BENCHMARKS


@dataclass(frozen=True)
class SplitScores:
    split: str
    samples: int
    win_rates: SplitWinRates | None
    metrics: tuple[Measured, ...]
    pairwise: PairwiseAgreement | None = None


@dataclass(frozen=True)
class Scores:
    path: Path
    protocol: Protocol
    splits: tuple[SplitScores, ...]
    left_out: Mapping[str, Mapping[Reason, int]] = field(default_factory=dict)
    failed: Failures = field(default_factory=dict)

    @property
    def results(self) -> list[Result]:
        return [row for split in self.splits for row in _rows(split, self.protocol)]


def score(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    protocol: str | None = None,
    n_boot: int = DRAWS,
) -> Scores:
    """Computes all figures of a run, and writes them to its `results.json`."""
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    config = _under(config, protocol)
    folder = RunFolder(Path(runs) / config.name)
    benchmark = benchmark_of(config, folder)
    tables, failed = read_run(benchmark, folder), read_failures(folder.root)
    folder.enter()
    splits = tuple(_split(config, name, tables, folder, failed, n_boot) for name in tables.tasks)
    scores = Scores(folder.root / RESULTS_FILE, config.protocol, splits, tables.left_out, failed)
    _write(scores, benchmark.identity())
    return scores


def _under(config: Evaluated, protocol: str | None) -> Evaluated:
    if protocol is None:
        return config
    if protocol not in PROTOCOLS:
        raise ScoreError(unknown("protocol", protocol, PROTOCOLS))
    return config.model_copy(update={"protocol": protocol})


def _split(
    config: Evaluated,
    name: str,
    tables: RunTables,
    folder: RunFolder,
    failed: Failures,
    n_boot: int,
) -> SplitScores:
    outputs, ratings = (tables.of_split(one, name) for one in (tables.outputs, tables.ratings))
    asked, tasks = tables.of_split(tables.applicability, name), tables.tasks[name]
    named = [system.name for system in config.systems]
    systems = sorted({*named, *systems_in((tables.outputs, tables.ratings))})
    rates, found = None, list[Measured]()
    overall = ratings if ratings is not None and RUBRIC in ratings["rubric"].to_pylist() else None
    if overall is not None:
        rates = win_rates(name, overall, outputs, config.protocol, n_boot, failed)
    chosen = tables.of_split(tables.comparisons, name)
    pairwise = None
    if chosen is not None and chosen.num_rows:
        pairwise = pairwise_agreement(chosen, overall, n_boot=n_boot)
    if tables.outputs is not None and any(task.inputs for task in tasks):
        images = folder.images
        found += measured(config, systems, tasks, outputs, asked, images, n_boot=n_boot)
    if tasks and (name == FROM_WORDS or text_ratings(ratings).num_rows):
        protocol = config.protocol
        found += text_measured(
            systems, tasks, ratings, asked, protocol, n_boot=n_boot, failed=failed
        )
    return SplitScores(name, len(tasks), rates, tuple(found), pairwise)


def _rows(split: SplitScores, protocol: Protocol) -> Sequence[Result]:
    rates = split.win_rates.results if split.win_rates else ()
    return [*rates, *(one.row(split.split, protocol) for one in split.metrics)]


def _write(scores: Scores, benchmark: Mapping[str, Any]) -> None:
    """Writes everything that a report shows; a killed process leaves the old file or the new."""
    details = {
        split.split: {
            "samples": split.samples,
            "win_rate": split.win_rates.details if split.win_rates else None,
            "metrics": [one.details() for one in split.metrics],
            "pairwise": asdict(split.pairwise) if split.pairwise else None,
        }
        for split in scores.splits
    }
    written = {
        "benchmark": benchmark,
        "protocol": scores.protocol,
        "left_out": scores.left_out,
        "failed_audit": scores.failed,
        "results": [row.model_dump(mode="json") for row in scores.results],
        "details": details,
    }
    write_json(scores.path, written, default=list)
