"""Check the outputs of a submission against its release, and measure them without a judge."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from PIL.Image import Image

from echo_hf._infra.summary import SummaryMixin
from echo_hf._infra.text import clean, percent, pluralize
from echo_hf.config.evaluation import EvaluationConfig
from echo_hf.config.systems import MAX_OUTPUTS, SystemConfig
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ImageError, SubmissionError
from echo_hf.hub.release import iterate_rows
from echo_hf.hub.remote import Remote
from echo_hf.hub.run_tables import ResultRow
from echo_hf.hub.submissions import Refusal
from echo_hf.images.embedded import read_embedded
from echo_hf.images.loader import load_rgb, open_image
from echo_hf.images.metadata import MetadataKind, remove_metadata
from echo_hf.images.similarity import (
    BlockSignature,
    compute_signature,
    has_same_details,
    is_same_shape,
    match_colors,
)
from echo_hf.images.store import MAX_IMAGE_BYTES, ImageStore
from echo_hf.judging.judge import read_outputs_to_rate
from echo_hf.judging.score import score
from echo_hf.judging.speaks_to_judge import SpeechReading, read_outputs, read_speech
from echo_hf.metrics.base import find_metric
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Reason
from echo_hf.systems.benchmark import Benchmark, NoTask
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.systems.files import MANIFEST
from echo_hf.systems.generate import generate_outputs
from echo_hf.tables import OUTPUTS, Outcome

MIN_SHARE = 0.8  # of the samples that an output is asked for
MAX_FLAWED_SHARE = 0.1  # of outputs that are copied, and of those that are repeated
MAX_NAMES = 3  # of samples in a message
MAX_MEAN_PIXELS = 1 << 22  # of the samples that an output is asked for: 2048 x 2048 each
READ_BY_OCR = "read_by_ocr"
IMAGE_LEAVES = ("sample_id", "image.bytes", "image.path")
DRAWS = frozenset(map(str, range(1, MAX_OUTPUTS)))


class Remark(Reason):
    """A finding about an output of a submission, or about a sample without one."""

    NOT_SUBMITTED = "not_submitted", "no output, left out or refused: the sample counts as lost"
    NO_SUCH_SAMPLE = "no_such_sample", "no sample of the release has this id: it is left out"
    UNASKED_SAMPLE = "unasked_sample", "no output of this sample is asked for: it is left out"
    OTHER_DRAW = "other_draw", "a further output of a sample: the first one is taken"
    UNUSABLE_IMAGE = "unusable_image", "no image that can be used"
    COPIED_OUTPUT = "copied_output", "another system's output: the sample counts as lost"
    REPEATED_IMAGE = "repeated_image", "another sample has the same image"


class KnownFile(NamedTuple):
    """A table of outputs on the Hub."""

    commit: str
    path: str


@dataclass(frozen=True)
class KnownOutputs:
    """The outputs of a release, and those of other tags and submissions."""

    origins: Mapping[str, str]  # whose output a file is, by sha256
    benchmark: Benchmark
    remote: Remote | None = None
    files: tuple[KnownFile, ...] = ()  # whose images are looked at
    passed_over: int = 0  # files beyond the limit, of which only digests are compared

    def count_samples(self) -> int:
        """Count the samples of the release, also those that no output is asked for."""
        configs = self.benchmark.read_manifest().configs
        return sum(configs[name].rows for name in BENCHMARKS if name in configs)

    def find_copies(
        self, images: Mapping[str, str], pixels: Mapping[str, Sequence[str]], store: ImageStore
    ) -> Iterator[tuple[str, str]]:
        """Yield sample and origin where an output shows what a known one does, however it is saved.

        Another sample's has the same pixels, that of the same sample may also look alike.
        """
        signatures = dict[str, BlockSignature]()
        for name, origin, data in self._iterate():
            try:
                image = load_rgb(data)
                for sample in pixels.get(digest_pixels(image), ()):
                    yield sample, origin
                if name not in images:
                    continue
                encoded = store.open(images[name])
                if name not in signatures:
                    signatures[name] = compute_signature(encoded)
                if (
                    is_same_shape(signatures[name].size, image.size)
                    and _has_same_colors(signatures[name], compute_signature(data))
                    and has_same_details(load_rgb(encoded), image)
                ):
                    yield name, origin
            except ImageError:
                continue  # a known one that cannot be looked at shows nothing to copy

    def _iterate(self) -> Iterator[tuple[str, str, bytes]]:
        """Yield sample, origin and image of the release's own outputs, and of others."""
        if OUTPUTS.name in self.benchmark.read_manifest().configs:
            columns = ["sample_id", "system", "image"]
            for row in iterate_rows(self.benchmark.load(OUTPUTS.name), 1, columns):
                if row["image"] is not None:
                    yield row["sample_id"], row["system"], read_embedded(row["image"], "outputs")
        for file in self.files:
            for known in self.remote.read_leaves(*file, IMAGE_LEAVES) if self.remote else ():
                if (cell := known["image"]) and any(cell.values()):
                    origin = self.origins.get(str(cell["path"]).partition(".")[0], file.path)
                    yield known["sample_id"], origin, read_embedded(cell, file.path)


