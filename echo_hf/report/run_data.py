"""Read what a report shows: a run's figures, tables and samples."""

from __future__ import annotations

import base64
import hashlib
import io
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image
from pydantic import Field

from echo_hf._infra.bootstrap import Floats, Integers
from echo_hf.config.evaluation import EvaluationConfig
from echo_hf.config.loading import Config
from echo_hf.config.paper import PaperDifference, find_differences
from echo_hf.config.sections import Target
from echo_hf.curate.feedback import normalize_keyword
from echo_hf.errors import ImageError, ReleaseError
from echo_hf.hub.release import iterate_rows
from echo_hf.hub.run_tables import AGREEMENT_FILE, ANALYSIS_FILE, RESULTS_FILE, STRENGTH
from echo_hf.images.embedded import read_embedded
from echo_hf.images.loader import BadImageError, load_rgb
from echo_hf.images.store import ImageStore
from echo_hf.judging.audit import read_audits
from echo_hf.judging.complaints import MissingThreads, group_complaints, read_complaints
from echo_hf.judging.figures import FigureModel, read_figures
from echo_hf.judging.results import FailedAudits, SavedIdentity, SavedResults
from echo_hf.judging.ruler import SavedRuler, read_ruler
from echo_hf.metrics.color_shift import CHANNELS, LEVELS, compute_histograms
from echo_hf.metrics.image_features import map_in_order
from echo_hf.report.analysis.result import Analysis, read_analysis
from echo_hf.report.verdicts import Verdicts, read_judgements
from echo_hf.scores.agreement import Agreement
from echo_hf.scores.rating_table import Unrated, find_scalar_judges
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import Benchmark
from echo_hf.systems.checks import Check, select_newest
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.tables import Row


class AgreementFile(FigureModel):
    merged: Agreement
    failed_audit: FailedAudits = Field({})


COLUMNS = ("id", "task", "review", "doubts", "has_nsfw", "community_feedback", "output_images")


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
class SavedOutput:
    image: str | None
    outcome: str
    reason: str | None = None
    text: str | None = None


@dataclass(frozen=True)
class SavedRating:
    system: str
    judge: str
    rubric: str
    repeat: int
    value: float | None
    explanation: str | None
    outcome: str | None
    is_scalar: bool = False  # a number on no scale, which no other judge's is averaged with


@dataclass(frozen=True)
class UncheckedGroup:
    """A failure that people name and no check asks about, and the threads that one would take."""

    keyword: str
    threads: int
    missing: MissingThreads


@dataclass(frozen=True)
class RunData:
    name: str
    title: str
    target: Target | None
    results: SavedResults
    stale: bool
    agreement: AgreementFile | None
    failures: FailedAudits
    analysis: Analysis | None
    samples: tuple[ReportSample, ...]
    outputs: Mapping[tuple[str, str], SavedOutput]
    ratings: Mapping[str, tuple[SavedRating, ...]]
    systems: tuple[str, ...]
    images: ImageStore
    settings: Mapping[str, Any]
    unlike_paper: tuple[PaperDifference, ...] = ()
    checks: tuple[Check, ...] = ()  # the newest version of each
    unchecked: tuple[UncheckedGroup, ...] = ()
    ruler: SavedRuler | None = None
    verdicts: Verdicts = field(default_factory=Verdicts)

    @property
    def splits(self) -> tuple[str, ...]:
        present = {sample.split for sample in self.samples}
        return tuple(name for name in self.results.details if name in present)

    def select_split(self, split: str) -> Iterator[ReportSample]:
        return (sample for sample in self.samples if sample.split == split)

    @property
    def digests(self) -> tuple[str, ...]:
        digests = [digest for sample in self.samples for digest in (*sample.inputs, *sample.posted)]
        digests += [output.image for output in self.outputs.values() if output.image]
        return tuple(dict.fromkeys(digests))


