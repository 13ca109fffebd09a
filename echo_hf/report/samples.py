"""The samples of a benchmark with what systems made of them and what judges said."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from echo_hf.benchmark import Benchmark
from echo_hf.errors import PictureError
from echo_hf.pictures import PictureStore
from echo_hf.systems.base import Task

SHOWN = ("id", "task", "review", "has_nsfw", "community_feedback", "output_images")


@dataclass(frozen=True)
class Feedback:
    """What somebody said of a result.

    Attributes:
        text: Their words.
        verdict: success, failure, mixed or none; null when not asked.
        keyword: What failed, in a few words.
    """

    text: str
    verdict: str | None
    keyword: str | None


@dataclass(frozen=True)
class Sample:
    """One sample.

    Attributes:
        id: The sample.
        split: Config of the benchmark that it is in.
        prompt: The instruction.
        task: Its type of task, null when unknown.
        inputs: Digests of its input pictures.
        posted: Digests of the pictures that its author posted as the result.
        urls: Addresses of its posts, the most important first.
        feedback: What people said of the result.
        flags: Why a person has to look at it.
    """

    id: str
    split: str
    prompt: str
    task: str | None = None
    inputs: tuple[str, ...] = ()
    posted: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    feedback: tuple[Feedback, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Output:
    """What a system made of a sample.

    Attributes:
        picture: Digest of its picture, null when it made none.
        outcome: What became of it.
        reason: Where and why it ended, as far as it is known.
        text: What was said beside or instead of a picture.
    """

    picture: str | None
    outcome: str
    reason: str | None = None
    text: str | None = None


@dataclass(frozen=True)
class Rating:
    """What a judge said of an output.

    Attributes:
        system: The system whose output it is.
        judge: The judge.
        rubric: What it was rated by.
        repeat: Number of the repetition.
        value: On the judge's own scale, null when there is none.
        explanation: The judge's reasons.
        outcome: ok, or why there is no rating.
    """

    system: str
    judge: str
    rubric: str
    repeat: int
    value: float | None
    explanation: str | None
    outcome: str | None


def outputs_of(rows: pa.Table | None) -> dict[tuple[str, str], Output]:
    """What became of each sample and system.

    Args:
        rows: Rows of `OUTPUTS`, null when there are none.

    Returns:
        By sample and system.
    """
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
    """All ratings of each sample.

    Args:
        rows: Rows of `RATINGS`, null when there are none.

    Returns:
        By sample, in the order of rubric, system, judge and repeat.
    """
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
    benchmark: Benchmark, tasks: Mapping[str, Iterable[Task]], pictures: PictureStore
) -> tuple[Sample, ...]:
    """The samples of all splits.

    Args:
        benchmark: Where they are from.
        tasks: The same samples as systems get them, by split.
        pictures: Where posted pictures are put.

    Returns:
        The samples, in the order of the benchmark.
    """
    found = (_of_split(benchmark, list(some), pictures) for some in tasks.values())
    return tuple(sample for some in found for sample in some)


def _of_split(
    benchmark: Benchmark, tasks: Sequence[Task], pictures: PictureStore
) -> Iterator[Sample]:
    rows = _rows(benchmark, tasks[0].split) if tasks else ()
    known = {task.sample_id: task for task in tasks}
    for row in rows:
        task = known.get(row["id"])
        if task is None:  # it cannot be given to a system: words or an input are not there
            continue
        yield Sample(
            id=task.sample_id,
            split=task.split,
            prompt=task.prompt,
            task=row.get("task"),
            inputs=tuple(one.sha256 for one in task.inputs),
            posted=tuple(_posted(row.get("output_images") or (), pictures)),
            urls=task.sources,
            feedback=tuple(_feedback(row.get("community_feedback") or ())),
            flags=(*(row.get("review") or ()), *(["nsfw"] if row.get("has_nsfw") else [])),
        )


def _rows(benchmark: Benchmark, split: str) -> Iterator[dict[str, Any]]:
    dataset = benchmark.load(split)
    dataset = dataset.select_columns([name for name in SHOWN if name in dataset.column_names])
    for table in dataset.with_format("arrow").iter(1):
        yield from table.to_pylist()


def _posted(images: Iterable[Mapping[str, Any] | None], pictures: PictureStore) -> Iterator[str]:
    for image in images:
        if image is None:
            continue
        data = image["bytes"]
        data = Path(image["path"]).read_bytes() if data is None else data
        try:
            yield pictures.put(data)
        except PictureError:
            yield hashlib.sha256(data).hexdigest()  # shown as one that cannot be


def _feedback(rows: Iterable[Mapping[str, Any]]) -> Iterator[Feedback]:
    for row in rows:
        if row["feedback"]:
            yield Feedback(row["feedback"], row.get("verdict"), row.get("keyword"))


def _place(one: Rating) -> tuple[str, str, str, int]:
    return one.rubric, one.system, one.judge, one.repeat
