"""Stage in which a judge chooses between two outputs, shown side by side in both orders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations, product
from typing import Any, ClassVar, Literal

from datasets import Dataset
from pydantic import BaseModel, create_model

from echo_hf.config.evaluation import JudgeConfig
from echo_hf.engines.base import Request, Text
from echo_hf.judging import rate
from echo_hf.judging.rate import JudgeAnswer, JudgingStage, OutputsToRate
from echo_hf.judging.verdicts import read_choice, read_file_choice
from echo_hf.prompts import Prompt, fill_prompt, quote_as_data
from echo_hf.scores.rating_table import Unrated
from echo_hf.tables import (
    COMPARISONS,
    DRAW,
    DRAW_COLUMN,
    INTEGER,
    STRING,
    Column,
    Outcome,
    Row,
    Table,
)

PAIRWISE = "pairwise"
ORDERS = ("ab", "ba")

TO_COMPARE = Table(
    "to_compare",
    "two outputs of one sample that a judge compares once in one order",
    ("sample_id", "system_a", "system_b", DRAW, "order", "repeat"),
    {
        "sample_id": Column(STRING, "the sample"),
        "system_a": Column(STRING, "the first system by name"),
        "system_b": Column(STRING, "the second system by name"),
        DRAW: DRAW_COLUMN,
        "order": Column(STRING, "ab or ba: which output is shown first"),
        "repeat": Column(INTEGER, "number of the repetition, from 0"),
        **rate.SAMPLE_COLUMNS,
        "output_a": Column(STRING, "digest of the output of the first system"),
        "output_b": Column(STRING, "digest of the output of the second system"),
    },
)


class ChoiceAnswer(JudgeAnswer):
    """A judge's reasons, and which of two outputs it prefers after them."""

    choice: Literal["first", "second", "tie"]


@lru_cache(maxsize=64)
def create_choice_schema(max_tokens: int) -> type[ChoiceAnswer]:
    explanation: Any = rate.make_explanation_type(max_tokens)
    fields: dict[str, Any] = {"explanation": (explanation, ...)}
    return create_model(
        "ChoiceAnswer", __base__=ChoiceAnswer, __doc__=ChoiceAnswer.__doc__, **fields
    )


def build_pairs(judge: JudgeConfig, outputs: OutputsToRate) -> Dataset:
    """Build the rows of `TO_COMPARE`: pairs of equal draws that a judge sees in both orders."""

    def iterate_rows() -> Iterator[Row]:
        for task in outputs.tasks:
            rows = outputs.outputs.get(task.sample_id, ())
            for a, b in combinations(sorted(rows, key=lambda row: str(row["system"])), 2):
                names = {"system_a": a["system"], "system_b": b["system"]}
                key = rate.compute_random_key(judge.pairwise.seed, task.sample_id, *names.values())
                is_chosen = int.from_bytes(key[:8], "big") < judge.pairwise.share * 2**64
                if is_chosen and a[DRAW] == b[DRAW] and a["system"] != b["system"]:
                    names[DRAW] = a[DRAW]
                    images = {"output_a": a["image"], "output_b": b["image"]}
                    pair = {**rate.build_task_row(task), **names, **images}
                    for order, repeat in product(ORDERS, range(judge.repeats)):
                        yield {**pair, "order": order, "repeat": repeat}

    return rate.to_dataset(TO_COMPARE, iterate_rows())


@dataclass(frozen=True)
class Compare(JudgingStage):
    """Stage in which one judge compares pairs of outputs."""

    name: ClassVar[str] = "compare"
    version: ClassVar[int] = 2
    inputs: ClassVar[Table] = TO_COMPARE
    outputs: ClassVar[Table] = COMPARISONS
    answer: ClassVar[type[BaseModel]] = ChoiceAnswer
    field: ClassVar[str] = "choice"

    @property
    def prompt(self) -> Prompt:
        """Return the instructions for choosing; a judge's own prompt file is for ratings alone."""
        if self.judge.judge_file is not None:
            return Prompt(PAIRWISE, self.judge.judge_file.text)
        form = fill_prompt(f"judging/choice_{self.judge.mode}", {}).text
        return Prompt(PAIRWISE, fill_prompt(f"judging/{PAIRWISE}", {"form": form}).text)

    def _get_answer_schema(self) -> type[BaseModel]:
        return create_choice_schema(self.judge.max_tokens)

    def _build_question(self, row: Row) -> tuple[list[Text | str], dict[str, Any]]:
        outputs = [row["output_a"], row["output_b"]]
        if row["order"] == "ba":
            outputs.reverse()
        first, second = outputs
        task = {"prompt": row["prompt"], "inputs": len(row["inputs"])}
        parts: list[Text | str] = [Text(quote_as_data("task", task)), *row["inputs"]]
        parts += [Text("<first>"), first, Text("</first>")]
        parts += [Text("<second>"), second, Text("</second>")]
        return parts, {**task, "outputs": outputs}

    def _build_values(self, row: Row) -> dict[str, Any]:
        names = ("sample_id", "system_a", "system_b", DRAW, "order", "repeat", "sample_digest")
        outputs = {"output_a_sha256": row["output_a"], "output_b_sha256": row["output_b"]}
        return {**{name: row[name] for name in names}, **outputs}

    def wanted_form(self, request: Request) -> str:
        """Describe the form of a choice, for the message that asks again."""
        if request.answer is not None:
            return super().wanted_form(request)
        if (file := self.judge.judge_file) is not None:
            return file.wanted_form
        return "[[first]], [[second]] or [[tie]] at the end"

    def _read_verdict(self, answer: BaseModel) -> tuple[str | Unrated, str]:
        if (file := self.judge.judge_file) is not None:
            return rate.read_verdict(answer, self.field, partial(read_file_choice, file=file))
        return rate.read_verdict(answer, self.field, read_choice)

    def _convert_answer(self, answer: BaseModel, row: Row) -> dict[str, Any]:
        choice, text = self._read_verdict(answer)
        if isinstance(choice, Unrated):
            return {"explanation": text, "outcome": choice.value}
        if choice != "tie":
            choice = "a" if (choice == "first") == (row["order"] == "ab") else "b"
        return {"winner": choice, "explanation": text, "outcome": Outcome.OK.value}