def read_run_data(run: EvaluationRun) -> RunData:
    config, folder = run.config, run.folder
    results = SavedResults.read(folder.root / RESULTS_FILE)
    benchmark, tables = run.benchmark, run.read_tables()
    outputs = read_outputs(tables.outputs)
    agreement = read_figures(folder.root / AGREEMENT_FILE, AgreementFile, "agree")
    identity = SavedIdentity.model_validate(benchmark.identity())
    samples = select_usable_samples(benchmark, tables.tasks, folder.images)
    unscored = {sample.split for sample in samples} - results.details.keys()
    target = None
    if isinstance(config, Config):
        target = config.target
    elif isinstance(config, EvaluationConfig):  # the dataset of ECHO's authors has no manifest
        with suppress(ReleaseError):
            target = benchmark.read_manifest().target
    # The latest audit of a judge counts, also where it is newer than the scores.
    audited = {judge: tuple(audit["failed"]) for judge, audit in read_audits(folder.root).items()}
    failed = {**(agreement.failed_audit if agreement else {}), **results.failed_audit, **audited}
    checks = select_newest(run.read_checks())
    benchmark_name = results.benchmark.on_hub or results.benchmark.name or config.name
    return RunData(
        name=config.name,
        title=config.target.name if isinstance(config, Config) else benchmark_name,
        target=target,
        results=results,
        stale=bool(unscored) or identity.digests != results.benchmark.digests,
        agreement=agreement,
        failures={judge: flags for judge, flags in sorted(failed.items()) if flags},
        analysis=read_analysis(folder.root / ANALYSIS_FILE),
        samples=samples,
        outputs=outputs,
        ratings=read_ratings(tables.ratings),
        systems=list_systems(results, outputs),
        images=folder.images,
        settings=config.model_dump(mode="json", include={"systems", "judges", "applicability"}),
        unlike_paper=find_differences(config) if isinstance(config, Config) else (),
        checks=tuple(checks.values()),
        # Who evaluates on the release of others has no use for them, nor for its other samples.
        unchecked=tuple(_list_unchecked(run, tuple(checks.values())))
        if isinstance(config, Config)
        else (),
        ruler=read_ruler(folder.root),
        verdicts=read_judgements(tables.comparisons, tables.human),
    )


def _list_unchecked(run: EvaluationRun, checks: Sequence[Check]) -> Iterator[UncheckedGroup]:
    asked = {
        normalize_keyword(keyword)
        for check in checks
        if check.status != "withdrawn"
        for keyword in check.keywords
    }
    for group in group_complaints(read_complaints(run.benchmark, run.folder)):
        if group.forms.isdisjoint(asked):
            yield UncheckedGroup(group.keyword, len(group.threads), group.missing)


def read_outputs(rows: pa.Table | None) -> dict[tuple[str, str], SavedOutput]:
    return {
        (row["sample_id"], row["system"]): SavedOutput(
            row["image"],
            row["outcome"],
            ", ".join(filter(None, (row["stage"], row["code"]))) or None,
            row["text"],
        )
        for row in (rows.to_pylist() if rows else ())
    }


def read_ratings(rows: pa.Table | None) -> dict[str, tuple[SavedRating, ...]]:
    by_sample: dict[str, list[SavedRating]] = {}
    scalar_judges = find_scalar_judges(rows) if rows else frozenset[str]()
    for row in rows.to_pylist() if rows else ():
        if row["outcome"] == Unrated.NOT_NEEDED:
            continue
        # As for `win_rate`, a number that is not finite is no rating.
        value = row["rating"]
        value = value if value is not None and math.isfinite(value) else None
        own: Row = {"value": value, "is_scalar": row["judge"] in scalar_judges}
        names = [each.name for each in fields(SavedRating) if each.name not in own]
        values = {name: row[name] for name in names}
        by_sample.setdefault(row["sample_id"], []).append(SavedRating(**values, **own))
    order = attrgetter("rubric", "system", "judge", "repeat")
    return {sample: tuple(sorted(ratings, key=order)) for sample, ratings in by_sample.items()}


def select_usable_samples(
    benchmark: Benchmark, tasks: Mapping[str, Sequence[Task]], images: ImageStore
) -> tuple[ReportSample, ...]:
    """Read the samples that systems get: those with a prompt and all their input images."""
    samples = []
    for split, split_tasks in tasks.items():
        if not split_tasks:
            continue
        by_id = {task.sample_id: task for task in split_tasks}
        dataset = benchmark.load(split)
        columns = [name for name in COLUMNS if name in dataset.column_names]
        for row in iterate_rows(dataset, 1, columns):
            if (task := by_id.get(row["id"])) is None:
                continue
            feedback = []
            for comment in row.get("community_feedback") or ():
                if comment["feedback"]:
                    verdict, keyword = comment.get("verdict"), comment.get("keyword")
                    words = {"text": comment["feedback"], "verdict": verdict, "keyword": keyword}
                    feedback.append(words)
            flags = [*(row.get("review") or ()), *(row.get("doubts") or ())]
            samples.append(
                ReportSample(
                    id=task.sample_id,
                    split=task.split,
                    prompt=task.prompt,
                    task=row.get("task"),
                    inputs=tuple(image.sha256 for image in task.inputs),
                    posted=tuple(_store_posted(row["id"], row.get("output_images") or (), images)),
                    urls=task.sources,
                    feedback=tuple(feedback),
                    flags=(*flags, *(["nsfw"] if row.get("has_nsfw") else [])),
                )
            )
    return tuple(samples)


