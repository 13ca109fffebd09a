"""Ask a model which specialized metrics fit a sample (section 5.2, figure E.3)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import pyarrow as pa
from datasets import Dataset
from pydantic import BaseModel, ConfigDict, Field, create_model

from echo_hf.config.evaluation import ApplicabilityConfig
from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.judging.rate import SAMPLE_COLUMNS, TEXT_TO_IMAGE, build_task_row, to_dataset
from echo_hf.metrics import METRICS
from echo_hf.metrics import TEXT_RENDERING as TEXT
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.stage import ModelStage, StageRows
from echo_hf.prompts import Prompt, fill_prompt, quote_as_data
from echo_hf.reasons import Outcome, Unrated
from echo_hf.systems.base import Task
from echo_hf.tables import APPLICABILITY, STRING, Column, Table

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


@lru_cache(maxsize=16)
def create_applicability_schema(metrics: tuple[str, ...]) -> type[ApplicabilityAnswer]:
    fields: dict[str, Any] = {**dict.fromkeys(metrics, (Bit, ...)), "rationale": (Rationale, ...)}
    return create_model("ApplicabilityAnswer", __base__=ApplicabilityAnswer, **fields)


@lru_cache(maxsize=16)
def fill_applicability_prompt(metrics: tuple[str, ...]) -> Prompt:
    measures = (fill_prompt(f"judging/measure_{metric}", {}).text for metric in metrics)
    keys = ", ".join(f'"{metric}": <0 or 1>' for metric in metrics)
    fields = {"measures": "\n\n".join(measures), "keys": keys}
    return Prompt("applicability", fill_prompt("judging/applicability", fields).text)


def build_applicability_rows(tasks: Iterable[Task]) -> Dataset:
    return to_dataset(
        TO_CLASSIFY, ({**build_task_row(task), "split": task.split} for task in tasks)
    )


@dataclass(frozen=True)
class Applicability(ModelStage):
    """Stage that asks which metrics fit a sample; null for metrics not asked about, or failures."""

    name: ClassVar[str] = "applicability"
    version: ClassVar[int] = 1
    inputs: ClassVar[Table] = TO_CLASSIFY
    outputs: ClassVar[Table] = APPLICABILITY
    answer: ClassVar[type[BaseModel]] = ApplicabilityAnswer

    options: ApplicabilityConfig
    images: Mapping[str, ImageRef] = dataclasses.field(metadata={"digest": False}, repr=False)

    @property
    def prompt(self) -> Prompt:
        """Return the instructions about all metrics; a request has those about its own."""
        return fill_applicability_prompt(METRICS)

    def requests(self, table: pa.Table) -> list[list[Request]]:
        requests_by_row: list[list[Request]] = []
        for row in self.input_rows(table):
            images = [self.images[digest] for digest in row["inputs"] if digest in self.images]
            if len(images) < len(row["inputs"]):
                requests_by_row.append([])
                continue
            metrics: tuple[str, ...] = METRICS
            if self.options.ask != "all":
                edit_metrics = tuple(name for name in METRICS if name != TEXT)
                metrics = (TEXT,) if row["split"] == TEXT_TO_IMAGE else edit_metrics
            task = {"task": row["split"], "prompt": row["prompt"], "inputs": len(images)}
            request = Request(
                self.name,
                (
                    Message("system", (Text(fill_applicability_prompt(metrics).text),)),
                    Message("user", (Text(quote_as_data("task", task)), *images)),
                ),
                create_applicability_schema(metrics),
                self.options.max_tokens,
                {**task, "metrics": metrics},
                tuple(row["post_urls"]),
                row=row["sample_id"],
            )
            requests_by_row.append([request])
        return requests_by_row

    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
        rows = StageRows(self.outputs)
        for number, key in enumerate(table["sample_id"].to_pylist()):
            answer = next(iter(answers[number]), None)
            values = {"sample_id": key, "outcome": Unrated.UNSHOWABLE.value}
            if isinstance(answer, Failure):
                rows.quarantine(number, key, answer)
                values["outcome"] = answer.reason.value
            elif answer is not None:
                fields = answer.model_dump()
                values |= {name: bool(fields[name]) for name in METRICS if name in fields}
                values |= {"rationale": fields["rationale"], "outcome": Outcome.OK.value}
            rows.keep(number, key, values)
        return rows.to_table()

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        return {name: kept[name].to_pylist().count(True) for name in METRICS}
