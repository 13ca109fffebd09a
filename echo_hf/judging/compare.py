"""Choose between two outputs that a judge sees side by side, in both orders."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel

from echo_hf.answers import Failure, RawText
from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.judging.answers import ChoiceAnswer
from echo_hf.judging.choice import Choice, Order, read_choice, winner_of
from echo_hf.judging.config import JudgeConfig, Pictures
from echo_hf.judging.instructions import pairwise_prompt
from echo_hf.judging.judging_stage import STAGE, JudgingStage, Row, not_said
from echo_hf.judging.to_compare import TO_COMPARE
from echo_hf.prompts import Prompt, as_data
from echo_hf.reasons import Outcome, Unrated
from echo_hf.tables import COMPARISONS, Table


@dataclass(frozen=True)
class Compare(JudgingStage):
    """Chooses between two outputs as one judge does.

    A pair whose call failed has a row that says why, without a winner, and stands in the
    quarantine as well.

    Attributes:
        judge: The judge.
        how: How pictures are shown.
        shown: By digest the picture that is sent; one that is not there cannot be shown.
    """

    name: ClassVar[str] = "compare"
    version: ClassVar[int] = 1
    inputs: ClassVar[Table] = TO_COMPARE
    outputs: ClassVar[Table] = COMPARISONS
    answer: ClassVar[type[BaseModel]] = ChoiceAnswer

    judge: JudgeConfig = dataclasses.field(metadata={"digest": False})
    how: Pictures
    shown: Mapping[str, ImageRef] = dataclasses.field(metadata={"digest": False}, repr=False)

    @property
    def prompt(self) -> Prompt:
        """What the judge is told."""
        return pairwise_prompt(self.judge)

    def describe(self) -> dict[str, Any]:
        """What decides a choice; which pairs are drawn does not."""
        asked = {"mode": self.judge.mode, "max_tokens": self.judge.max_tokens}
        return {**super().describe(), "judge": self.judge.name, "asked": asked}

    def _asked(self, system: Message, row: Row) -> list[Request]:
        seen = [*row["inputs"], *_in_order(row)]
        pictures = [self.shown[digest] for digest in seen if digest in self.shown]
        if len(pictures) < len(seen):
            return []
        *inputs, first, second = pictures
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
    """The outputs as they are shown."""
    outputs = [row["output_a"], row["output_b"]]
    return outputs if row["order"] == "ab" else outputs[::-1]


def _chosen(choice: Choice | Unrated, explanation: str, order: Order) -> dict[str, Any]:
    if isinstance(choice, Unrated):
        return {"winner": None, "explanation": explanation, "outcome": choice.value}
    winner = winner_of(choice, order)
    return {"winner": winner, "explanation": explanation, "outcome": Outcome.OK.value}