def _store_posted(
    row: str, images: Iterable[Mapping[str, Any] | None], store: ImageStore
) -> Iterator[str]:
    for image in filter(None, images):
        encoded = read_embedded(image, row)
        try:
            yield store.put(encoded)
        except ImageError:
            yield hashlib.sha256(encoded).hexdigest()  # the report says that it cannot be shown


def list_systems(
    results: SavedResults, outputs: Mapping[tuple[str, str], SavedOutput]
) -> tuple[str, ...]:
    """List all systems: in the order of the boards, then those that no judge has rated."""
    ranked = [row.system for split in results.details for row in results.board(split)]
    measured = {row.system for row in results.results if row.metric != STRENGTH}
    others = {system for _, system in outputs} | measured
    return tuple(dict.fromkeys([*ranked, *sorted(others)]))


THUMBNAIL_SIDE = 384
JPEG_QUALITY = 80
THUMBNAIL_FOLDER = "thumbs"
NAME_LENGTH = 20  # 80 bits of the digest


@dataclass(frozen=True)
class Thumbnail:
    source: str
    width: int
    height: int


Thumbnails = Mapping[str, Thumbnail]
ThumbnailAndHistogram = tuple[Thumbnail, Integers | None]


def make_thumbnails(
    digests: Iterable[str], images: ImageStore, folder: Path | None, counted: Container[str]
) -> Iterator[tuple[str, ThumbnailAndHistogram | str]]:
    """Make a thumbnail of each image, and the histograms of counted ones; or say why there is none.

    Images are decoded in several threads; only a few of them are held at a time.
    """
    if folder is not None:
        (folder / THUMBNAIL_FOLDER).mkdir(parents=True, exist_ok=True)

    def make_thumbnail(digest: str) -> tuple[str, ThumbnailAndHistogram | str]:
        try:
            image = load_rgb(images.open(digest))
        except BadImageError as error:
            return digest, str(error.reason)
        except ImageError:
            return digest, "the run does not hold it"
        sink, small = io.BytesIO(), shrink_image(image)
        small.save(sink, "JPEG", quality=JPEG_QUALITY)
        if folder is None:
            source = "data:image/jpeg;base64," + base64.b64encode(sink.getvalue()).decode()
        else:
            source = f"{THUMBNAIL_FOLDER}/{digest[:NAME_LENGTH]}.jpg"
            (folder / source).write_bytes(sink.getvalue())
        counts = compute_histograms(image) if digest in counted else None
        return digest, (Thumbnail(source, *small.size), counts)

    yield from map_in_order(make_thumbnail, digests)


def shrink_image(image: Image.Image, max_side: int = THUMBNAIL_SIDE) -> Image.Image:
    """Shrink an image below a side length by averaging whole blocks of pixels."""
    return image.reduce(math.ceil(max(image.size) / max_side))


@dataclass
class MeanColors:
    """The mean histogram of images, added one by one; each counts once, whatever its size."""

    images: int = 0
    total: Floats | float = 0.0

    def add(self, counts: Integers) -> None:
        self.total = self.total + counts / counts.sum(axis=-1, keepdims=True)
        self.images += 1

    @property
    def shares(self) -> Floats:
        """Return the share of each level of red, green and blue; zeros where there is no image."""
        return np.zeros((CHANNELS, LEVELS)) + self.total / max(self.images, 1)

    @property
    def mean(self) -> tuple[float, float, float]:
        """Return the mean red, green and blue, in levels from 0 to 255."""
        red, green, blue = self.shares @ np.arange(LEVELS)
        return float(red), float(green), float(blue)

    @property
    def hexadecimal(self) -> str:
        return "#" + "".join(f"{round(level):02x}" for level in self.mean)
