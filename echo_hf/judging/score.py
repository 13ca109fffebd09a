"""All figures of a run, written down with how they were made: win rates, metrics, agreement."""

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
from echo_hf._infra.text import counted, percent
from echo_hf.config.evaluation import Evaluated
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ImageError, MissingExtraError, RunError, ScoreError, WeightsError
from echo_hf.hub.run_tables import RESULTS_FILE, STRENGTH, Result
from echo_hf.judging.anchors import Anchors, anchors_of
from echo_hf.judging.audit import Failures, drift_of, flagged, read_audits, read_failures
from echo_hf.judging.rate import flags_of
from echo_hf.judging.run_tables import (
    UNKNOWN,
    Models,
    RunTables,
    models_of,
    opened,
    read_human_file,
    read_run,
)
from echo_hf.judging.trust import Trust, trust_lines
from echo_hf.metrics import TEXT_RENDERING, TextRenderingResult
from echo_hf.metrics.result import MetricResult, coverage_of
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Outcome, Reason
from echo_hf.scores.agreement import Agreement, agreement
from echo_hf.scores.rating_table import RUBRIC, RatingTable, read_ratings
from echo_hf.scores.votes import ProtocolName
from echo_hf.scores.win_rate import METRIC, make_board
from echo_hf.systems.base import Task
from echo_hf.tables import HUMAN, RATINGS

DRAWS = 1000
AGREEMENT_FILE = "agreement.json"
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
    rates: scores.WinRate
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

    def row(self, split: str, protocol: ProtocolName) -> Result:
        result, n = self.result, self.result.n if self.result else 0
        known = dict(result.definition) if result else {"missing": self.missing}
        known["samples"] = "samples that it was said to fit" if self.asked else "every sample"
        definition = {"metric": self.metric, **known, "without_number": self.counts}
        about = {"metric": self.metric, "protocol": protocol, "split": split, "n": n}
        about["coverage"] = coverage_of(n, len(self.fitting) + self.unknown)
        value, interval = (result.value, result.interval) if result else (None, None)
        return _row(about, self.system, value, interval, definition)

    def details(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "system": self.system,
            "samples": [task.sample_id for task in self.fitting],
            "counts": self.counts,
            "missing": self.missing,
            "result": None if self.result is None else self.result.as_json(),
        }


def _row(
    about: Mapping[str, Any],
    system: str,
    value: float | None,
    interval: Interval | None,
    definition: Mapping[str, Any],
) -> Result:
    low, high = interval or (None, None)
    figure: dict[str, Any] = {"system": system, "value": value, "low": low, "high": high}
    return Result(**about, **figure, definition=definition)


@dataclass(frozen=True)
class SplitScores:
    """All figures of a split; of `by_people` a text says why there are none."""

    split: str
    samples: int
    win_rates: SplitWinRates | None
    metrics: tuple[Measured, ...]
    pairwise: scores.PairwiseAgreement | None = None
    by_people: scores.HumanCorrected | str | None = None

    def details(self) -> dict[str, Any]:
        return {
            "samples": self.samples,
            "win_rate": self.win_rates.details if self.win_rates else None,
            "metrics": [one.details() for one in self.metrics],
            "pairwise": asdict(self.pairwise) if self.pairwise else None,
            "by_people": _people_details(self.by_people) if self.by_people else None,
        }


@dataclass(frozen=True)
class Scores:
    """All figures of a run, and where they are written."""

    path: Path
    protocol: ProtocolName
    splits: tuple[SplitScores, ...]
    left_out: Mapping[str, Mapping[Reason, int]] = field(default_factory=dict)
    failed: Failures = field(default_factory=dict)
    models: Models = UNKNOWN

    @property
    def results(self) -> list[Result]:
        found: list[Result] = []
        for split in self.splits:
            found += split.win_rates.results if split.win_rates else ()
            if isinstance(split.by_people, scores.HumanCorrected):
                found += _people_rows(split.by_people, split.split, self.failed)
            found += [one.row(split.split, self.protocol) for one in split.metrics]
        return found


