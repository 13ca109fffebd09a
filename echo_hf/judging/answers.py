"""The declared shapes of what judges answer in JSON."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from echo_hf.judging.rating import Scale

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
    """The shape of an answer whose rating is on a scale.

    Args:
        scale: The scale.

    Returns:
        A shape with the fields explanation and rating, in this order.

    Example:
        >>> answer = rating_answer(Scale(1, 10))
        >>> answer.model_validate_json('{"explanation": "A fine boat.", "rating": 9}').rating
        9
    """
    number: Any = float if scale.decimals else int
    bounds = Field(ge=scale.lowest, le=scale.highest)
    if not scale.decimals:
        bounds = Field(ge=int(scale.lowest), le=int(scale.highest))
    return create_model(
        "RatingAnswer", __base__=RatingAnswer, rating=(Annotated[number, bounds], ...)
    )


@lru_cache(maxsize=16)
def applicability_answer(metrics: tuple[str, ...]) -> type[ApplicabilityAnswer]:
    """The shape of an answer about some metrics.

    Args:
        metrics: Their names.

    Returns:
        A shape with a field for each of them, in this order, and a rationale.

    Example:
        >>> list(applicability_answer(("color_shift",)).model_fields)
        ['color_shift', 'rationale']
    """
    fields: dict[str, Any] = dict.fromkeys(metrics, (Flag, ...))
    return create_model(
        "ApplicabilityAnswer",
        __base__=ApplicabilityAnswer,
        **fields,
        rationale=(Rationale, ...),
    )
