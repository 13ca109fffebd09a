"""What a config may say about the `vllm` engine, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, FilePath, StringConstraints, ValidationError

from echo_hf.config import Section, Whole
from echo_hf.config_check import first_error
from echo_hf.engines.families import FAMILIES, budget_of
from echo_hf.errors import EngineError, unknown

PLACE = "engine 'vllm'"
# 1280 patches of Qwen2.5-VL: what its authors advise, and what the planner counts for a picture.
MAX_PIXELS = 1280 * 28 * 28

Name = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Count = Annotated[Whole, Field(ge=1)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Switch = Annotated[bool, Field(strict=True)]


class VllmOptions(Section):
    """Options of the engine; code that comes with a model is never run.

    Attributes:
        model: A name on the Hub, or a folder.
        revision: Branch, tag or commit on the Hub; null for the one in the local cache.
        family: Whose rule its pictures follow; null to read it from the model.
        dtype: Type of the weights in memory.
        quantization: How they are quantised; null to read it from the model.
        kv_cache_dtype: Type of the keys and values of attention.
        max_model_len: Most tokens of prompt and answer together; null for the model's own.
        max_num_seqs: Most requests that are computed at a time.
        tensor_parallel_size: GPUs that share each layer.
        gpu_memory_utilization: Share of a GPU's memory to take.
        enforce_eager: Start sooner and answer more slowly: nothing is compiled.
        limit_images: Most pictures of a request; 0 leaves the part that sees pictures out.
        min_pixels: Fewest pixels of a picture; null for the family's own.
        max_pixels: Most pixels; a larger picture is reduced before it is sent.
        temperature: 0 for the likeliest answer.
        top_p: Share of likeliest tokens that are drawn from.
        seed: Of the draws.
        chat_template: A Jinja file instead of the model's own template.
        chat_template_kwargs: Values for the template's switches.
        structured: Whether answers are held to the declared schema while they are written.
    """

    model: Name
    revision: Name | None = None
    family: str | None = None
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    quantization: Name | None = None
    kv_cache_dtype: Name = "auto"
    max_model_len: Count | None = None
    max_num_seqs: Count = 256
    tensor_parallel_size: Count = 1
    gpu_memory_utilization: Annotated[Number, Field(gt=0, le=1)] = 0.9
    enforce_eager: Switch = False
    limit_images: Annotated[Whole, Field(ge=0)] = 16
    min_pixels: Count | None = None
    max_pixels: Count | None = MAX_PIXELS
    temperature: Annotated[Number, Field(ge=0)] = 0.0
    top_p: Annotated[Number, Field(gt=0, le=1)] = 1.0
    seed: Annotated[Whole, Field(ge=0, lt=2**32)] = 0
    chat_template: FilePath | None = None
    chat_template_kwargs: Mapping[str, Any] = {}
    structured: Switch = True


def checked(options: Mapping[str, Any]) -> VllmOptions:
    """The options that a config gives, with the rest at their defaults.

    Args:
        options: The config's keys beside `kind`.

    Returns:
        The options.

    Raises:
        EngineError: One is unknown, missing, or has a value that the engine cannot use.

    Example:
        >>> checked({"model": "Qwen/Qwen2.5-VL-7B-Instruct"}).max_pixels
        1003520
    """
    try:
        read = VllmOptions.model_validate(dict(options))
    except ValidationError as error:
        raise EngineError(first_error(error, PLACE, VllmOptions)) from None
    if read.family is not None and read.family not in FAMILIES:
        raise EngineError(unknown("family", read.family, FAMILIES, PLACE))
    budget_of(read.family, read.min_pixels, read.max_pixels)
    return read
