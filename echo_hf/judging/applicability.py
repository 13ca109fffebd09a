"""Say which specialised metrics fit a sample (section 5.2, figure E.3)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from datasets import Dataset
from pydantic import BaseModel

from echo_hf.config.judges import ApplicabilityConfig
from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.judging.outputs import WORDS_ALONE
from echo_hf.judging.rate import ApplicabilityAnswer, applicability_answer
from echo_hf.judging.stage import METRICS, applicability_prompt
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.stage import ModelStage, StageRows
from echo_hf.prompts import Prompt, as_data
from echo_hf.reasons import Outcome, Unrated
from echo_hf.systems.base import Task
from echo_hf.tables import APPLICABILITY, STRING, STRINGS, Column, Table

TEXT = METRICS[-1:]
OF_INPUTS = METRICS[:-1]
Row = Mapping[str, Any]

TO_CLASSIFY = Table(
    "to_classify",
    "one sample of a benchmark",
    ("sample_id",),
    {
        "sample_id": Column(STRING, "the sample"),
        "split": Column(STRING, "config of the benchmark that it is in"),
        "post_urls": Column(STRINGS, "posts that it was made from"),
        "prompt": Column(STRING, "the instruction"),
        "inputs": Column(STRINGS, "digests of its input images"),
    },
)


def to_classify(tasks: Iterable[Task]) -> Dataset:
    """Rows of `TO_CLASSIFY` for some tasks, in their order."""
    rows = [
        {
            "sample_id": task.sample_id,
            "split": task.split,
            "post_urls": list(task.sources),
            "prompt": task.prompt,
            "inputs": [image.sha256 for image in task.inputs],
        }
        for task in tasks
    ]
    return Dataset(pa.Table.from_pylist(rows, schema=TO_CLASSIFY.features.arrow_schema))


@dataclass(frozen=True)
class Fitting(ModelStage):
    """Asks of each sample which metrics fit it; what is not asked, or failed, is null."""

    name: ClassVar[str] = "applicability"
    version: ClassVar[int] = 1
    inputs: ClassVar[Table] = TO_CLASSIFY
    outputs: ClassVar[Table] = APPLICABILITY
    answer: ClassVar[type[BaseModel]] = ApplicabilityAnswer

    options: ApplicabilityConfig
    shown: Mapping[str, ImageRef] = dataclasses.field(metadata={"digest": False}, repr=False)

    @property
    def prompt(self) -> Prompt:
        """The instructions about all metrics; a request holds those that it asks about."""
        return applicability_prompt(METRICS)

    def metrics_of(self, split: str) -> tuple[str, ...]:
        if self.options.ask == "all":
            return METRICS
        return TEXT if split == WORDS_ALONE else OF_INPUTS

    def requests(self, table: pa.Table) -> list[list[Request]]:
        """One call for each sample whose images can be shown."""
        systems = {
            split: Message("system", (Text(applicability_prompt(self.metrics_of(split)).text),))
            for split in table["split"].unique().to_pylist()
        }
        return [self._asked(systems[row["split"]], row) for row in self.input_rows(table)]

    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
        rows = StageRows(self.outputs)
        for number, row in enumerate(self.input_rows(table)):
            key = row["sample_id"]
            given = next(iter(answers[number]), Unrated.UNSHOWABLE)
            if isinstance(given, Failure):
                rows.failed(number, key, given)
            rows.keep(number, key, {"sample_id": key, **_said(given)})
        return rows.table()

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        return {name: kept[name].to_pylist().count(True) for name in METRICS}

    def _asked(self, system: Message, row: Row) -> list[Request]:
        images = [self.shown[digest] for digest in row["inputs"] if digest in self.shown]
        if len(images) < len(row["inputs"]):
            return []
        metrics = self.metrics_of(row["split"])
        task = {"task": row["split"], "prompt": row["prompt"], "inputs": len(images)}
        return [
            Request(
                self.name,
                (system, Message("user", (Text(as_data("task", task)), *images))),
                applicability_answer(metrics),
                self.options.max_tokens,
                {**task, "metrics": metrics},
                tuple(row["post_urls"]),
                row=row["sample_id"],
            )
        ]


def _said(given: BaseModel | Failure | Unrated) -> dict[str, Any]:
    if isinstance(given, Unrated):
        return {"outcome": given.value}
    if isinstance(given, Failure):
        return {"outcome": given.reason.value}
    said = given.model_dump()
    flags = {name: bool(said[name]) for name in METRICS if name in said}
    return {**flags, "rationale": said["rationale"], "outcome": Outcome.OK.value}
