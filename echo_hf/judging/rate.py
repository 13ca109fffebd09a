"""Rate outputs, one at a time, against what a judge would have expected (figures E.1 and E.2)."""

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
from echo_hf.judging.answers import RatingAnswer, rating_answer
from echo_hf.judging.config import JudgeConfig, Pictures
from echo_hf.judging.judging_stage import STAGE, JudgingStage, Row, not_said
from echo_hf.judging.rating import Protocol, Scale, read_rating
from echo_hf.judging.to_rate import TEXT, TO_RATE
from echo_hf.prompts import Prompt, as_data
from echo_hf.reasons import Outcome, Unrated
from echo_hf.tables import RATINGS, Table


@dataclass(frozen=True)
class Rate(JudgingStage):
    """Rates outputs by one rubric as one judge does.

    An output whose call failed has a row that says why, without a rating, and stands in the
    quarantine as well.

    Attributes:
        judge: The judge.
        rubric: Name of the rubric.
        instructions: What the judge is told.
        protocol: How a free answer is read.
        how: How pictures are shown.
        shown: By digest the picture that is sent; one that is not there cannot be shown.
    """

    name: ClassVar[str] = "rate"
    version: ClassVar[int] = 1
    inputs: ClassVar[Table] = TO_RATE
    outputs: ClassVar[Table] = RATINGS
    answer: ClassVar[type[BaseModel]] = RatingAnswer

    judge: JudgeConfig = dataclasses.field(metadata={"digest": False})
    rubric: str
    instructions: Prompt = dataclasses.field(metadata={"digest": False})
    protocol: Protocol
    how: Pictures
    shown: Mapping[str, ImageRef] = dataclasses.field(metadata={"digest": False}, repr=False)

    @property
    def prompt(self) -> Prompt:
        """What the judge is told."""
        return self.instructions

    @property
    def scale(self) -> Scale:
        """The ratings that the judge may give."""
        return Scale(*self.judge.scale, decimals=self.judge.decimals)

    def describe(self) -> dict[str, Any]:
        """What decides a rating; what a config says of the judge beside that does not."""
        judge = self.judge
        scale = [*judge.scale, judge.decimals]
        asked = {"mode": judge.mode, "scale": scale, "max_tokens": judge.max_tokens}
        return {**super().describe(), "judge": judge.name, "asked": asked}

    def _asked(self, system: Message, row: Row) -> list[Request]:
        seen = self._seen(row)
        pictures = [self.shown[digest] for digest in seen if digest in self.shown]
        if len(pictures) < len(seen):
            return []
        *inputs, output = pictures
        # What all outputs of a sample share comes first, and is computed once.
        shared: list[Text | ImageRef] = [Text(as_data("task", self._task(row))), *inputs]
        parts = (*shared, Text("<output>"), output, Text("</output>"))
        return [
            Request(
                self.name,
                (system, Message("user", parts)),
                rating_answer(self.scale) if self.judge.mode == "structured" else None,
                self.judge.max_tokens,
                {**self._task(row), "rubric": self.rubric, "output": row["output"]},
                tuple(row["post_urls"]),
                repeat=row["repeat"],
            )
        ]

    def _task(self, row: Row) -> dict[str, Any]:
        if self.rubric == TEXT:
            return {"prompt": row["prompt"]}
        return {"prompt": row["prompt"], "inputs": len(row["inputs"])}

    def _seen(self, row: Row) -> list[str]:
        return [*([] if self.rubric == TEXT else row["inputs"]), row["output"]]

    def _made_by(self) -> dict[str, Any]:
        return {
            "digest": self.digest(),
            "protocol": self.protocol,
            "mode": self.judge.mode,
            "scale": list(self.judge.scale),
            "status": self.judge.status,
            "engine": dict(self.answers.signature) if self.answers else None,
        }

    def _known(self, row: Row, made_by: Mapping[str, Any]) -> dict[str, Any]:
        *inputs, output = [_digest(self.shown.get(digest)) for digest in self._seen(row)]
        shown = {"as": self.how, "inputs": inputs, "output": output}
        return {
            "sample_id": row["sample_id"],
            "system": row["system"],
            "judge": self.judge.name,
            "rubric": self.rubric,
            "repeat": row["repeat"],
            "sample_digest": row["sample_digest"],
            "output_sha256": row["output"],
            "prompt_digest": hashlib.sha256(self.prompt.text.encode()).hexdigest(),
            "provenance": _provenance({**made_by, "shown": shown}),
        }

    def _said(self, given: BaseModel | Failure | Unrated, row: Row) -> dict[str, Any]:
        del row  # a rating reads the same whatever it is about
        if isinstance(given, Unrated | Failure):
            return not_said(given)
        if isinstance(given, RatingAnswer):
            return _rated(given.rating, given.explanation)
        text = given.text if isinstance(given, RawText) else ""
        return _rated(read_rating(text, self.scale, self.protocol), text)


def _rated(rating: float | Unrated, explanation: str) -> dict[str, Any]:
    if isinstance(rating, Unrated):
        return {"rating": None, "explanation": explanation, "outcome": rating.value}
    return {"rating": float(rating), "explanation": explanation, "outcome": Outcome.OK.value}


def _digest(reference: ImageRef | None) -> str | None:
    return None if reference is None else reference.sha256


def _provenance(made_by: Mapping[str, Any]) -> str:
    return json.dumps({STAGE: made_by}, sort_keys=True, default=str)
