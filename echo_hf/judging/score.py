"""All figures of a run: win rates and the four metrics, written down with how they were made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Self, get_args

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf import metrics
from echo_hf._infra.atomic import write_json
from echo_hf._infra.text import counted, percent
from echo_hf.builder.build import RUNS
from echo_hf.config.evaluation import Evaluated
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ImageError, MissingExtraError, ScoreError, WeightsError, unknown
from echo_hf.hub.run_tables import RESULTS_FILE, STRENGTH, Result
from echo_hf.images.store import ImageStore
from echo_hf.judging.anchors import Anchors, anchors_of
from echo_hf.judging.audit import Failures, drift_of, flagged, read_audits, read_failures
from echo_hf.judging.rate import flags_of
from echo_hf.judging.run_tables import UNKNOWN, Models, RunTables, models_of, read_run
from echo_hf.judging.trust import Trust, trust_lines
from echo_hf.metrics import TextRenderingResult
from echo_hf.metrics.names import TEXT_RENDERING
from echo_hf.metrics.result import MetricResult, coverage_of
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Outcome, Reason
from echo_hf.scores import (
    HumanCorrected,
    bounds,
    decisions,
    human_corrected,
    sensitivity,
    tiers,
    win_rate,
)
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
HUMAN_CORRECTED = "win_rate_human_corrected"
WIDTH = 0.03  # half an interval, of which the line on people speaks
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
class ByPeople:
    """Win rates as people see them on all samples of a split, or why there are none."""

    found: HumanCorrected | None
    missing: str | None = None

    @classmethod
    def of(cls, rated: RatingTable, human: pa.Table) -> Self:
        try:
            return cls(human_corrected(rated, human))
        except ScoreError as error:
            return cls(None, str(error))

    def rows(self, split: str, failed: Failures) -> Iterator[Result]:
        if (found := self.found) is None:
            return
        counts = {"ranked": found.ranked, "samples": found.samples}
        definition = flagged({**found.definition, **counts}, found.definition["judges"], failed)
        for system, rate in found.win_rate.items():
            low, high = found.interval[system] or (None, None)
            why = {} if rate is not None else {"missing": found.reasons[system]}
            yield Result(
                metric=HUMAN_CORRECTED,
                protocol="corrected",
                split=split,
                system=system,
                value=rate,
                low=low,
                high=high,
                n=found.ranked,
                coverage=coverage_of(found.ranked, found.samples),
                definition={**definition, **why},
            )

    @property
    def said(self) -> str:
        """How much the judges help people here, and how many more samples people have to rank."""
        if (found := self.found) is None:
            return f"no win rates by people: {self.missing}"
        worth = [one for one in found.effective_n.values() if one is not None]
        explained = max(found.rho2 or 0.0, 0.0)
        needed = found.n_for(WIDTH)
        more = "no" if needed is None or needed <= found.ranked else f"{needed - found.ranked:,}"
        return (
            f"people ranked {found.ranked:,} of {counted(found.samples, 'sample')}; judges explain "
            f"{percent(explained)} of how people's verdicts vary (rho2)"
            + (f": as good as {fmean(worth):,.0f} without judges" if worth else "")
            + (f"; intervals of ±{WIDTH} need {more} more" if needed else "")
        )

    def details(self) -> dict[str, Any]:
        result = self.found and self.found.as_json()
        return {"missing": self.missing, "said": self.said, "result": result}


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
    by_people: ByPeople | None = None

    def details(self) -> dict[str, Any]:
        return {
            "samples": self.samples,
            "win_rate": self.win_rates.details if self.win_rates else None,
            "metrics": [one.details() for one in self.metrics],
            "pairwise": asdict(self.pairwise) if self.pairwise else None,
            "by_people": self.by_people.details() if self.by_people else None,
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
            found += split.by_people.rows(split.split, self.failed) if split.by_people else ()
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
    anchors = anchors_of(config, benchmark, tables, models)
    parts = (config, models, tables, folder, failed, n_boot, anchors)
    splits = tuple(_split(name, *parts) for name in tables.tasks)
    place = folder.root / RESULTS_FILE
    scores = Scores(place, config.protocol, splits, tables.left_out, failed, models)
    trusted = {one.split: one.win_rates.trust for one in splits if one.win_rates}
    compared = {one.split: one.pairwise for one in splits if one.pairwise}
    drifts = {name: found for name, one in audits.items() if (found := drift_of(one["rounds"]))}
    written = {
        "benchmark": benchmark.identity(),
        "protocol": scores.protocol,
        "left_out": scores.left_out,
        "failed_audit": failed,
        "systems": {name: one.model_dump() for name, one in models.systems.items()},
        "judges": {name: one.model_dump() for name, one in models.judges.items()},
        "trust": [
            {**asdict(one), "meaning": one.meaning}
            for one in trust_lines(trusted, drifts, compared)
        ],
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
    anchored: Mapping[str, Anchors],
) -> SplitScores:
    outputs, ratings, chosen, human = (
        tables.of_split(one, name)
        for one in (tables.outputs, tables.ratings, tables.comparisons, tables.human)
    )
    rates, pairwise, by_people, overall = None, None, None, None
    if ratings is not None and RUBRIC in ratings["rubric"].to_pylist():
        overall = read_ratings(ratings, outputs)
        anchors = anchored.get(name, {})
        rates = win_rates(name, overall, None, config.protocol, n_boot, failed, models, anchors)
        by_people = ByPeople.of(overall, human) if human else None
    if chosen is not None and chosen.num_rows:
        unfit = by_people is not None and by_people.found is None
        people = None if unfit else human or None
        pairwise = pairwise_agreement(chosen, overall, people, n_boot=n_boot)
    parts = (config, sorted(models.systems), tables, folder, failed, n_boot)
    found = tuple(measures(name, image_metrics(config), *parts))
    return SplitScores(name, len(tables.tasks[name]), rates, found, pairwise, by_people)


def measures(
    split: str,
    made_by: Mapping[str, Callable[[], Any]],
    config: Evaluated,
    systems: Sequence[str],
    tables: RunTables,
    folder: RunFolder,
    failed: Failures,
    n_boot: int,
) -> Iterator[Measured]:
    """What systems come to by the given metrics of images, and by text rendering."""
    tasks, found = tables.tasks[split], (tables.outputs, tables.ratings, tables.applicability)
    outputs, ratings, fits = (tables.of_split(one, split) for one in found)
    edits = [task for task in tasks if task.inputs]
    if outputs is not None and edits:
        made = {(row["system"], row["sample_id"]): row for row in outputs.to_pylist()}
        for metric, measure in made_by.items():
            measured = partial(_measured, config, measure, made, folder.images, n_boot)
            yield from _by_system(metric, systems, edits, fits, measured)
    text = RATINGS.empty() if ratings is None else ratings
    text = text.filter(pc.equal(text["rubric"], TEXT_RENDERING))
    if tasks and (split == FROM_WORDS or text.num_rows):
        measured = partial(_text_measured, text, config.protocol, n_boot, failed)
        yield from _by_system(TEXT_RENDERING, systems, tasks, fits, measured)


def win_rates(
    split: str,
    ratings: RatingTable | pa.Table,
    outputs: pa.Table | None,
    protocol: Protocol,
    n_boot: int,
    failed: Mapping[str, Sequence[str]],
    models: Models = UNKNOWN,
    anchors: Anchors | None = None,
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
    groups = tiers(table, protocol=protocol)
    trust = Trust.of(table, protocol, models, n_boot, anchors)
    details: dict[str, Any] = {
        **{str(each): rate.as_json() for each, rate in rates.items()},
        "tiers": asdict(groups),
        "sensitivity": asdict(sensitivity(table)),
        "bounds": asdict(bounds(table, protocol=protocol)),
        **asdict(trust),
    }
    if table.is_stopped:
        decided = decisions(table, protocol=protocol)
        details["decisions"] = {"said": decided.said, **asdict(decided)}
    if anchors:
        kept = {name: one.model_dump(mode="json") for name, one in anchors.items()}
        details["anchors"], found = kept, trust.bradley_terry
        about = {"metric": STRENGTH, "protocol": protocol, "split": split}
        for name, value in found.strength.items():
            low, high = found.interval[name] or (None, None)
            definition = {**found.definition, "anchor": kept.get(name)}
            figure: dict[str, Any] = {"value": value, "low": low, "high": high}
            results.append(Result(**about, **figure, system=name, definition=definition))
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


def image_metrics(config: Evaluated) -> Mapping[str, Callable[..., MetricResult]]:
    """The image metrics by name; inputs are looked at once for all systems."""
    protocol, options = config.protocol, config.metrics
    faces = {"cache": metrics.InputCache(), **options.face_identity.model_dump()}
    vit = {"cache": metrics.InputCache(), **options.structure_distance.model_dump()}
    return {
        "color_shift": partial(metrics.color_shift, protocol=protocol),
        "face_identity": partial(metrics.face_identity, protocol=protocol, **faces),
        "structure_distance": partial(metrics.structure_distance, protocol=protocol, **vit),
    }


def _measured(
    config: Evaluated,
    measure: Callable[..., MetricResult],
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
        return measure(inputs, map(output, fitting), n_boot=n_boot, seed=0), None
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
