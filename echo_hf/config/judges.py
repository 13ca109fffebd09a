"""What a config says of a judge, and the files of judges that configs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from echo_hf.config.checks import (
    AnsweredBy,
    File,
    Name,
    Section,
    Statement,
    StoredEngine,
    Whole,
    Words,
    check_stand_in,
)
from echo_hf.config.systems import read_shared, shipped_configs

Rubric = Literal["overall", "text_rendering"]
ImageSize = Literal["published", "model_budget"]
Bound = Annotated[float, Field(ge=-1000, le=1000)]
MaxTokens = Annotated[Whole, Field(ge=16, le=65_536)]


class PairwiseConfig(Section):
    """Which pairs of outputs a judge sees side by side.

    Attributes:
        share: Share of all pairs of outputs of one sample, above 0, at most 1.
        seed: Seed of the draw, which is the same for all judges with this seed; of two shares the
            larger has all pairs of the smaller.
    """

    share: Annotated[float, Field(gt=0, le=1)] = 0.1
    seed: Annotated[Whole, Field(ge=0)] = 0


class JudgeConfig(Section):
    """One judge of outputs.

    Attributes:
        name: What the table of ratings calls it.
        developer: Who made its model; systems of the same developer are looked at with care.
        status: `as_published`: the paper's own, still to be had; `substitute`: stands in for one
            that is gone; `current`: none of the paper's.
        stands_for: The paper's judge that it is, or stands in for.
        note: What is as published, and what is not.
        engine: Who answers: a kind of engine and its options, as under `engines`.
        rubrics: What it rates by.
        text_samples: What it rates by `text_rendering`: `applicable`, the samples that somebody
            said have text to render, or those of `text_to_image` while nobody was asked;
            `text_to_image`, that split; or `all`.
        mode: `text`: a free answer that ends with [[rating]]; `structured`: JSON with
            explanation and rating.
        scale: Lowest and highest rating.
        decimals: Whether ratings between whole numbers count.
        prompt_file: Instructions of one's own, in place of those of `overall`.
        pictures: How images are sent: `published`, with a short side of 512 pixels as JPEG, or
            `model_budget`, as they are, within the engine's own limits; null for that of the
            config's protocol.
        max_tokens: Longest answer.
        repeats: How often each output is rated, and each pair compared.
        share: Share of the samples that it rates, above 0, at most 1: the same samples for all
            judges, at least 10 of each split; of two shares the larger has all samples of the
            smaller. Another judge has to rate all, by the same rubric.
        pairwise: Which pairs it compares, when it is asked to.
    """

    name: Name
    developer: Words
    status: Literal["as_published", "substitute", "current"]
    stands_for: Words | None = None
    note: Statement | None = None
    engine: StoredEngine
    rubrics: Annotated[tuple[Rubric, ...], Field(min_length=1)] = ("overall",)
    text_samples: Literal["applicable", "text_to_image", "all"] = "applicable"
    mode: Literal["text", "structured"] = "text"
    scale: tuple[Bound, Bound] = (1.0, 10.0)
    decimals: bool = False
    prompt_file: File | None = None
    pictures: ImageSize | None = None
    max_tokens: MaxTokens = 2048
    repeats: Annotated[Whole, Field(ge=1, le=100)] = 1
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    pairwise: PairwiseConfig = PairwiseConfig()

    @model_validator(mode="after")
    def _told(self) -> Self:
        lowest, highest = self.scale
        if lowest >= highest:
            raise ValueError(f"scale is [{lowest:g}, {highest:g}]: expected the lowest first")
        if not self.decimals and not (lowest.is_integer() and highest.is_integer()):
            raise ValueError(
                f"scale is [{lowest:g}, {highest:g}]: expected whole numbers, or decimals: true"
            )
        expected = "as_published or substitute for a judge of the paper"
        check_stand_in(self.name, self.answered_by, self.note, expected)
        return self

    @property
    def model(self) -> str | None:
        model = self.engine.options.get("model")
        return None if model is None else str(model)

    @property
    def answered_by(self) -> AnsweredBy:
        return AnsweredBy.model_validate(self, from_attributes=True)


class ApplicabilityConfig(Section):
    """Who says which specialised metric fits which sample.

    Attributes:
        engine: Who answers: a kind of engine and its options, as under `engines`.
        ask: `split`: of samples with inputs, whether faces, colors and layout should stay; of
            the others, whether text should be rendered. `all`: all four of every sample.
        max_tokens: Longest answer.
    """

    engine: StoredEngine
    ask: Literal["split", "all"] = "split"
    max_tokens: MaxTokens = 1024


def read_judge(path: Path) -> JudgeConfig:
    return read_shared(path, JudgeConfig, "judge", "eval_configs/judges/qwen2_5_vl_32b.yaml")


def shipped_judges() -> list[Path]:
    return sorted(shipped_configs().glob("judges/*.yaml"))