def score(
    config: Evaluated | Path | str,
    *,
    runs: Path | str | None = None,
    protocol: str | None = None,
    n_boot: int = DRAWS,
) -> Scores:
    """Computes all figures of a run, and writes them to its `results.json`."""
    config, folder, benchmark = opened(config, runs, protocol)
    tables, failed = read_run(benchmark, folder), read_failures(folder.root)
    models, audits = models_of(config, tables), read_audits(folder.root)
    folder.enter()
    anchors = anchors_of(config, benchmark, tables, models)
    run = Run(config, folder, tables, failed, n_boot, models)
    splits = tuple(run.split(name, anchors.get(name, {})) for name in tables.tasks)
    place = folder.root / RESULTS_FILE
    done = Scores(place, config.protocol, splits, tables.left_out, failed, models)
    trusted = {one.split: one.win_rates.trust for one in splits if one.win_rates}
    compared = {one.split: one.pairwise for one in splits if one.pairwise}
    drifts = {name: found for name, one in audits.items() if (found := drift_of(one["rounds"]))}
    lines = trust_lines(trusted, drifts, compared)
    written = {
        "benchmark": benchmark.identity(),
        "protocol": done.protocol,
        "left_out": done.left_out,
        "failed_audit": failed,
        "applicability": tables.fits_from,
        "systems": {name: one.model_dump() for name, one in models.systems.items()},
        "judges": {name: one.model_dump() for name, one in models.judges.items()},
        "trust": [{**asdict(one), "meaning": one.meaning} for one in lines],
        "judge_drift": drifts,
        "results": [row.model_dump(mode="json") for row in done.results],
        "details": {one.split: one.details() for one in splits},
    }
    write_json(done.path, written, default=list)
    return done


Figures = tuple[MetricResult | None, str | None]  # or why there are none
Fitting = tuple[Task, ...]


@dataclass(frozen=True)
class Run:
    """What figures are computed of."""

    config: Evaluated
    folder: RunFolder
    tables: RunTables
    failed: Failures = field(default_factory=dict)
    n_boot: int = 0
    models: Models = UNKNOWN

    def split(self, name: str, anchors: Anchors) -> SplitScores:
        tables, protocol = self.tables, self.config.protocol
        outputs, ratings, chosen, human = (
            tables.of_split(one, name)
            for one in (tables.outputs, tables.ratings, tables.comparisons, tables.human)
        )
        rates, pairwise, by_people, overall = None, None, None, None
        if ratings is not None and RUBRIC in ratings["rubric"].to_pylist():
            overall = read_ratings(ratings, outputs)
            known = self.n_boot, self.failed, self.models, anchors
            rates = win_rates(name, overall, protocol, *known)
            by_people = _by_people(overall, human) if human else None
        if chosen is not None and chosen.num_rows:
            people = None if isinstance(by_people, str) else human or None
            pairwise = scores.pairwise_agreement(chosen, overall, people, n_boot=self.n_boot)
        found = tuple(self.measured(name, image_metrics(self.config), sorted(self.models.systems)))
        return SplitScores(name, len(tables.tasks[name]), rates, found, pairwise, by_people)

    def measured(
        self, split: str, made_by: Mapping[str, Callable[..., MetricResult]], systems: Sequence[str]
    ) -> Iterator[Measured]:
        """What systems come to by the given metrics of images, and by text rendering."""
        tasks, found = self.tables.tasks[split], self.tables
        parts = (found.outputs, found.ratings, found.applicability)
        outputs, ratings, fits = (found.of_split(one, split) for one in parts)
        edits = [task for task in tasks if task.inputs]
        if outputs is not None and edits:
            made = {(row["system"], row["sample_id"]): row for row in outputs.to_pylist()}
            for metric, measure in made_by.items():
                by_images = partial(self._by_images, measure, made)
                yield from _by_system(metric, systems, edits, fits, by_images)
        text = RATINGS.empty() if ratings is None else ratings
        text = text.filter(pc.equal(text["rubric"], TEXT_RENDERING))
        if tasks and (split == FROM_WORDS or text.num_rows):
            by_ratings = partial(self._by_ratings, text)
            yield from _by_system(TEXT_RENDERING, systems, tasks, fits, by_ratings)

    def _by_images(
        self,
        measure: Callable[..., MetricResult],
        made: Mapping[tuple[str, str], Mapping[str, Any]],
        system: str,
        fitting: Fitting,
    ) -> Figures:
        def read(digest: str | None) -> bytes | None:
            try:
                return None if digest is None else self.folder.images.open(digest)
            except ImageError:  # the very bytes that a digest names are not there any more
                return None

        def output(task: Task) -> bytes | None:
            row = made.get((system, task.sample_id), {})
            return read(row["image"]) if row.get("outcome") == Outcome.OK else None

        # One at a time: the images of a benchmark do not fit into memory.
        inputs = ([read(image.sha256) for image in task.inputs] for task in fitting)
        try:
            return measure(inputs, map(output, fitting), n_boot=self.n_boot, seed=0), None
        except (MissingExtraError, WeightsError) as error:
            said = str(error)
            for place in self.config.metrics.places:  # of this machine, and results are published
                said = said.replace(str(place), place.name)
            return None, said

    def _by_ratings(self, ratings: pa.Table, system: str, fitting: Fitting) -> Figures:
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
        table, protocol = pa.Table.from_pylist(rows, RATINGS.schema), self.config.protocol
        result = metrics.text_rendering(table, system=system, protocol=protocol, n_boot=self.n_boot)
        definition = flagged(result.definition, judges, self.failed)
        return replace(result, definition=definition), None


