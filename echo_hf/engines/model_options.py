"""What a config may say about any engine that runs a model itself, checked before it is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, FilePath, StringConstraints, ValidationError

from echo_hf.config_check import first_error
from echo_hf.config_fields import Section, Whole
from echo_hf.engines.families import FAMILIES, budget_of
from echo_hf.errors import EngineError, unknown

# 1280 patches of Qwen2.5-VL: what its authors advise, and what the planner counts for a picture.
MAX_PIXELS = 1280 * 28 * 28

Name = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Count = Annotated[Whole, Field(ge=1)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class ModelOptions(Section):
    """The model, its pictures and its sampling; code that comes with a model is never run.

    Attributes:
        model: A name on the Hub, or a folder.
        revision: Branch, tag or commit on the Hub; null for the one in the local cache.
        family: Whose rule its pictures follow; null to read it from the model.
        dtype: Type of the weights in memory.
        min_pixels: Fewest pixels of a picture; null for the family's own.
        max_pixels: Most pixels; a larger picture is reduced before it is sent.
        temperature: 0 for the likeliest answer.
        top_p: Share of likeliest tokens that are drawn from.
        seed: Of the draws.
        chat_template: A Jinja file instead of the model's own template.
        chat_template_kwargs: Values for the template's switches.
    """

    model: Name
    revision: Name | None = None
    family: str | None = None
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    min_pixels: Count | None = None
    max_pixels: Count | None = MAX_PIXELS
    temperature: Annotated[Number, Field(ge=0)] = 0.0
    top_p: Annotated[Number, Field(gt=0, le=1)] = 1.0
    seed: Whole = 0
    chat_template: FilePath | None = None
    chat_template_kwargs: Mapping[str, Any] = {}


Options = TypeVar("Options", bound=ModelOptions)


def checked_as(kind: type[Options], options: Mapping[str, Any], place: str) -> Options:
    """The options that a config gives, with the rest at their defaults.

    Args:
        kind: The options of an engine.
        options: The config's keys beside `kind`.
        place: What to call the engine in messages.

    Returns:
        The options.

    Raises:
        EngineError: One is unknown, missing, or has a value that the engine cannot use.
    """
    try:
        read = kind.model_validate(dict(options))
    except ValidationError as error:
        raise EngineError(first_error(error, place, kind)) from None
    if read.family is not None and read.family not in FAMILIES:
        raise EngineError(unknown("family", read.family, FAMILIES, place))
    budget_of(read.family, read.min_pixels, read.max_pixels)
    return read
