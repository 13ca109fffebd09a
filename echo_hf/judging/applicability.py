"""Ask a model which specialized metrics fit a sample (section 5.2, figure E.3)."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pyarrow as pa
from datasets import Dataset
from pydantic import BaseModel, ConfigDict, Field, create_model

from echo_hf.config.evaluation import ApplicabilityConfig
from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.judging.rate import SAMPLE_COLUMNS, build_task_row, to_dataset
from echo_hf.metrics.base import Metric, list_measured
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.stage import ModelStage, StageRows
from echo_hf.prompts import Prompt, fill_prompt, quote_as_data
from echo_hf.scores.rating_table import Unrated
from echo_hf.systems.base import Task
from echo_hf.tables import APPLICABILITY, STRING, Column, Outcome, Table

TO_CLASSIFY = Table(
    "to_classify",
    "one sample of a benchmark",
    ("sample_id",),
    {
        "sample_id": Column(STRING, "the sample"),
        "split": Column(STRING, "config of the benchmark that it is in"),
        **{name: SAMPLE_COLUMNS[name] for name in ("post_urls", "prompt", "inputs")},
    },
)
Bit = Annotated[int, Field(ge=0, le=1)]
Rationale = Annotated[str, Field(max_length=1000)]


class ApplicabilityAnswer(BaseModel):
    """Which metrics fit a sample: a field of 0 or 1 for each that was asked about, and why."""

    model_config = ConfigDict(extra="ignore")


Metrics = Sequence[type[Metric]]


def create_applicability_schema(metrics: Metrics) -> type[ApplicabilityAnswer]:
    flags: dict[str, Any] = {metric.name: (Bit, ...) for metric in metrics}
    fields = {**flags, "rationale": (Rationale, ...)}
    return create_model("ApplicabilityAnswer", __base__=ApplicabilityAnswer, **fields)


def fill_applicability_prompt(metrics: Metrics) -> Prompt:
    questions = []
    for metric in metrics:
        question, heading = (metric.question or "").strip(), f'"{metric.name}":'
        has_heading = question.startswith(heading)
        questions.append(question if has_heading else f"{heading} {metric.title}\n{question}")
    keys = ", ".join(f'"{metric.name}": <0 or 1>' for metric in metrics)
    fields = {"measures": "\n\n".join(questions), "keys": keys}
    return Prompt("applicability", fill_prompt("judging/applicability", fields).text)


def list_asked(metrics: Iterable[type[Metric]] = ()) -> tuple[type[Metric], ...]:
    """Return the metrics that have a question, of those that are measured by default if of none."""
    return tuple(metric for metric in metrics or list_measured() if metric.question)


def build_applicability_rows(tasks: Iterable[Task]) -> Dataset:
    return to_dataset(
        TO_CLASSIFY, ({**build_task_row(task), "split": task.split} for task in tasks)
    )


@dataclass(frozen=True)
class Applicability(ModelStage):
    """Stage that asks which metrics fit a sample: those of the paper at once, then all others."""

    name: ClassVar[str] = "applicability"
    version: ClassVar[int] = 1
    inputs: ClassVar[Table] = TO_CLASSIFY
    outputs: ClassVar[Table] = APPLICABILITY
    answer: ClassVar[type[BaseModel]] = ApplicabilityAnswer

    options: ApplicabilityConfig
    images: Mapping[str, ImageRef] = dataclasses.field(metadata={"digest": False}, repr=False)
    # Their questions are in the prompt, which the digest has.
    metrics: Metrics = dataclasses.field(default_factory=list_asked, metadata={"digest": False})

    @property
    def prompt(self) -> Prompt:
        """Return the instructions about all metrics; a request has those about its own."""
        prompts = (fill_applicability_prompt(group).text for group in self._group_metrics(None))
        return Prompt("applicability", "\n\n".join(prompts))

    def _group_metrics(self, split: str | None) -> list[Metrics]:
        """Return the metrics of each request about a sample of a split; null for any split."""
        groups: tuple[list[type[Metric]], ...] = ([], [])
        for metric in self.metrics:
            if split is None or self.options.ask == "all" or split in metric.splits:
                groups[metric.paper_name is None].append(metric)
        return [group for group in groups if group]

    def requests(self, table: pa.Table) -> list[list[Request]]:
        rows = self.input_rows(table)
        forms = {
            split: [
                (fill_applicability_prompt(group), create_applicability_schema(group), group)
                for group in self._group_metrics(split)
            ]
            for split in {row["split"] for row in rows}
        }
        requests_by_row: list[list[Request]] = []
        for row in rows:
            images = [self.images[digest] for digest in row["inputs"] if digest in self.images]
            task = {"task": row["split"], "prompt": row["prompt"], "inputs": len(images)}
            is_shown = len(images) == len(row["inputs"])
            requests_by_row.append(
                [
                    Request(
                        self.name,
                        (
                            Message("system", (Text(prompt.text),)),
                            Message("user", (Text(quote_as_data("task", task)), *images)),
                        ),
                        schema,
                        self.options.max_tokens,
                        {**task, "metrics": tuple(metric.name for metric in group)},
                        tuple(row["post_urls"]),
                        row=row["sample_id"],
                    )
                    for prompt, schema, group in (forms[row["split"]] if is_shown else ())
                ]
            )
        return requests_by_row

    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
        rows = StageRows(self.outputs)
        for number, row in enumerate(self.input_rows(table)):
            key = row["sample_id"]
            for position, group in enumerate(self._group_metrics(row["split"])):
                answer = answers[number][position] if answers[number] else None
                values: dict[str, Any] = {"outcome": Unrated.UNSHOWABLE.value}
                flags: dict[str, Any] = {}
                if isinstance(answer, Failure):
                    rows.quarantine(number, key, answer)
                    values = {"outcome": answer.reason.value}
                elif answer is not None:
                    flags = answer.model_dump()
                    values = {"rationale": flags["rationale"], "outcome": Outcome.OK.value}
                for metric in group:
                    flag = flags.get(metric.name)
                    applies = None if flag is None else bool(flag)
                    own = {"sample_id": key, "metric": metric.name, "applies": applies}
                    rows.keep(number, key, {**own, **values})
        return rows.to_table()

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        applied = Counter(kept.filter(kept["applies"])["metric"].to_pylist())
        return {metric.name: applied[metric.name] for metric in self.metrics}
