"""What a config may say about Anole."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from echo_hf.config_fields import Words
from echo_hf.systems.local_options import LocalOptions

Scale = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class AnoleOptions(LocalOptions):
    """Parameters of the adapter.

    Attributes:
        text_guidance: How far the prompt pulls away from the inputs alone; 1 is no guidance.
        image_guidance: How far the inputs pull away from nothing; 1 is no guidance.
        temperature: What logits are divided by.
        top_p: Share of the probability that is drawn from, the most probable tokens first.
        decoder: The VQGAN with its decoder: a name on the Hub with `model.safetensors`, or a folder
            with that file or `vqgan.ckpt`.
        decoder_revision: Branch, tag or commit of the decoder on the Hub.
    """

    text_guidance: Scale = 3.0
    image_guidance: Scale = 1.2
    temperature: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = 0.7
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.9
    decoder: Words = "leloy/Anole-7b-v0.1-vqvae-hf"
    decoder_revision: Words | None = None
