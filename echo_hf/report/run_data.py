"""What a report is made of: a run's figures, tables and samples, read once and never changed."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from echo_hf.config.checks import AnsweredBy
from echo_hf.config.evaluation import Evaluated, Evaluation
from echo_hf.config.loading import Config
from echo_hf.config.paper import Difference, differences
from echo_hf.config.sections import Target
from echo_hf.errors import ImageError, ReleaseError, RunError
from echo_hf.hub.load import load_manifest
from echo_hf.hub.manifest import Manifest
from echo_hf.hub.release import rows_in
from echo_hf.hub.run_tables import RESULTS_FILE, STRENGTH, Anchor, Result
from echo_hf.images.store import ImageStore
from echo_hf.judging.agreement import AGREEMENT_FILE
from echo_hf.judging.audit import read_audits
from echo_hf.judging.run_tables import read_run
from echo_hf.metrics.result import MetricResult
from echo_hf.metrics.text_rendering import TextRenderingResult
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Unrated
from echo_hf.report.analysis.result import FILE as ANALYSIS_FILE
from echo_hf.report.analysis.result import Analysis, read_analysis, read_figures
from echo_hf.scores.agreement import Agreement
from echo_hf.scores.board import BoardRow, board_of
from echo_hf.scores.bradley_terry import BradleyTerry
from echo_hf.scores.human_corrected import HumanCorrected
from echo_hf.scores.pairwise_agreement import PairwiseAgreement
from echo_hf.scores.robustness import Bounds, LeaveOneJudgeOut, Sensitivity
from echo_hf.scores.sequential import Decisions
from echo_hf.scores.tiers import SamplesNeeded, Tiers
from echo_hf.scores.win_rate import WinRate
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import Benchmark, benchmark_of, load_evaluation

Counts = Mapping[str, int]
Failed = Mapping[str, tuple[str, ...]]
NAME = r"^\w{1,80}$"  # of a metric: it becomes the name of a file


class FiguresFile(BaseModel):
    """A part of a file of figures: immutable, finite, and open to keys that are not shown.

    Its figures are the very objects that `echo_hf.scores` and `echo_hf.metrics` return.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False, defer_build=True)


class WinRates(FiguresFile):
    published: WinRate
    corrected: WinRate
    tiers: Tiers
    sensitivity: Sensitivity
    bounds: Bounds
    # Files of before lack these.
    bradley_terry: BradleyTerry | None = None
    leave_one_judge_out: LeaveOneJudgeOut | None = None
    samples_needed: SamplesNeeded | None = None
    decisions: Decisions | None = None  # where judges were asked until pairs were decided
    anchors: Mapping[str, Anchor] = {}


class TrustLine(FiguresFile):
    measure: str
    split: str | None = None
    said: str
    meaning: str
    reason: str | None = None


class Metric(FiguresFile):
    metric: Annotated[str, Field(pattern=NAME)]
    system: str
    samples: tuple[str, ...] = ()
    counts: Counts = {}
    missing: str | None = None
    result: MetricResult | TextRenderingResult | None = None

    @property
    def values(self) -> list[float]:
        every = self.result.per_sample if self.result else ()
        return [value for value in every if value is not None]


def judges_of(rows: Iterable[Metric]) -> list[str]:
    return sorted({judge for one in rows for judge in getattr(one.result, "per_judge", ())})


class ByPeople(FiguresFile):
    said: str
    result: HumanCorrected | None = None


class Split(FiguresFile):
    samples: int
    win_rate: WinRates | None = None
    metrics: tuple[Metric, ...] = ()
    pairwise: PairwiseAgreement | None = None
    by_people: ByPeople | None = None


class Identity(FiguresFile):
    name: str | None = None
    on_hub: str | None = None
    digests: Mapping[str, str] | None = None