def _by_system(
    metric: str,
    systems: Sequence[str],
    tasks: Sequence[Task],
    applicability: pa.Table | None,
    measured: Callable[[str, Fitting], Figures],
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


def win_rates(
    split: str,
    table: RatingTable,
    protocol: ProtocolName,
    n_boot: int,
    failed: Mapping[str, Sequence[str]],
    models: Models = UNKNOWN,
    anchors: Anchors | None = None,
) -> SplitWinRates:
    """Win rates by both protocols, and how far to trust them; judges vote once for all of it."""
    rates, results = dict[ProtocolName, scores.WinRate](), list[Result]()
    for each in get_args(ProtocolName):
        rate = scores.win_rate(table, protocol=each, n_boot=n_boot)
        definition = flagged(rate.definition, rate.per_judge, failed)
        rates[each] = rate = replace(rate, definition=definition)
        about: dict[str, Any] = {"metric": METRIC, "protocol": each, "split": split}
        for row in make_board(rate):
            counts = {"n": row.n, "coverage": row.coverage}
            results.append(
                _row({**about, **counts}, row.system, row.value, row.interval, definition)
            )
    groups = scores.tiers(table, protocol=protocol)
    trust = Trust.of(table, protocol, models, n_boot, rates[protocol].coverage, anchors)
    details: dict[str, Any] = {
        **{str(each): rate.as_json() for each, rate in rates.items()},
        "tiers": asdict(groups),
        "sensitivity": asdict(scores.sensitivity(table)),
        "bounds": asdict(scores.bounds(table, protocol=protocol)),
        **asdict(trust),
    }
    if table.is_stopped:
        decided = scores.decisions(table, protocol=protocol)
        details["decisions"] = {"said": decided.summary, **asdict(decided)}
    if anchors:
        kept = {name: one.model_dump(mode="json") for name, one in anchors.items()}
        details["anchors"], found = kept, trust.bradley_terry
        about = {"metric": STRENGTH, "protocol": protocol, "split": split}
        for name, value in found.strength.items():
            definition = {**found.definition, "anchor": kept.get(name)}
            results.append(_row(about, name, value, found.interval[name], definition))
    return SplitWinRates(tuple(results), rates[protocol], groups.tiers, trust, details)


def _by_people(rated: RatingTable, human: pa.Table) -> scores.HumanCorrected | str:
    try:
        return scores.human_corrected(rated, human)
    except ScoreError as error:
        return str(error)


def _people_rows(found: scores.HumanCorrected, split: str, failed: Failures) -> Iterator[Result]:
    counts = {"ranked": found.ranked, "samples": found.samples}
    definition = flagged({**found.definition, **counts}, found.definition["judges"], failed)
    about = {"metric": HUMAN_CORRECTED, "protocol": "corrected", "split": split, "n": found.ranked}
    about["coverage"] = coverage_of(found.ranked, found.samples)
    for system, rate in found.win_rate.items():
        why = {} if rate is not None else {"missing": found.reasons[system]}
        yield _row(about, system, rate, found.interval[system], {**definition, **why})


def _people_details(found: scores.HumanCorrected | str) -> dict[str, Any]:
    """The rates, and how much judges help people here and how many more people have to rank."""
    if isinstance(found, str):
        return {"missing": found, "said": f"no win rates by people: {found}", "result": None}
    worth = [one for one in found.effective_n.values() if one is not None]
    explained = max(found.rho2 or 0.0, 0.0)
    needed = found.n_for(WIDTH)
    more = "no" if needed is None or needed <= found.ranked else f"{needed - found.ranked:,}"
    said = (
        f"people ranked {found.ranked:,} of {counted(found.samples, 'sample')}; judges explain "
        f"{percent(explained)} of how people's verdicts vary (rho2)"
        + (f": as good as {fmean(worth):,.0f} without judges" if worth else "")
        + (f"; intervals of ±{WIDTH} need {more} more" if needed else "")
    )
    return {"missing": None, "said": said, "result": found.as_json()}


@dataclass(frozen=True)
class RunAgreement:
    """How far judges agree with people, over all samples and in each split."""

    path: Path
    merged: Agreement
    splits: Mapping[str, Agreement]
    left_out: Mapping[str, Mapping[Reason, int]]
    failed: Failures = field(default_factory=dict)


def agree(
    config: Evaluated | Path | str,
    *,
    runs: Path | str | None = None,
    human: Path | None = None,
    protocol: str | None = None,
    n_boot: int = DRAWS,
) -> RunAgreement:
    """Compares a run's judges with people, and writes the figures to its `agreement.json`."""
    config, folder, benchmark = opened(config, runs, protocol)
    tables = read_run(benchmark, folder, None if human is None else read_human_file(human))
    ranks, ratings = tables.human, tables.ratings
    if ranks is None or not ranks.num_rows:
        lost = sum(tables.left_out.get(HUMAN.name, {}).values())
        raise RunError(
            f"people ranked nothing of the benchmark in {str(folder.root)!r}, and {lost} ranks are "
            "of other samples: run `echo-hf rank` with this config first, or name a file of ranks "
            "with its sample_ids (--human FILE)"
        )
    folder.enter()

    def compared(ranks: pa.Table, rated: pa.Table | None) -> Agreement:
        overall = rated is not None and RUBRIC in rated["rubric"].to_pylist()
        return agreement(ranks, rated if overall else None, protocol=config.protocol, n_boot=n_boot)

    parts = {name: tables.of_split(ranks, name) for name in tables.tasks}
    ranked = {name: part for name, part in parts.items() if part}
    splits: dict[str, Agreement] = {}
    for name, part in ranked.items() if len(ranked) > 1 else ():
        samples = part["sample_id"].unique()
        rated = ratings and ratings.filter(pc.is_in(ratings["sample_id"], samples))
        splits[name] = compared(part, rated)
    path, failed = folder.root / AGREEMENT_FILE, read_failures(folder.root)
    found = RunAgreement(path, compared(ranks, ratings), splits, tables.left_out, failed)
    written = {
        "benchmark": benchmark.identity(),
        "protocol": found.merged.protocol,
        "left_out": tables.left_out,
        "failed_audit": failed,
        "merged": found.merged.as_json(),
        "splits": {name: one.as_json() for name, one in splits.items()},
    }
    write_json(path, written)
    return found