def digest_pixels(image: Image) -> str:
    """Return a digest of what an image shows, in whichever format it was saved."""
    return hashlib.sha256(f"{image.size}".encode() + image.tobytes()).hexdigest()


def _has_same_colors(left: BlockSignature, right: BlockSignature) -> bool:
    stacked = right.means[None], right.contrasts[None]
    return bool(match_colors(left.means, left.contrasts, *stacked)[0])


@dataclass(frozen=True, repr=False)
class CheckedOutputs(SummaryMixin):
    """The outputs of a submission by sample, and all findings about them."""

    images: Mapping[str, str]  # sha256, without metadata
    sizes: Mapping[str, tuple[int, int]]
    asked: int  # samples; sealed ones are not among them
    left_out: Mapping[NoTask, int]
    remarks: Mapping[Remark, tuple[str, ...]]
    metadata: Mapping[MetadataKind, int]  # files by what was removed of them
    speech: SpeechReading
    figures: tuple[ResultRow, ...]  # of metrics that need no judge
    unmeasured: frozenset[tuple[str, str, str]] = frozenset()  # keys of those this machine cannot
    passed_over: int = 0  # files of known outputs that were compared by digests alone

    @property
    def lost(self) -> dict[str, Remark]:
        """The samples without an output of its own, which count as lost, and why."""
        reasons = Remark.NOT_SUBMITTED, Remark.COPIED_OUTPUT
        return {name: reason for reason in reasons for name in self.remarks.get(reason, ())}

    @property
    def counts(self) -> dict[str, int]:
        """The counts that a submission states, by name."""
        remarks = {str(remark): len(names) for remark, names in self.remarks.items()}
        kinds = {f"metadata_{kind}": count for kind, count in self.metadata.items()}
        counts = {"outputs": len(self.images), **remarks, **kinds, READ_BY_OCR: self.speech.read}
        return {name: count for name, count in sorted(counts.items()) if count}


