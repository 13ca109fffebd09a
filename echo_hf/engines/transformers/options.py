"""What a config may say about the `transformers` engine, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from echo_hf.engines.model_options import Count, ModelOptions, checked_as

PLACE = "engine 'transformers'"


class TransformersOptions(ModelOptions):
    """Options of the engine, beside those of any model; no pickles are read.

    Attributes:
        batch_size: Most requests that are computed at a time; halved when memory runs out.
        structured: Whether answers are held to the declared schema while they are written: with
            `xgrammar`, not at all, or `auto` for where xgrammar is installed.
    """

    batch_size: Count = 8
    structured: Literal["auto", "xgrammar", "none"] = "auto"


def checked(options: Mapping[str, Any]) -> TransformersOptions:
    """The options that a config gives, with the rest at their defaults.

    Args:
        options: The config's keys beside `kind`.

    Returns:
        The options.

    Raises:
        EngineError: One is unknown, missing, or has a value that the engine cannot use.

    Example:
        >>> checked({"model": "Qwen/Qwen2.5-VL-3B-Instruct"}).batch_size
        8
    """
    return checked_as(TransformersOptions, options, PLACE)
