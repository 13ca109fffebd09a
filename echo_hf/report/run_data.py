"""What a report is made of: a run's figures, tables and samples, read once and never changed."""

from __future__ import annotations

import base64
import hashlib
import io
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from PIL import Image
from pydantic import Field

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
from echo_hf.images.embedded import embedded_bytes
from echo_hf.images.loader import BadImageError, load_rgb
from echo_hf.images.store import ImageStore
from echo_hf.judging.audit import read_audits
from echo_hf.judging.run_tables import read_run
from echo_hf.judging.score import AGREEMENT_FILE
from echo_hf.metrics.color_shift import CHANNELS, LEVELS, Floats, Integers, compute_histograms
from echo_hf.metrics.image_features import map_in_order
from echo_hf.metrics.result import MetricResult
from echo_hf.metrics.text_rendering import TextRenderingResult
from echo_hf.pipeline.runs import run_folder
from echo_hf.reasons import Unrated
from echo_hf.report.analysis.result import FILE as ANALYSIS_FILE
from echo_hf.report.analysis.result import Analysis, Figures, read_analysis, read_figures
from echo_hf.scores.agreement import Agreement
from echo_hf.scores.bradley_terry import BradleyTerry
from echo_hf.scores.human_corrected import HumanCorrected
from echo_hf.scores.pairwise_agreement import PairwiseAgreement
from echo_hf.scores.robustness import Bounds, LeaveOneJudgeOut, Sensitivity
from echo_hf.scores.sequential import Decisions
from echo_hf.scores.tiers import SamplesNeeded, Tiers
from echo_hf.scores.win_rate import BoardRow, WinRate, make_board
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import Benchmark, benchmark_of, load_evaluation

Counts = Mapping[str, int]
Failed = Mapping[str, tuple[str, ...]]
NAME = r"^\w{1,80}$"  # of a metric: it becomes the name of a file


class WinRates(Figures):
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


class TrustLine(Figures):
    measure: str
    split: str | None = None
    said: str
    meaning: str


class Metric(Figures):
    metric: Annotated[str, Field(pattern=NAME)]
    system: str
    samples: tuple[str, ...] = ()
    counts: Counts = Field({})
    missing: str | None = None
    result: MetricResult | TextRenderingResult | None = None

    @property
    def values(self) -> list[float]:
        every = self.result.per_sample if self.result else ()
        return [value for value in every if value is not None]


def judges_of(rows: Iterable[Metric]) -> list[str]:
    return sorted({judge for one in rows for judge in getattr(one.result, "per_judge", ())})


class ByPeople(Figures):
    said: str
    result: HumanCorrected | None = None


class Split(Figures):
    samples: int
    win_rate: WinRates | None = None
    metrics: tuple[Metric, ...] = ()
    pairwise: PairwiseAgreement | None = None
    by_people: ByPeople | None = None


class Identity(Figures):
    name: str | None = None
    on_hub: str | None = None
    digests: Mapping[str, str] | None = None


class Results(Figures):
    """The figures of a run, the very objects that `echo_hf.scores` and `echo_hf.metrics` return.

    `left_out` counts rows about other samples or older ones, by table and reason; `failed_audit`
    has the honeypots that each judge failed on.
    """

    benchmark: Identity
    protocol: Literal["published", "corrected"]
    left_out: Mapping[str, Counts] = {}
    failed_audit: Failed = Field({})
    system_models: Mapping[str, AnsweredBy] = Field({}, alias="systems")
    judge_models: Mapping[str, AnsweredBy] = Field({}, alias="judges")
    trust: tuple[TrustLine, ...] = ()
    results: tuple[Result, ...] = ()
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
        return make_board(rates, found.tiers.tiers, self.system_models) if found and rates else ()

    @property
    def judges(self) -> set[str]:
        """Every judge whose ratings count."""
        known = (self.rates(split) for split in self.details)
        return {judge for rates in known if rates for judge in rates.per_judge}


class AgreementFile(Figures):
    merged: Agreement
    failed_audit: Failed = Field({})


SHOWN = ("id", "task", "review", "doubts", "has_nsfw", "community_feedback", "output_images")


@dataclass(frozen=True)
class ReportSample:
    id: str
    split: str
    prompt: str
    task: str | None = None
    inputs: tuple[str, ...] = ()
    posted: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    feedback: tuple[Mapping[str, str | None], ...] = ()  # `text`, `verdict`, `keyword`
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


def read_run_data(config: Evaluated | Path | str, runs: Path | str | None) -> RunData:
    config = load_evaluation(config)
    folder = run_folder(config, runs)
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
    unscored = {sample.split for sample in samples} - results.details.keys()
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
    return {
        (row["sample_id"], row["system"]): Output(
            row["image"],
            row["outcome"],
            ", ".join(filter(None, (row["stage"], row["code"]))) or None,
            row["text"],
        )
        for row in (rows.to_pylist() if rows else ())
    }