class Results(FiguresFile):
    """The figures of a run.

    Attributes:
        benchmark: Which benchmark they are of.
        protocol: Whose arithmetic the run follows.
        left_out: For each table, rows about other samples or older ones, by reason.
        failed_audit: For each judge that had failed its audit, the honeypots that it failed on.
        system_models: Which model answered to the name of each system.
        judge_models: The same of each judge.
        trust: What says how far the figures hold, a line each.
        results: One figure for each metric, protocol, split and system.
        details: What lies beside them, by split.
    """

    benchmark: Identity
    protocol: Literal["published", "corrected"]
    left_out: Mapping[str, Counts] = {}
    failed_audit: Failed = {}
    system_models: Mapping[str, AnsweredBy] = Field({}, alias="systems")
    judge_models: Mapping[str, AnsweredBy] = Field({}, alias="judges")
    trust: tuple[TrustLine, ...] = ()
    results: Sequence[Result] = Field(default=())
    details: Mapping[str, Split]

    def rates(self, split: str) -> WinRate | None:
        """The win rates of a split under the run's protocol; null where nothing was rated."""
        found = self.details[split].win_rate
        if found is None:
            return None
        return found.published if self.protocol == "published" else found.corrected

    def board(self, split: str) -> tuple[BoardRow, ...]:
        """The same as a board, with tiers."""
        found, rates = self.details[split].win_rate, self.rates(split)
        return board_of(rates, found.tiers.tiers, self.system_models) if found and rates else ()

    @property
    def judges(self) -> list[str]:
        """Every judge whose ratings count, in alphabetical order."""
        known = (self.rates(split) for split in self.details)
        return sorted({judge for rates in known if rates for judge in rates.per_judge})


class AgreementFile(FiguresFile):
    merged: Agreement
    failed_audit: Failed = {}


SHOWN = ("id", "task", "review", "doubts", "has_nsfw", "community_feedback", "output_images")


@dataclass(frozen=True)
class ReportFeedback:
    text: str
    verdict: str | None
    keyword: str | None


