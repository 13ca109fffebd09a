"""Which samples people rank, and the images of each: a draw that a seed repeats."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from echo_hf.images.store import ImageStore
from echo_hf.judging.rate import outputs_to_rate
from echo_hf.reasons import NotRanked, Reason
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import Tasks

LEAST_OUTPUTS = 2


@dataclass(frozen=True, slots=True)
class ShownOutput:
    system: str
    output: str


@dataclass(frozen=True, slots=True)
class RankedSample:
    task: Task
    outputs: tuple[ShownOutput, ...]


@dataclass(frozen=True)
class Draw:
    samples: tuple[RankedSample, ...]
    known: Mapping[str, RankedSample]
    seed: int
    left_out: Mapping[Reason, int]


def drawn_samples(
    outputs: pa.Table,
    benchmark: Tasks,
    images: ImageStore,
    *,
    draw: int,
    seed: int,
    splits: Collection[str],
) -> Draw:
    """Draws samples of which at least two systems have made an image."""
    there = outputs_to_rate(outputs, benchmark)
    left_out: Counter[Reason] = Counter(there.left_out)
    shown = {name: _shown(rows, images) for name, rows in there.outputs.items()}
    lost = sum(map(len, there.outputs.values())) - sum(map(len, shown.values()))
    left_out[NotRanked.LOST_IMAGE] += lost
    every = [RankedSample(task, shown.get(task.sample_id, ())) for task in there.tasks]
    known = {one.task.sample_id: one for one in every if one.outputs}
    samples: list[RankedSample] = []
    for split in splits:
        some = [one for one in every if one.task.split == split]
        enough = [one for one in some if len(one.outputs) >= LEAST_OUTPUTS]
        first = sorted(enough, key=lambda one: _digest(seed, one.task.sample_id))[:draw]
        left_out[NotRanked.FEW_OUTPUTS] += len(some) - len(enough)
        left_out[NotRanked.NOT_DRAWN] += len(enough) - len(first)
        samples += first
    left_out = Counter({why: count for why, count in left_out.items() if count})
    return Draw(tuple(samples), known, seed, left_out)


def shuffled(sample: RankedSample, person: str, seed: int) -> tuple[ShownOutput, ...]:
    """The images of a sample in the order in which a person sees them."""

    def place(one: ShownOutput) -> str:
        return _digest(seed, person, sample.task.sample_id, one.system)

    return tuple(sorted(sample.outputs, key=place))


def _shown(rows: Sequence[Mapping[str, Any]], images: ImageStore) -> tuple[ShownOutput, ...]:
    made: Iterable[ShownOutput] = (ShownOutput(row["system"], row["image"]) for row in rows)
    return tuple(one for one in made if images.path(one.output).exists())


def _digest(*parts: object) -> str:
    return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()