def ratings_of(rows: pa.Table | None) -> dict[str, tuple[Rating, ...]]:
    found: dict[str, list[Rating]] = {}
    for row in rows.to_pylist() if rows else ():
        if row["outcome"] == Unrated.NOT_NEEDED:
            continue
        # As for `win_rate`, what is no number is no rating.
        value = row["rating"]
        value = value if value is not None and math.isfinite(value) else None
        known = {one.name: row[one.name] for one in fields(Rating) if one.name != "value"}
        found.setdefault(row["sample_id"], []).append(Rating(**known, value=value))
    order = attrgetter("rubric", "system", "judge", "repeat")
    return {sample: tuple(sorted(some, key=order)) for sample, some in found.items()}


def samples_of(
    benchmark: Benchmark, tasks: Mapping[str, Sequence[Task]], images: ImageStore
) -> tuple[ReportSample, ...]:
    """The samples that can be given to a system: those with words, and all their inputs."""
    found = []
    for split, some in tasks.items():
        if not some:
            continue
        known = {task.sample_id: task for task in some}
        dataset = benchmark.load(split)
        columns = [name for name in SHOWN if name in dataset.column_names]
        for row in rows_in(dataset, 1, columns):
            if (task := known.get(row["id"])) is None:
                continue
            feedback = (
                {"text": one["feedback"]} | {name: one.get(name) for name in ("verdict", "keyword")}
                for one in row.get("community_feedback") or ()
                if one["feedback"]
            )
            flags = [*(row.get("review") or ()), *(row.get("doubts") or ())]
            found.append(
                ReportSample(
                    id=task.sample_id,
                    split=task.split,
                    prompt=task.prompt,
                    task=row.get("task"),
                    inputs=tuple(one.sha256 for one in task.inputs),
                    posted=tuple(_posted(row["id"], row.get("output_images") or (), images)),
                    urls=task.sources,
                    feedback=tuple(feedback),
                    flags=(*flags, *(["nsfw"] if row.get("has_nsfw") else [])),
                )
            )
    return tuple(found)


def _posted(
    row: str, images: Iterable[Mapping[str, Any] | None], store: ImageStore
) -> Iterator[str]:
    for image in filter(None, images):
        data = embedded_bytes(image, row)
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


LONGEST_SIDE = 384
QUALITY = 80
FOLDER = "thumbs"
NAME_LENGTH = 20  # 80 bits of the digest


@dataclass(frozen=True)
class Thumbnail:
    source: str
    width: int
    height: int


Thumbnails = Mapping[str, Thumbnail]
Looked = tuple[Thumbnail, Integers | None]


def looked_at(
    digests: Iterable[str], images: ImageStore, folder: Path | None, counted: Container[str]
) -> Iterator[tuple[str, Looked | str]]:
    """A small copy of each image, and its histograms where they count; or why there is none.

    Images are decoded in several threads; only a few of them are held at a time.
    """
    if folder is not None:
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)

    def look(digest: str) -> tuple[str, Looked | str]:
        try:
            image = load_rgb(images.open(digest))
        except BadImageError as error:
            return digest, str(error.reason)
        except ImageError:
            return digest, "the run does not hold it"
        sink, small = io.BytesIO(), reduced(image)
        small.save(sink, "JPEG", quality=QUALITY)
        if folder is None:
            source = "data:image/jpeg;base64," + base64.b64encode(sink.getvalue()).decode()
        else:
            source = f"{FOLDER}/{digest[:NAME_LENGTH]}.jpg"
            (folder / source).write_bytes(sink.getvalue())
        counts = compute_histograms(image) if digest in counted else None
        return digest, (Thumbnail(source, *small.size), counts)

    yield from map_in_order(look, digests)


def reduced(image: Image.Image, longest: int = LONGEST_SIDE) -> Image.Image:
    """An image no larger than asked, in its own shape: whole blocks of pixels are averaged."""
    return image.reduce(math.ceil(max(image.size) / longest))


@dataclass
class MeanColors:
    """The histograms of images that come one by one; each counts once, whatever its size."""

    images: int = 0
    total: Floats | float = 0.0

    def add(self, counts: Integers) -> None:
        self.total = self.total + counts / counts.sum(axis=-1, keepdims=True)
        self.images += 1

    @property
    def shares(self) -> Floats:
        """How often each level of red, green and blue is; of no image, zeros."""
        return np.zeros((CHANNELS, LEVELS)) + self.total / max(self.images, 1)

    @property
    def mean(self) -> tuple[float, float, float]:
        """The mean red, green and blue, in levels from 0 to 255."""
        red, green, blue = self.shares @ np.arange(LEVELS)
        return float(red), float(green), float(blue)

    @property
    def hexadecimal(self) -> str:
        return "#" + "".join(f"{round(level):02x}" for level in self.mean)
