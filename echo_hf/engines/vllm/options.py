"""What a config may say about the `vllm` engine, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from echo_hf.config_fields import Whole
from echo_hf.engines.model_options import Count, ModelOptions, Name, Number, checked_as

PLACE = "engine 'vllm'"

Switch = Annotated[bool, Field(strict=True)]


class VllmOptions(ModelOptions):
    """Options of the engine, beside those of any model.

    Attributes:
        quantization: How the weights are quantised; null to read it from the model.
        kv_cache_dtype: Type of the keys and values of attention.
        max_model_len: Most tokens of prompt and answer together; null for the model's own.
        max_num_seqs: Most requests that are computed at a time.
        tensor_parallel_size: GPUs that share each layer.
        gpu_memory_utilization: Share of a GPU's memory to take.
        enforce_eager: Start sooner and answer more slowly: nothing is compiled.
        limit_images: Most pictures of a request; 0 leaves the part that sees pictures out.
        structured: Whether answers are held to the declared schema while they are written.
    """

    quantization: Name | None = None
    kv_cache_dtype: Name = "auto"
    max_model_len: Count | None = None
    max_num_seqs: Count = 256
    tensor_parallel_size: Count = 1
    gpu_memory_utilization: Annotated[Number, Field(gt=0, le=1)] = 0.9
    enforce_eager: Switch = False
    limit_images: Annotated[Whole, Field(ge=0)] = 16
    seed: Annotated[Whole, Field(ge=0, lt=2**32)] = 0
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
    return checked_as(VllmOptions, options, PLACE)
