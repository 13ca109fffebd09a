"""What a judge is asked about: outputs that are there, of samples as they are now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from datasets import Dataset

from echo_hf.benchmark import Tasks
from echo_hf.hub.run_tables import left_out_reasons
from echo_hf.judging.config import JudgeConfig
from echo_hf.reasons import NotJudged, Outcome, Reason
from echo_hf.systems.base import Task
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
        "inputs": Column(STRINGS, "digests of its input pictures"),
        "output": Column(STRING, "digest of the output"),
    },
)


@dataclass(frozen=True)
class ToRate:
    """The outputs that are there to rate.

    Attributes:
        outputs: Rows of `OUTPUTS` with a picture, by sample.
        tasks: The samples, in the order of the benchmark.
        left_out: How many other samples and rows of outputs there are, by reason.
    """

    outputs: Mapping[str, Sequence[Row]]
    tasks: tuple[Task, ...]
    left_out: Mapping[Reason, int]

    def rows(self, judge: JudgeConfig, fits: Callable[[Task], bool]) -> Dataset:
        """The rows that a judge is asked about.

        Outputs of one sample stand together, so that what they share is computed once.

        Args:
            judge: The judge.
            fits: Whether the rubric is about a sample.

        Returns:
            Rows of `TO_RATE`: sample by sample, then repeat by repeat, then by name of the system.
        """
        rows = [
            row_to_rate(task, output, repeat)
            for task in self.tasks
            if fits(task)
            for repeat in range(judge.repeats)
            for output in self.outputs.get(task.sample_id, ())
        ]
        return rows_to_rate(rows)


def outputs_to_rate(outputs: pa.Table, benchmark: Tasks, limit: int | None = None) -> ToRate:
    """Sorts outputs by whether there is something to rate.

    Args:
        outputs: Rows of `OUTPUTS`.
        benchmark: All tasks of the benchmark.
        limit: Most samples of each split, the first ones.

    Returns:
        What is rated, and what is not and why.
    """
    digests = {task.sample_id: task.sample_digest for task in benchmark.tasks}
    left_out: Counter[Reason] = Counter(dict(benchmark.left_out.items()))
    by_sample: dict[str, list[Row]] = {}
    rows = sorted(outputs.to_pylist(), key=lambda row: (row["sample_id"], row["system"]))
    reasons = left_out_reasons(pa.Table.from_pylist(rows, outputs.schema), digests)
    for row, reason in zip(rows, reasons, strict=True):
        if reason is not None:
            left_out[reason] += 1
        elif row["outcome"] != Outcome.OK or row["image"] is None:
            left_out[NotJudged.WITHOUT_PICTURE] += 1
        else:
            by_sample.setdefault(row["sample_id"], []).append(row)
    return ToRate(by_sample, tuple(_first(benchmark.tasks, limit)), left_out)


def rows_to_rate(rows: Iterable[Row]) -> Dataset:
    """Rows of `TO_RATE` as a dataset, in their order."""
    return Dataset(pa.Table.from_pylist(list(rows), schema=TO_RATE.features.arrow_schema))


def has_text(judge: JudgeConfig, applicability: pa.Table | None) -> Callable[[Task], bool]:
    """Which samples a judge rates by `text_rendering`.

    Args:
        judge: The judge.
        applicability: Rows of `APPLICABILITY`, null when nobody was asked.

    Returns:
        Whether a sample is one of them.
    """
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
    """A row of `TO_RATE`.

    Args:
        task: The sample.
        output: The output: `system` and the digest `image`.
        repeat: Number of the repetition, from 0.

    Returns:
        Its values.
    """
    return {
        "sample_id": task.sample_id,
        "system": output["system"],
        "repeat": repeat,
        "sample_digest": task.sample_digest,
        "post_urls": list(task.sources),
        "prompt": task.prompt,
        "inputs": [picture.sha256 for picture in task.inputs],
        "output": output["image"],
    }
