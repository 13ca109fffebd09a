"""Rate outputs, one at a time, against what a judge would have expected (figures E.1 and E.2)."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from echo_hf.config.judges import ImageSize, JudgeConfig
from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.judging.outputs import TEXT, TO_RATE
from echo_hf.judging.stage import STAGE, JudgingStage, Row, not_said
from echo_hf.pipeline.answers import Failure, RawText
from echo_hf.prompts import Prompt, as_data
from echo_hf.reasons import Outcome, Unrated
from echo_hf.tables import RATINGS, Table

Protocol = Literal["published", "corrected"]

# Whole numbers from 1 to 10 and nothing else: the first of them counts.
PUBLISHED = re.compile(r"\[\[\s*(10|[1-9])\s*\]\]")
PUBLISHED_SCALE = (1.0, 10.0)
# Any number in double square brackets: the last of them counts.
CORRECTED = re.compile(r"\[\[\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*\]\]")


@dataclass(frozen=True, slots=True)
class Scale:
    lowest: float
    highest: float
    decimals: bool = False

    def holds(self, rating: float) -> bool:
        """Whether a number is one of them."""
        whole = self.decimals or float(rating).is_integer()
        return whole and self.lowest <= rating <= self.highest


def read_rating(text: str, scale: Scale, protocol: Protocol) -> float | Unrated:
    if protocol == "published":
        found = PUBLISHED.search(text)
        return float(found[1]) if found else Unrated.NO_RATING
    numbers = CORRECTED.findall(text)
    if not numbers:
        return Unrated.NO_RATING
    rating = float(numbers[-1])
    return rating if scale.holds(rating) else Unrated.BEYOND_SCALE


LONGEST_EXPLANATION = 20_000
LONGEST_RATIONALE = 1000
Explanation = Annotated[str, Field(max_length=LONGEST_EXPLANATION)]
Flag = Annotated[int, Field(ge=0, le=1)]
Rationale = Annotated[str, Field(max_length=LONGEST_RATIONALE)]


class RatingAnswer(BaseModel):
    """A judge's reasons, and its rating after them, so that it reasons first."""

    model_config = ConfigDict(extra="ignore")

    explanation: Explanation
    rating: float


class ChoiceAnswer(BaseModel):
    """A judge's reasons, and which of two outputs it prefers after them."""

    model_config = ConfigDict(extra="ignore")

    explanation: Explanation
    choice: Literal["first", "second", "tie"]


class ApplicabilityAnswer(BaseModel):
    """Which metrics fit a sample: a field of 0 or 1 for each that was asked about, and why."""

    model_config = ConfigDict(extra="ignore")


@lru_cache(maxsize=64)
def rating_answer(scale: Scale) -> type[RatingAnswer]:
    number: Any = float if scale.decimals else int
    bounds = Field(ge=scale.lowest, le=scale.highest)
    if not scale.decimals:
        bounds = Field(ge=int(scale.lowest), le=int(scale.highest))
    return create_model(
        "RatingAnswer", __base__=RatingAnswer, rating=(Annotated[number, bounds], ...)
    )


@lru_cache(maxsize=16)
def applicability_answer(metrics: tuple[str, ...]) -> type[ApplicabilityAnswer]:
    fields: dict[str, Any] = dict.fromkeys(metrics, (Flag, ...))
    return create_model(
        "ApplicabilityAnswer",
        __base__=ApplicabilityAnswer,
        **fields,
        rationale=(Rationale, ...),
    )


@dataclass(frozen=True)
class Rate(JudgingStage):
    name: ClassVar[str] = "rate"
    version: ClassVar[int] = 1
    inputs: ClassVar[Table] = TO_RATE
    outputs: ClassVar[Table] = RATINGS
    answer: ClassVar[type[BaseModel]] = RatingAnswer

    judge: JudgeConfig = dataclasses.field(metadata={"digest": False})
    rubric: str
    instructions: Prompt = dataclasses.field(metadata={"digest": False})
    protocol: Protocol
    how: ImageSize
    shown: Mapping[str, ImageRef] = dataclasses.field(metadata={"digest": False}, repr=False)

    @property
    def prompt(self) -> Prompt:
        return self.instructions

    @property
    def scale(self) -> Scale:
        return Scale(*self.judge.scale, decimals=self.judge.decimals)

    def describe(self) -> dict[str, Any]:
        """What decides a rating; what a config says of the judge beside that does not."""
        judge = self.judge
        scale = [*judge.scale, judge.decimals]
        asked = {"mode": judge.mode, "scale": scale, "max_tokens": judge.max_tokens}
        return {**super().describe(), "judge": judge.name, "asked": asked}

    def _asked(self, system: Message, row: Row) -> list[Request]:
        seen = self._seen(row)
        images = [self.shown[digest] for digest in seen if digest in self.shown]
        if len(images) < len(seen):
            return []
        *inputs, output = images
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
