"""Choose between two outputs that a judge sees side by side, in both orders."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Literal

import pyarrow as pa
from datasets import Dataset
from pydantic import BaseModel

from echo_hf.config.judges import ImageSize, JudgeConfig, PairwiseConfig
from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.judging.outputs import ToRate
from echo_hf.judging.rate import ChoiceAnswer
from echo_hf.judging.stage import STAGE, JudgingStage, Row, not_said, pairwise_prompt
from echo_hf.pipeline.answers import Failure, RawText
from echo_hf.prompts import Prompt, as_data
from echo_hf.reasons import Outcome, Unrated
from echo_hf.systems.base import Task
from echo_hf.tables import COMPARISONS, INTEGER, STRING, STRINGS, Column, Table

Choice = Literal["first", "second", "tie"]
Order = Literal["ab", "ba"]
Winner = Literal["a", "b", "tie"]
ORDERS: tuple[Order, ...] = ("ab", "ba")
TIE: Literal["tie"] = "tie"
# Without ASCII, letters that only look like these would match.
CHOICE = re.compile(r"\[\[\s*(first|second|tie)\s*\]\]", re.ASCII | re.IGNORECASE)
MEANT: dict[str, Choice] = {"first": "first", "second": "second", "tie": "tie"}


def read_choice(text: str) -> Choice | Unrated:
    made = {one.lower() for one in CHOICE.findall(text)}
    if len(made) > 1:
        return Unrated.TWO_CHOICES
    return MEANT[made.pop()] if made else Unrated.NO_CHOICE


def winner_of(choice: Choice, order: Order) -> Winner:
    if choice == TIE:
        return TIE
    return "a" if (choice == "first") == (order == "ab") else "b"


SEPARATOR = "\x1f"
OutputRow = Mapping[str, Any]

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
        "inputs": Column(STRINGS, "digests of its input images"),
        "output_a": Column(STRING, "digest of the output of the first system"),
        "output_b": Column(STRING, "digest of the output of the second system"),
    },
)


def to_compare(judge: JudgeConfig, outputs: ToRate) -> Dataset:
    rows = [row for task in outputs.tasks for row in _of_task(judge, task, outputs)]
    return Dataset(pa.Table.from_pylist(rows, schema=TO_COMPARE.features.arrow_schema))


def is_drawn(options: PairwiseConfig, sample_id: str, system_a: str, system_b: str) -> bool:
    """Whether a pair is one of the share: decided by its digest, whatever else there is."""
    named = SEPARATOR.join((str(options.seed), sample_id, system_a, system_b))
    head = hashlib.sha256(named.encode("utf-8", "surrogatepass")).digest()[:8]
    return int.from_bytes(head, "big") < options.share * 2**64


def _of_task(judge: JudgeConfig, task: Task, outputs: ToRate) -> Iterator[OutputRow]:
    there = sorted(outputs.outputs.get(task.sample_id, ()), key=lambda row: str(row["system"]))
    for a, b in combinations(there, 2):
        if is_drawn(judge.pairwise, task.sample_id, a["system"], b["system"]):
            yield from (
                {**_shared(task, a, b), "order": order, "repeat": repeat}
                for order in ORDERS
                for repeat in range(judge.repeats)
            )


def _shared(task: Task, a: OutputRow, b: OutputRow) -> OutputRow:
    return {
        "sample_id": task.sample_id,
        "system_a": a["system"],
        "system_b": b["system"],
        "sample_digest": task.sample_digest,
        "post_urls": list(task.sources),
        "prompt": task.prompt,
        "inputs": [image.sha256 for image in task.inputs],
        "output_a": a["image"],
        "output_b": b["image"],
    }


@dataclass(frozen=True)
class Compare(JudgingStage):
    name: ClassVar[str] = "compare"
    version: ClassVar[int] = 1
    inputs: ClassVar[Table] = TO_COMPARE
    outputs: ClassVar[Table] = COMPARISONS
    answer: ClassVar[type[BaseModel]] = ChoiceAnswer

    judge: JudgeConfig = dataclasses.field(metadata={"digest": False})
    how: ImageSize
    shown: Mapping[str, ImageRef] = dataclasses.field(metadata={"digest": False}, repr=False)

    @property
    def prompt(self) -> Prompt:
        return pairwise_prompt(self.judge)

    def describe(self) -> dict[str, Any]:
        """What decides a choice; which pairs are drawn does not."""
        asked = {"mode": self.judge.mode, "max_tokens": self.judge.max_tokens}
        return {**super().describe(), "judge": self.judge.name, "asked": asked}

    def _asked(self, system: Message, row: Row) -> list[Request]:
        seen = [*row["inputs"], *_in_order(row)]
        images = [self.shown[digest] for digest in seen if digest in self.shown]
        if len(images) < len(seen):
            return []
        *inputs, first, second = images
        task = {"prompt": row["prompt"], "inputs": len(inputs)}
        parts: list[Text | ImageRef] = [Text(as_data("task", task)), *inputs]
        parts += [Text("<first>"), first, Text("</first>")]
        parts += [Text("<second>"), second, Text("</second>")]
        return [
            Request(
                self.name,
                (system, Message("user", tuple(parts))),
                ChoiceAnswer if self.judge.mode == "structured" else None,
                self.judge.max_tokens,
                {**task, "outputs": _in_order(row)},
                tuple(row["post_urls"]),
                repeat=row["repeat"],
            )
        ]

    def _made_by(self) -> dict[str, Any]:
        return {
            "digest": self.digest(),
            "mode": self.judge.mode,
            "status": self.judge.status,
            "engine": dict(self.answers.signature) if self.answers else None,
            "shown": {"as": self.how},
        }

    def _known(self, row: Row, made_by: Mapping[str, Any]) -> dict[str, Any]:
        names = ("sample_id", "system_a", "system_b", "order", "repeat", "sample_digest")
        return {
            **{name: row[name] for name in names},
            "judge": self.judge.name,
            "output_a_sha256": row["output_a"],
            "output_b_sha256": row["output_b"],
            "prompt_digest": hashlib.sha256(self.prompt.text.encode()).hexdigest(),
            "provenance": json.dumps({STAGE: made_by}, sort_keys=True, default=str),
        }

    def _said(self, given: BaseModel | Failure | Unrated, row: Row) -> dict[str, Any]:
        if isinstance(given, Unrated | Failure):
            return not_said(given)
        if isinstance(given, ChoiceAnswer):
            return _chosen(given.choice, given.explanation, row["order"])
        text = given.text if isinstance(given, RawText) else ""
        return _chosen(read_choice(text), text, row["order"])


def _in_order(row: Row) -> list[str]:
    outputs = [row["output_a"], row["output_b"]]
    return outputs if row["order"] == "ab" else outputs[::-1]


def _chosen(choice: Choice | Unrated, explanation: str, order: Order) -> dict[str, Any]:
    if isinstance(choice, Unrated):
        return {"winner": None, "explanation": explanation, "outcome": choice.value}
    winner = winner_of(choice, order)
    return {"winner": winner, "explanation": explanation, "outcome": Outcome.OK.value}