def check_outputs(
    name: str,
    outputs: Iterable[tuple[str, bytes | str]],
    known: KnownOutputs,
    folder: Path,
    watch: ProgressListener | None = None,
) -> CheckedOutputs:
    """Check outputs by sample, or why one is none, and measure them in an empty folder.

    Raises:
        SubmissionError: What they are is no submission to this release.
    """
    tasks, store = known.benchmark.tasks(None), ImageStore(folder / "submitted")
    asked = {task.sample_id for task in tasks.tasks}
    remaining_pixels = MAX_MEAN_PIXELS * len(asked)
    images, sizes = dict[str, str](), dict[str, tuple[int, int]]()
    remarks = {remark: dict[str, str]() for remark in Remark}
    metadata, pixels = Counter[MetadataKind](), dict[str, list[str]]()
    limit, number = known.count_samples(), 0
    for total, (sample, output) in enumerate(outputs, 1):
        check_count(name, total, limit * MAX_OUTPUTS)
        if is_other_draw(sample, asked):
            remarks[Remark.OTHER_DRAW][sample] = ""
            continue
        number += 1
        check_count(name, number, limit)
        if sample in images or sample in remarks[Remark.UNUSABLE_IMAGE]:
            message = f"submission {name!r} has two outputs of sample {sample[:80]!r}: keep one"
            raise SubmissionError(Refusal.UNREADABLE_BUNDLE, message)
        if sample not in asked:
            remark = Remark.UNASKED_SAMPLE if sample in tasks.names else Remark.NO_SUCH_SAMPLE
            remarks[remark][sample] = ""
            continue
        try:
            if isinstance(output, str):
                raise ImageError(output)
            if len(output) > MAX_IMAGE_BYTES:
                raise ImageError(f"{len(output):,} bytes, expected at most {MAX_IMAGE_BYTES:,}")
            with open_image(output) as header:  # nothing is decoded yet
                remaining_pixels -= header.width * header.height
            if remaining_pixels < 0:
                raise SubmissionError(
                    Refusal.BUNDLE_TOO_LARGE,
                    f"submission {name!r} has more than {MAX_MEAN_PIXELS * len(asked):,} pixels: "
                    f"expected at most {MAX_MEAN_PIXELS:,} a sample on average; make them smaller",
                )
            cleaned, kinds = remove_metadata(output)
            digest = store.put(cleaned)
            image = load_rgb(cleaned)
        except ImageError as error:
            remarks[Remark.UNUSABLE_IMAGE][sample] = str(error)
            continue
        metadata.update(kinds)
        images[sample], sizes[sample] = digest, image.size
        pixels.setdefault(digest_pixels(image), []).append(sample)
        for each in (digest, hashlib.sha256(output).hexdigest()):
            if origin := known.origins.get(each):
                remarks[Remark.COPIED_OUTPUT][sample] = origin
    for names in pixels.values():
        remarks[Remark.REPEATED_IMAGE].update(dict.fromkeys(names if len(names) > 1 else (), ""))
    remarks[Remark.NOT_SUBMITTED] = dict.fromkeys(asked - images.keys(), "")
    _refuse_flawed(name, images, remarks, len(asked))
    remarks[Remark.COPIED_OUTPUT] |= dict(known.find_copies(images, pixels, store))
    _refuse_flawed(name, images, remarks, len(asked))
    run = _draw(name, images, store, known.benchmark, folder / "run")
    speech = read_outputs(run.folder.root, run.folder.images, read_outputs_to_rate(run), watch)
    spoken = read_speech(run.folder.root).samples
    words = {
        sample: phrase for sample, read in spoken.items() for phrase in read.values() if phrase
    }
    if words:
        raise SubmissionError(
            Refusal.WORDS_TO_JUDGE,
            f"submission {name!r}: words in {pluralize(len(words), 'output')} speak to the judge "
            f"({_name_some(words)}): draw them anew",
        )
    rows = [row for row in score(run).results if row.system == name]
    figures = tuple(
        row.model_copy(update={"definition": None}) for row in rows if row.value is not None
    )
    unmeasured = (row.key for row in rows if row.value is None and _needs_more(row))
    return CheckedOutputs(
        images,
        sizes,
        len(asked),
        tasks.left_out,
        {remark: tuple(sorted(samples)) for remark, samples in remarks.items() if samples},
        dict(sorted(metadata.items())),
        speech,
        figures,
        frozenset(unmeasured),
        known.passed_over,
    )


