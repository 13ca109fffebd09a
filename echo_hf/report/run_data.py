"""What a report is made of: a run's figures, tables and samples, read once and never changed."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from echo_hf.config.evaluation import Evaluated, Evaluation
from echo_hf.config.loading import Config
from echo_hf.config.sections import Target
from echo_hf.errors import ImageError, ReleaseError, RunError
from echo_hf.hub.load import load_manifest
from echo_hf.hub.run_tables import RESULTS_FILE
from echo_hf.images.store import ImageStore
from echo_hf.judging.agreement import AGREEMENT_FILE
from echo_hf.judging.audit import read_audits
from echo_hf.judging.run_tables import read_run
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.report.analysis.result import FILE as ANALYSIS_FILE
from echo_hf.report.analysis.result import Analysis
from echo_hf.report.results import AgreementFile, Failed, Identity, Results, read_figures
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import Benchmark, benchmark_of, load_evaluation

SHOWN = ("id", "task", "review", "has_nsfw", "community_feedback", "output_images")


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
        sample, value = row.pop("sample_id"), row.pop("rating")
        # As for `win_rate`, what is no number is no rating.
        value = value if value is not None and math.isfinite(value) else None
        found.setdefault(sample, []).append(Rating(value=value, **row))
    return {sample: tuple(sorted(some, key=_place)) for sample, some in found.items()}


def samples_of(
    benchmark: Benchmark, tasks: Mapping[str, Iterable[Task]], images: ImageStore
) -> tuple[ReportSample, ...]:
    found = (_of_split(benchmark, list(some), images) for some in tasks.values())
    return tuple(sample for some in found for sample in some)


def _of_split(
    benchmark: Benchmark, tasks: Sequence[Task], images: ImageStore
) -> Iterator[ReportSample]:
    rows = _rows(benchmark, tasks[0].split) if tasks else ()
    known = {task.sample_id: task for task in tasks}
    for row in rows:
        task = known.get(row["id"])
        if task is None:  # it cannot be given to a system: words or an input are not there
            continue
        yield ReportSample(
            id=task.sample_id,
            split=task.split,
            prompt=task.prompt,
            task=row.get("task"),
            inputs=tuple(one.sha256 for one in task.inputs),
            posted=tuple(_posted(row.get("output_images") or (), images)),
            urls=task.sources,
            feedback=tuple(_feedback(row.get("community_feedback") or ())),
            flags=(*(row.get("review") or ()), *(["nsfw"] if row.get("has_nsfw") else [])),
        )


def _rows(benchmark: Benchmark, split: str) -> Iterator[dict[str, Any]]:
    dataset = benchmark.load(split)
    dataset = dataset.select_columns([name for name in SHOWN if name in dataset.column_names])
    for table in dataset.with_format("arrow").iter(1):
        yield from table.to_pylist()


def _posted(images: Iterable[Mapping[str, Any] | None], store: ImageStore) -> Iterator[str]:
    for image in images:
        if image is None:
            continue
        data = image["bytes"]
        data = Path(image["path"]).read_bytes() if data is None else data
        try:
            yield store.put(data)
        except ImageError:
            yield hashlib.sha256(data).hexdigest()  # shown as one that cannot be


def _feedback(rows: Iterable[Mapping[str, Any]]) -> Iterator[ReportFeedback]:
    for row in rows:
        if row["feedback"]:
            yield ReportFeedback(row["feedback"], row.get("verdict"), row.get("keyword"))


def _place(one: Rating) -> tuple[str, str, str, int]:
    return one.rubric, one.system, one.judge, one.repeat


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

    @property
    def splits(self) -> tuple[str, ...]:
        held = {sample.split for sample in self.samples}
        return tuple(name for name in self.results.details if name in held)

    def of_split(self, split: str) -> Iterator[ReportSample]:
        return (sample for sample in self.samples if sample.split == split)

    @property
    def digests(self) -> tuple[str, ...]:
        """Every image that the report shows, each once."""
        shown = dict[str, None]()
        for sample in self.samples:
            shown |= dict.fromkeys((*sample.inputs, *sample.posted))
        shown |= dict.fromkeys(one.image for one in self.outputs.values() if one.image)
        return tuple(shown)


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
    outputs, ratings = outputs_of(tables.outputs), ratings_of(tables.ratings)
    agreement = read_figures(folder.root / AGREEMENT_FILE, AgreementFile, "agree")
    identity = Identity.model_validate(benchmark.identity())
    samples = samples_of(benchmark, tables.tasks, folder.images)
    unscored = {sample.split for sample in samples} - set(results.details)
    known = results.benchmark.on_hub or results.benchmark.name or config.name
    return RunData(
        name=config.name,
        title=config.target.name if isinstance(config, Config) else known,
        target=_target(config, benchmark),
        results=results,
        stale=bool(unscored) or identity.digests != results.benchmark.digests,
        agreement=agreement,
        failures=failures_of(folder.root, results, agreement),
        analysis=read_figures(folder.root / ANALYSIS_FILE, Analysis, "analyze"),
        samples=samples,
        outputs=outputs,
        ratings=ratings,
        systems=systems_of(results, outputs),
        images=folder.images,
        settings=config.model_dump(mode="json", include={"systems", "judges", "applicability"}),
    )


def failures_of(root: Path, results: Results, agreement: AgreementFile | None) -> Failed:
    """The judges that failed their audits, by the last word on each of them."""
    before = {**(agreement.failed_audit if agreement else {}), **results.failed_audit}
    now = {judge: tuple(audit["failed"]) for judge, audit in read_audits(root).items()}
    return {judge: failed for judge, failed in sorted({**before, **now}.items()) if failed}


def systems_of(results: Results, outputs: Mapping[tuple[str, str], Output]) -> tuple[str, ...]:
    boards = (results.rates(split) for split in results.details)
    ranked = [system for rates in boards if rates for system in rates.order]
    others = {system for _, system in outputs} | {row.system for row in results.results}
    return tuple(dict.fromkeys([*ranked, *sorted(others)]))


def _target(config: Evaluated, benchmark: Benchmark) -> Target | None:
    if isinstance(config, Config):
        return config.target
    if not isinstance(config, Evaluation):
        return None
    repo, at, revision = benchmark.reference.rpartition("@")
    on_hub = bool(at) and not Path(benchmark.reference).exists()
    try:
        if on_hub:
            return load_manifest(repo, revision=revision).target
        return load_manifest(benchmark.reference).target
    except ReleaseError:
        return None  # the dataset of ECHO's authors has no manifest


def spread(ratings: Sequence[Rating], rubric: str) -> float:
    """How far the ratings of a sample's outputs lie apart, as a mean over judges."""
    by_judge: dict[str, list[float]] = {}
    for one in ratings:
        if one.rubric == rubric and one.value is not None:
            by_judge.setdefault(one.judge, []).append(one.value)
    ranges = [max(some) - min(some) for some in by_judge.values()]
    return sum(ranges) / len(ranges) if ranges else 0.0
