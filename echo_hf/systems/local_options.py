"""What every model in this process is told: numbers, device and revision."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import StringConstraints

from echo_hf.config_fields import Section, Words
from echo_hf.errors import GenerationError

Device = Annotated[str, StringConstraints(pattern=r"^(auto|cpu|mps|xpu|cuda(:\d{1,2})?)$")]
BY_SPEED = ("cuda", "xpu", "mps")


class LocalOptions(Section):
    """Parameters of a model in this process.

    Attributes:
        revision: Branch, tag or commit on the Hub; null for the main branch.
        dtype: How its numbers are kept.
        device: Where it runs; `auto` is the accelerator, or the processor without one.
    """

    revision: Words | None = None
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    device: Device = "auto"


def dtype_of(options: LocalOptions) -> Any:
    """The type of numbers, as torch names it."""
    import torch

    return getattr(torch, options.dtype)


def device_of(options: LocalOptions, place: str) -> str:
    """The device that a config asks for.

    Args:
        options: The options.
        place: What to call their system.

    Returns:
        Its name for torch.

    Raises:
        GenerationError: This machine has no such device.
    """
    import torch

    there = [kind for kind in BY_SPEED if getattr(torch, kind).is_available()]
    if options.device == "auto":
        return next(iter(there), "cpu")
    kind, _, number = options.device.partition(":")
    count = torch.get_device_module(kind).device_count() if kind in there else 0
    if kind != "cpu" and int(number or 0) >= count:
        raise GenerationError(
            f"{place}: device is {options.device!r}, which this machine does not have: expected "
            f"one of {', '.join([*there, 'cpu'])}"
        )
    return options.device
