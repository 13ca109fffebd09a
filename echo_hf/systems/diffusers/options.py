"""What a config may say about a system that diffusers runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from echo_hf.config_fields import Whole
from echo_hf.systems.diffusers.kinds import MEGAPIXEL
from echo_hf.systems.local_options import LocalOptions


class DiffusersOptions(LocalOptions):
    """Parameters of the adapter.

    Attributes:
        call: Arguments of the pipeline's call, such as `num_inference_steps`; the rest is at the
            pipeline's own defaults.
        offload: Whether what is not at work waits in the processor's memory: no part, whole
            `model`s, or layer by layer (`sequential`), which is slow.
        several_inputs: How several inputs are given: as a `list`, side by side in one picture
            (`stitch`), the `first` alone, or not at all (`refuse`); `auto` is a list where the
            pipeline takes one, and otherwise stitched.
        stitched_pixels: Width times height of a stitched picture, at most.
    """

    call: Mapping[str, Any] = {}
    offload: Literal["none", "model", "sequential"] = "none"
    several_inputs: Literal["auto", "list", "stitch", "first", "refuse"] = "auto"
    stitched_pixels: Annotated[Whole, Field(ge=4096, le=16 * MEGAPIXEL)] = MEGAPIXEL
