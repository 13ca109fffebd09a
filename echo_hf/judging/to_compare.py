"""Which two outputs a judge sees side by side: a share of all pairs, drawn by a digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import pyarrow as pa
from datasets import Dataset

from echo_hf.judging.choice import ORDERS
from echo_hf.judging.config import JudgeConfig, PairwiseConfig
from echo_hf.judging.to_rate import ToRate
from echo_hf.systems.base import Task
from echo_hf.tables import INTEGER, STRING, STRINGS, Column, Table

SEPARATOR = "\x1f"
Row = Mapping[str, Any]

TO_COMPARE = Table(
    "to_compare",
    "two outputs of one sample that a judge compares once in one order",
    ("sample_id", "system_a", "system_b", "order", "repeat"),
    {
        "sample_id": Column(STRING, "the sample"),
        "system_a": Column(STRING, "the first system by name"),
        "system_b": Column(STRING, "the second system by name"),
        "order": Column(STRING, "ab or ba: which output is shown first"),
        "repeat": Column(INTEGER, "number of the repetition, from 0"),
        "sample_digest": Column(STRING, "`sample_digest` of the sample"),
        "post_urls": Column(STRINGS, "posts that the sample was made from"),
        "prompt": Column(STRING, "the instruction"),
        "inputs": Column(STRINGS, "digests of its input pictures"),
        "output_a": Column(STRING, "digest of the output of the first system"),
        "output_b": Column(STRING, "digest of the output of the second system"),
    },
)


def to_compare(judge: JudgeConfig, outputs: ToRate) -> Dataset:
    """The rows that a judge is asked about.

    Args:
        judge: The judge: its share of the pairs, and its repeats.
        outputs: The outputs that are there.

    Returns:
        Rows of `TO_COMPARE`: sample by sample, then pair by pair by name, each in both orders.
    """
    rows = [row for task in outputs.tasks for row in _of_task(judge, task, outputs)]
    return Dataset(pa.Table.from_pylist(rows, schema=TO_COMPARE.features.arrow_schema))


def is_drawn(options: PairwiseConfig, sample_id: str, system_a: str, system_b: str) -> bool:
    """Whether a pair is one of the share: decided by its digest, whatever else there is.

    Args:
        options: The share, and the seed.
        sample_id: The sample.
        system_a: The first system by name.
        system_b: The second.

    Returns:
        Whether sha256 of seed, sample and systems, as a number from 0 to 1, is below the share.

    Example:
        >>> is_drawn(PairwiseConfig(share=1), "s", "amber", "birch")
        True
    """
    named = SEPARATOR.join((str(options.seed), sample_id, system_a, system_b))
    head = hashlib.sha256(named.encode("utf-8", "surrogatepass")).digest()[:8]
    return int.from_bytes(head, "big") < options.share * 2**64


def _of_task(judge: JudgeConfig, task: Task, outputs: ToRate) -> Iterator[Row]:
    there = sorted(outputs.outputs.get(task.sample_id, ()), key=lambda row: str(row["system"]))
    for a, b in combinations(there, 2):
        if is_drawn(judge.pairwise, task.sample_id, a["system"], b["system"]):
            yield from (
                {**_shared(task, a, b), "order": order, "repeat": repeat}
                for order in ORDERS
                for repeat in range(judge.repeats)
            )


def _shared(task: Task, a: Row, b: Row) -> Row:
    return {
        "sample_id": task.sample_id,
        "system_a": a["system"],
        "system_b": b["system"],
        "sample_digest": task.sample_digest,
        "post_urls": list(task.sources),
        "prompt": task.prompt,
        "inputs": [picture.sha256 for picture in task.inputs],
        "output_a": a["image"],
        "output_b": b["image"],
    }
