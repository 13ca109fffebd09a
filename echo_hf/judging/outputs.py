"""The outputs that judges are asked about, and their images as judges see them."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset
from PIL import Image

from echo_hf.config.judges import ImageSize, JudgeConfig
from echo_hf.engines.base import ImageRef
from echo_hf.errors import ImageError
from echo_hf.hub.run_tables import left_out_reasons
from echo_hf.images.decode import BadImageError, open_image
from echo_hf.images.store import ImageStore
from echo_hf.reasons import BadImage, NotJudged, Outcome, Reason
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import Tasks
from echo_hf.tables import INTEGER, STRING, STRINGS, Column, Table

TEXT = "text_rendering"
WORDS_ALONE = "text_to_image"
Row = Mapping[str, Any]

TO_RATE = Table(
    "to_rate",
    "one output that a judge rates once",
    ("sample_id", "system", "repeat"),
    {
        "sample_id": Column(STRING, "the sample"),
        "system": Column(STRING, "the system whose output is rated"),
        "repeat": Column(INTEGER, "number of the repetition, from 0"),
        "sample_digest": Column(STRING, "`sample_digest` of the sample"),
        "post_urls": Column(STRINGS, "posts that the sample was made from"),
        "prompt": Column(STRING, "the instruction"),
        "inputs": Column(STRINGS, "digests of its input images"),
        "output": Column(STRING, "digest of the output"),
    },
)


@dataclass(frozen=True)
class ToRate:
    outputs: Mapping[str, Sequence[Row]]
    tasks: tuple[Task, ...]
    left_out: Mapping[Reason, int]

    def rows(self, judge: JudgeConfig, fits: Callable[[Task], bool]) -> Dataset:
        rows = [
            row_to_rate(task, output, repeat)
            for task in self.tasks
            if fits(task)
            for repeat in range(judge.repeats)
            for output in self.outputs.get(task.sample_id, ())
        ]
        return rows_to_rate(rows)


def outputs_to_rate(outputs: pa.Table, benchmark: Tasks, limit: int | None = None) -> ToRate:
    """Sorts outputs by whether there is something to rate."""
    digests = {task.sample_id: task.sample_digest for task in benchmark.tasks}
    left_out: Counter[Reason] = Counter(dict(benchmark.left_out.items()))
    by_sample: dict[str, list[Row]] = {}
    rows = sorted(outputs.to_pylist(), key=lambda row: (row["sample_id"], row["system"]))
    reasons = left_out_reasons(pa.Table.from_pylist(rows, outputs.schema), digests)
    for row, reason in zip(rows, reasons, strict=True):
        if reason is not None:
            left_out[reason] += 1
        elif row["outcome"] != Outcome.OK or row["image"] is None:
            left_out[NotJudged.WITHOUT_IMAGE] += 1
        else:
            by_sample.setdefault(row["sample_id"], []).append(row)
    return ToRate(by_sample, tuple(_first(benchmark.tasks, limit)), left_out)


def rows_to_rate(rows: Iterable[Row]) -> Dataset:
    return Dataset(pa.Table.from_pylist(list(rows), schema=TO_RATE.features.arrow_schema))


def has_text(judge: JudgeConfig, applicability: pa.Table | None) -> Callable[[Task], bool]:
    """Which samples a judge rates by `text_rendering`."""
    if judge.text_samples == "all":
        return lambda _: True
    flags = _flags(applicability) if judge.text_samples == "applicable" else {}
    if any(flag is not None for flag in flags.values()):
        return lambda task: bool(flags.get(task.sample_id))
    return lambda task: task.split == WORDS_ALONE


def _flags(applicability: pa.Table | None) -> dict[str, bool | None]:
    if applicability is None:
        return {}
    columns = (applicability[name].to_pylist() for name in ("sample_id", TEXT))
    return dict(zip(*columns, strict=True))


def _first(tasks: Iterable[Task], limit: int | None) -> Iterator[Task]:
    seen: Counter[str] = Counter()
    for task in tasks:
        seen[task.split] += 1
        if limit is None or seen[task.split] <= limit:
            yield task


def row_to_rate(task: Task, output: Row, repeat: int) -> Row:
    return {
        "sample_id": task.sample_id,
        "system": output["system"],
        "repeat": repeat,
        "sample_digest": task.sample_digest,
        "post_urls": list(task.sources),
        "prompt": task.prompt,
        "inputs": [image.sha256 for image in task.inputs],
        "output": output["image"],
    }


SHORT_SIDE = 512
QUALITY = 85
LONGEST_SIDE = 65_500  # of a JPEG
THREADS = 4
# A color for each two by two pixels, which is what OpenCV writes.
SUBSAMPLING = "4:2:0"

Size = tuple[int, int]


def shown_images(images: ImageStore, digests: Iterable[str], how: ImageSize) -> dict[str, ImageRef]:
    wanted = dict.fromkeys(digests)

    def shown(digest: str) -> ImageRef | None:
        file = images.path(digest)
        if how == "model_budget":
            return ImageRef(digest, file) if file.is_file() else None
        try:
            small = images.put(as_published(file))
        except ImageError:
            return None
        return ImageRef(small, images.path(small))

    with ThreadPoolExecutor(THREADS) as threads:
        made: Mapping[str, ImageRef | None] = dict(
            zip(wanted, threads.map(shown, wanted), strict=True)
        )
    return {digest: reference for digest, reference in made.items() if reference is not None}


def as_published(image: bytes | Path) -> bytes:
    """An image as the released code sends it to a judge."""
    with open_image(image) as opened:
        size = published_size(opened.size)
        if max(size) > LONGEST_SIDE:
            raise BadImageError(
                BadImage.TOO_MANY_PIXELS, f"{size[0]} x {size[1]} with a short side of 512"
            )
        small = opened.resize(size).convert("RGB")
    return _jpeg(small)


def published_size(size: Size) -> Size:
    """Width and height of an image as the released code sends it."""
    factor = SHORT_SIDE / min(size)
    return int(size[0] * factor), int(size[1] * factor)


def _jpeg(image: Image.Image) -> bytes:
    sink = io.BytesIO()
    # Pillow would copy the original's comment, which is a stranger's text.
    image.save(sink, "JPEG", quality=QUALITY, subsampling=SUBSAMPLING, comment=b"")
    return sink.getvalue()
