"""What Anole reads and draws: prompts as tokens, guidance between branches, codes as pixels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from echo_hf.config.checks import Words
from echo_hf.errors import GenerationError
from echo_hf.systems.local_models import LocalOptions

SAFETENSORS, PICKLED = "model.safetensors", "vqgan.ckpt"
PART = re.compile(r"(?:model\.|vqmodel\.)*((?:decoder|post_quant_conv|quantize)\..+)")
LEVEL = re.compile(r"decoder\.up\.(\d+)\.(.+)")
CHANNELS = 3


@dataclass(frozen=True, slots=True)
class ImageDecoder:
    network: Any

    def image(self, codes: Sequence[int]) -> Image.Image:
        import torch

        side, parts = isqrt(len(codes)), self.network
        with torch.inference_mode():
            place = parts["quantize"]["embedding"].weight.device
            found = parts["quantize"]["embedding"](torch.tensor(codes, device=place))
            square = found.view(1, side, side, -1).permute(0, 3, 1, 2)
            values = parts["decoder"](parts["post_quant_conv"](square))[0]
            levels = ((values.clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8)
        return Image.fromarray(levels.permute(1, 2, 0).cpu().numpy())


def weights_name(decoder: str) -> str:
    folder = Path(decoder)
    pickled = (folder / PICKLED).is_file() and not (folder / SAFETENSORS).is_file()
    return PICKLED if pickled else SAFETENSORS


def make_decoder(vq_config: Any, weights: Mapping[str, Any], place: str) -> ImageDecoder:
    network = _network(vq_config)
    try:
        network.load_state_dict(in_order(weights))
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise GenerationError(
            f"{place}: the decoder does not fit the model ({' '.join(lines[1:2])[:200]}): expected "
            "its own VQGAN, with the decoder"
        ) from None
    return ImageDecoder(network.float().eval())


def in_order(weights: Mapping[str, Any]) -> dict[str, Any]:
    """The weights of a decoder by the names that transformers gives them."""
    found = ((PART.fullmatch(name), value) for name, value in weights.items())
    parts = {match[1]: value for match, value in found if match}
    levels = {name: LEVEL.fullmatch(name) for name in parts}
    last = max((int(match[1]) for match in levels.values() if match), default=0)
    if any(match and match[1] == "0" and "upsample" in match[2] for match in levels.values()):
        return parts
    return {
        f"decoder.up.{last - int(match[1])}.{match[2]}" if match else name: parts[name]
        for name, match in levels.items()
    }


def _network(config: Any) -> Any:
    from torch import nn
    from transformers.models.janus.modeling_janus import JanusVQVAEDecoder

    decoder = JanusVQVAEDecoder(
        SimpleNamespace(
            channel_multiplier=list(config.channel_multiplier),
            num_res_blocks=config.num_res_blocks,
            base_channels=config.base_channels,
            latent_channels=config.latent_channels,
            out_channels=CHANNELS,
            dropout=config.dropout,
        )
    )
    for level in decoder.up:
        level.attn = nn.ModuleList()
    codebook = nn.Embedding(config.num_embeddings, config.embed_dim)
    return nn.ModuleDict(
        {
            "quantize": nn.ModuleDict({"embedding": codebook}),
            "post_quant_conv": nn.Conv2d(config.embed_dim, config.latent_channels, 1),
            "decoder": decoder,
        }
    )


# Three images of 1024 tokens and the one to be drawn are more than its context of 4096.
MOST_INPUTS = 2
START, PAD = "<s>", "<pad>"
IMAGE_STARTS, IMAGE_ENDS = "<racm3:break>", "<eoss>"
END_OF_TURN = "<reserved08706>"


@dataclass(frozen=True, slots=True)
class AnoleWords:
    start: int
    image_starts: int
    image_ends: int
    end_of_turn: int
    pad: int


def words_of(vocabulary: Mapping[str, int] | None, place: str) -> AnoleWords:
    """Finds those tokens in a model's vocabulary."""
    names = (START, IMAGE_STARTS, IMAGE_ENDS, END_OF_TURN, PAD)
    missing = [name for name in names if name not in (vocabulary or {})]
    if vocabulary is None or missing:
        raise GenerationError(
            f"{place}: the model's vocabulary has no {missing[0]!r}: expected Anole, or a model "
            "that is trained from it"
        )
    return AnoleWords(*(vocabulary[name] for name in names))


def branches(
    text: Sequence[int], inputs: Sequence[Sequence[int]], words: AnoleWords
) -> tuple[list[int], list[int], list[int]]:
    """What the model reads in each branch, up to where its image starts."""
    images = [token for image in inputs for token in (words.image_starts, *image, words.image_ends)]
    everything = [words.start, *images, *text, words.end_of_turn, words.image_starts]
    return (
        everything,
        [words.start, *images, words.image_starts],
        [words.start, words.image_starts],
    )


def guided(
    everything: Any, inputs: Any, nothing: Any, *, text_scale: float, image_scale: float
) -> Any:
    """Logits under the guidance of the prompt and of the inputs."""
    return nothing + image_scale * (inputs - nothing) + text_scale * (everything - inputs)


def draw_token(logits: Any, temperature: float, top_p: float, generator: Any) -> int:
    import torch

    values, order = (logits / temperature).softmax(-1).sort(descending=True, stable=True)
    before = values.cumsum(-1) - values
    weights = torch.where(before < top_p, values, 0.0).cpu()
    drawn = torch.multinomial(weights, 1, generator=generator)
    return int(order.cpu()[drawn])


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


# Chameleon was trained with this rounded 2/255, so that white is a little less than 1.
STEP = 0.0078


def pixels(image: Image.Image, side: int) -> NDArray[np.float32]:
    """Scales an image to its shorter side, and cuts the square in its middle out."""
    short = min(image.size)
    width, height = (side * length // short for length in image.size)
    scaled = image.resize((width, height), Image.Resampling.LANCZOS)
    left, top = (width - side) // 2, (height - side) // 2
    square = np.asarray(scaled.crop((left, top, left + side, top + side)), dtype=np.float32)
    return (square * np.float32(STEP) - np.float32(1)).transpose(2, 0, 1)