@dataclass(frozen=True)
class ReportSample:
    id: str
    split: str
    prompt: str
    task: str | None = None
    inputs: tuple[str, ...] = ()
    posted: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    feedback: tuple[ReportFeedback, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Output:
    image: str | None
    outcome: str
    reason: str | None = None
    text: str | None = None


@dataclass(frozen=True)
class Rating:
    system: str
    judge: str
    rubric: str
    repeat: int
    value: float | None
    explanation: str | None
    outcome: str | None


@dataclass(frozen=True)
class RunData:
    name: str
    title: str
    target: Target | None
    results: Results
    stale: bool
    agreement: AgreementFile | None
    failures: Failed
    analysis: Analysis | None
    samples: tuple[ReportSample, ...]
    outputs: Mapping[tuple[str, str], Output]
    ratings: Mapping[str, tuple[Rating, ...]]
    systems: tuple[str, ...]
    images: ImageStore
    settings: Mapping[str, Any]
    unlike_paper: tuple[Difference, ...] = ()

    @property
    def splits(self) -> tuple[str, ...]:
        held = {sample.split for sample in self.samples}
        return tuple(name for name in self.results.details if name in held)

    def of_split(self, split: str) -> Iterator[ReportSample]:
        return (sample for sample in self.samples if sample.split == split)

    @property
    def digests(self) -> tuple[str, ...]:
        shown = [digest for one in self.samples for digest in (*one.inputs, *one.posted)]
        shown += [one.image for one in self.outputs.values() if one.image]
        return tuple(dict.fromkeys(shown))


def read_run_data(config: Evaluated | Path | str, runs: Path | str) -> RunData:
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    folder = RunFolder(Path(runs) / config.name)
    results = read_figures(folder.root / RESULTS_FILE, Results, "score")
    if results is None:
        raise RunError(
            f"there are no figures in {str(folder.root)!r}: run `echo-hf score` with this config "
            "first"
        )
    benchmark = benchmark_of(config, folder)
    tables = read_run(benchmark, folder)
    outputs = outputs_of(tables.outputs)
    agreement = read_figures(folder.root / AGREEMENT_FILE, AgreementFile, "agree")
    identity = Identity.model_validate(benchmark.identity())
    samples = samples_of(benchmark, tables.tasks, folder.images)
    unscored = {sample.split for sample in samples} - set(results.details)
    target = None
    if isinstance(config, Config):
        target = config.target
    elif isinstance(config, Evaluation):  # the dataset of ECHO's authors has no manifest
        with suppress(ReleaseError):
            target = manifest_of(benchmark.reference).target
    # The last word on a judge counts: it may have been audited again since it was scored.
    audited = {judge: tuple(one["failed"]) for judge, one in read_audits(folder.root).items()}
    failed = {**(agreement.failed_audit if agreement else {}), **results.failed_audit, **audited}
    known = results.benchmark.on_hub or results.benchmark.name or config.name
    return RunData(
        name=config.name,
        title=config.target.name if isinstance(config, Config) else known,
        target=target,
        results=results,
        stale=bool(unscored) or identity.digests != results.benchmark.digests,
        agreement=agreement,
        failures={judge: flags for judge, flags in sorted(failed.items()) if flags},
        analysis=read_analysis(folder.root / ANALYSIS_FILE),
        samples=samples,
        outputs=outputs,
        ratings=ratings_of(tables.ratings),
        systems=systems_of(results, outputs),
        images=folder.images,
        settings=config.model_dump(mode="json", include={"systems", "judges", "applicability"}),
        unlike_paper=differences(config) if isinstance(config, Config) else (),
    )


def manifest_of(reference: str) -> Manifest:
    """The manifest of a benchmark: a folder, or a repository at a revision."""
    repo, at, revision = reference.rpartition("@")
    on_hub = at and not Path(reference).exists()
    return load_manifest(repo, revision=revision) if on_hub else load_manifest(reference)


def outputs_of(rows: pa.Table | None) -> dict[tuple[str, str], Output]:
    if rows is None:
        return {}
    columns = ("sample_id", "system", "image", "outcome", "stage", "code", "text")
    return {
        (row["sample_id"], row["system"]): Output(
            row["image"],
            row["outcome"],
            ", ".join(filter(None, (row["stage"], row["code"]))) or None,
            row["text"],
        )
        for row in rows.select(columns).to_pylist()
    }


def ratings_of(rows: pa.Table | None) -> dict[str, tuple[Rating, ...]]:
    if rows is None:
        return {}
    columns = ("sample_id", "system", "judge", "rubric", "repeat", "rating", "explanation")
    found: dict[str, list[Rating]] = {}
    for row in rows.select((*columns, "outcome")).to_pylist():
        if row["outcome"] == Unrated.NOT_NEEDED:
            continue
        sample, value = row.pop("sample_id"), row.pop("rating")
        # As for `win_rate`, what is no number is no rating.
        value = value if value is not None and math.isfinite(value) else None
        found.setdefault(sample, []).append(Rating(value=value, **row))
    return {
        sample: tuple(sorted(some, key=lambda one: (one.rubric, one.system, one.judge, one.repeat)))
        for sample, some in found.items()
    }


def samples_of(
    benchmark: Benchmark, tasks: Mapping[str, Sequence[Task]], images: ImageStore
) -> tuple[ReportSample, ...]:
    """The samples that can be given to a system: those with words, and all their inputs."""
    found = []
    for some in tasks.values():
        known = {task.sample_id: task for task in some}
        for row in _rows(benchmark, some[0].split) if some else ():
            if (task := known.get(row["id"])) is None:
                continue
            said = (one for one in row.get("community_feedback") or () if one["feedback"])
            sample = ReportSample(
                id=task.sample_id,
                split=task.split,
                prompt=task.prompt,
                task=row.get("task"),
                inputs=tuple(one.sha256 for one in task.inputs),
                posted=tuple(_posted(row.get("output_images") or (), images)),
                urls=task.sources,
                feedback=tuple(
                    ReportFeedback(one["feedback"], one.get("verdict"), one.get("keyword"))
                    for one in said
                ),
                flags=(
                    *(row.get("review") or ()),
                    *(row.get("doubts") or ()),
                    *(["nsfw"] if row.get("has_nsfw") else []),
                ),
            )
            found.append(sample)
    return tuple(found)


def _rows(benchmark: Benchmark, split: str) -> Iterator[dict[str, Any]]:
    dataset = benchmark.load(split)
    yield from rows_in(dataset, 1, [name for name in SHOWN if name in dataset.column_names])


def _posted(images: Iterable[Mapping[str, Any] | None], store: ImageStore) -> Iterator[str]:
    for image in filter(None, images):
        data = image["bytes"]
        data = Path(image["path"]).read_bytes() if data is None else data
        try:
            yield store.put(data)
        except ImageError:
            yield hashlib.sha256(data).hexdigest()  # shown as one that cannot be


def systems_of(results: Results, outputs: Mapping[tuple[str, str], Output]) -> tuple[str, ...]:
    """Every system: in the order of the boards, then those that no judge has rated."""
    ranked = [row.system for split in results.details for row in results.board(split)]
    measured = {row.system for row in results.results if row.metric != STRENGTH}
    others = {system for _, system in outputs} | measured
    return tuple(dict.fromkeys([*ranked, *sorted(others)]))