def _needs_more(row: ResultRow) -> bool:
    """Return whether a figure needs what is not installed here, and no judge."""
    metric = find_metric(row.metric)
    is_missing = isinstance(row.definition, Mapping) and "missing" in row.definition
    return is_missing and metric is not None and "ratings" not in metric.needs


def is_other_draw(name: str, samples: Collection[str]) -> bool:
    """Return whether a file is the second output of a sample, or a later one."""
    sample, _, draw = name.rpartition(".")
    return draw in DRAWS and sample in samples and name not in samples


def check_count(name: str, count: int, limit: int) -> None:
    if count > limit:
        raise SubmissionError(
            Refusal.TOO_MANY_FILES,
            f"submission {name!r} has {count:,} outputs or more: expected at most {limit:,}, one "
            "for each sample of the release",
        )


def _refuse_flawed(
    name: str, images: Mapping[str, str], remarks: Mapping[Remark, Mapping[str, str]], asked: int
) -> None:
    if unusable := remarks[Remark.UNUSABLE_IMAGE]:
        raise SubmissionError(
            Refusal.FLAWED,
            f"submission {name!r}: {pluralize(len(unusable), 'output')} cannot be used "
            f"({_name_some(unusable)}): mend them, or leave them out",
        )
    if len(images) < MIN_SHARE * asked or not images:
        raise SubmissionError(
            Refusal.TOO_FEW,
            f"submission {name!r} has outputs of {len(images):,} of {asked:,} samples "
            f"(none of {_name_some(dict.fromkeys(remarks[Remark.NOT_SUBMITTED], ''))}): expected "
            f"at least {percent(MIN_SHARE)}, files named by sample id",
        )
    for remark, complaint in {
        Remark.COPIED_OUTPUT: "are those of other systems or releases",
        Remark.REPEATED_IMAGE: "are one image for several samples",
    }.items():
        if len(remarks[remark]) > MAX_FLAWED_SHARE * len(images):
            raise SubmissionError(
                Refusal.FLAWED,
                f"submission {name!r}: {len(remarks[remark]):,} of {len(images):,} outputs "
                f"{complaint} ({_name_some(remarks[remark])}): expected its own, at most "
                f"{percent(MAX_FLAWED_SHARE)} of others",
            )


def _name_some(samples: Mapping[str, str]) -> str:
    named = [
        clean(sample, 80) + (f": {clean(words)}" if words else "")
        for sample, words in sorted(samples.items())[:MAX_NAMES]
    ]
    return ", ".join([*named, *(["..."] if len(samples) > MAX_NAMES else [])])


def make_files_system(
    name: str,
    developer: str,
    model: str,
    images: Mapping[str, str],
    store: ImageStore,
    lost: Mapping[str, Remark] | None = None,
) -> SystemConfig:
    """Make the system whose outputs these images of a store are, but for what it has lost."""
    entries = {
        sample: {"file": str(store.path(digest).relative_to(store.root))}
        for sample, digest in images.items()
    }
    for sample, reason in (lost or {}).items():
        entries[sample] = {"outcome": str(Outcome.NO_IMAGE), "code": str(reason)}
    lines = (
        json.dumps({"sample_id": sample, **entry}) for sample, entry in sorted(entries.items())
    )
    (store.root / MANIFEST).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return SystemConfig(
        name=name,
        adapter="files",
        developer=developer,
        model=model,
        status="replay",
        parameters={"folder": str(store.root), "layout": "flat"},
    )


def _draw(
    name: str, images: Mapping[str, str], store: ImageStore, benchmark: Benchmark, root: Path
) -> EvaluationRun:
    """Draw the outputs in a run of their own, by the adapter of every image that is there."""
    system = make_files_system(name, "unknown", name, images, store)
    config = EvaluationConfig(name="submission", benchmark=benchmark.reference, systems=(system,))
    run = EvaluationRun(config, RunFolder(root))
    run.benchmark = benchmark
    generate_outputs(run)
    return run
