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
class PictureDecoder:
    """Turns codes into a picture.

    Attributes:
        network: The codebook (`quantize.embedding`), `post_quant_conv` and `decoder`, as a module.
    """

    network: Any

    def picture(self, codes: Sequence[int]) -> Image.Image:
        """Decodes a square of codes.

        Args:
            codes: Row by row.

        Returns:
            The picture, in mode RGB.
        """
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
    """The file that holds the weights of a decoder.

    Args:
        decoder: A name on the Hub, or a folder.

    Returns:
        `model.safetensors`, or what a folder has in its place.
    """
    folder = Path(decoder)
    pickled = (folder / PICKLED).is_file() and not (folder / SAFETENSORS).is_file()
    return PICKLED if pickled else SAFETENSORS


def make_decoder(vq_config: Any, weights: Mapping[str, Any], place: str) -> PictureDecoder:
    """Builds a decoder and fills it.

    Args:
        vq_config: The model's config of its VQGAN.
        weights: By name, in either order of levels; those of the encoder are not looked at.
        place: What to call the system, for messages.

    Returns:
        The decoder, in 32 bits, on the processor.

    Raises:
        GenerationError: The weights are not those of such a decoder.
    """
    network = _network(vq_config)
    try:
        network.load_state_dict(in_order(weights))
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise GenerationError(
            f"{place}: the decoder does not fit the model ({' '.join(lines[1:2])[:200]}): expected "
            "its own VQGAN, with the decoder"
        ) from None
    return PictureDecoder(network.float().eval())


def in_order(weights: Mapping[str, Any]) -> dict[str, Any]:
    """The weights of a decoder by the names that transformers gives them.

    Args:
        weights: By name; in the original order of levels the first of them does not enlarge.

    Returns:
        The same weights of the codebook, its convolution and the decoder; nothing else.

    Example:
        >>> original = {"decoder.up.0.a": 1, "decoder.up.1.a": 2, "decoder.up.1.upsample.b": 3}
        >>> in_order({**original, "encoder.a": 4})
        {'decoder.up.1.a': 1, 'decoder.up.0.a': 2, 'decoder.up.0.upsample.b': 3}
    """
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


# Three pictures of 1024 tokens and the one to be drawn are more than its context of 4096.
MOST_INPUTS = 2
START, PAD = "<s>", "<pad>"
PICTURE_STARTS, PICTURE_ENDS = "<racm3:break>", "<eoss>"
END_OF_TURN = "<reserved08706>"


@dataclass(frozen=True, slots=True)
class AnoleWords:
    """The tokens around texts and pictures.

    Attributes:
        start: Before everything.
        picture_starts: Before a picture.
        picture_ends: After a picture.
        end_of_turn: After the prompt.
        pad: What fills a row up.
    """

    start: int
    picture_starts: int
    picture_ends: int
    end_of_turn: int
    pad: int


def words_of(vocabulary: Mapping[str, int] | None, place: str) -> AnoleWords:
    """Finds those tokens in a model's vocabulary.

    Args:
        vocabulary: The `vocabulary_map` of its config.
        place: What to call the system, for messages.

    Returns:
        Their numbers.

    Raises:
        GenerationError: One of them is not there.
    """
    names = (START, PICTURE_STARTS, PICTURE_ENDS, END_OF_TURN, PAD)
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
    """What the model reads in each branch, up to where its picture starts.

    Args:
        text: Tokens of the prompt.
        inputs: Tokens of each input picture, in order; they stand before the prompt.
        words: The tokens around them.

    Returns:
        Everything; the inputs alone; nothing.

    Example:
        >>> branches([7, 8], [[5, 6]], Words(0, 1, 2, 3, 9))
        ([0, 1, 5, 6, 2, 7, 8, 3, 1], [0, 1, 5, 6, 2, 1], [0, 1])
    """
    pictures = [
        token
        for picture in inputs
        for token in (words.picture_starts, *picture, words.picture_ends)
    ]
    everything = [words.start, *pictures, *text, words.end_of_turn, words.picture_starts]
    return (
        everything,
        [words.start, *pictures, words.picture_starts],
        [words.start, words.picture_starts],
    )


def guided(
    everything: Any, inputs: Any, nothing: Any, *, text_scale: float, image_scale: float
) -> Any:
    """Logits under the guidance of the prompt and of the inputs.

    Args:
        everything: Logits after the prompt and its inputs; an array of any shape.
        inputs: Logits after the inputs alone.
        nothing: Logits after nothing.
        text_scale: How far the prompt pulls away from the inputs alone.
        image_scale: How far the inputs pull away from nothing.

    Returns:
        Logits of the same shape.

    Example:
        >>> guided(4.0, 2.0, 1.0, text_scale=3.0, image_scale=1.2)
        8.2
    """
    return nothing + image_scale * (inputs - nothing) + text_scale * (everything - inputs)


def draw_token(logits: Any, temperature: float, top_p: float, generator: Any) -> int:
    """Draws from the most probable tokens.

    Args:
        logits: A vector of them.
        temperature: What they are divided by.
        top_p: The tokens that stay are the fewest, the most probable first, whose probabilities
            sum to at least this.
        generator: The source of chance, on the processor.

    Returns:
        The position of the token drawn.
    """
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


def pixels(picture: Image.Image, side: int) -> NDArray[np.float32]:
    """Scales a picture to its shorter side, and cuts the square in its middle out.

    Args:
        picture: In mode RGB.
        side: Of the square.

    Returns:
        Numbers from -1 to about 1, as [channel, row, column].

    Example:
        >>> blue = pixels(Image.new("RGB", (40, 20), (0, 128, 255)), 8)
        >>> blue.shape, [round(float(level), 4) for level in blue[:, 0, 0]]
        ((3, 8, 8), [-1.0, -0.0016, 0.989])
    """
    short = min(picture.size)
    width, height = (side * length // short for length in picture.size)
    scaled = picture.resize((width, height), Image.Resampling.LANCZOS)
    left, top = (width - side) // 2, (height - side) // 2
    square = np.asarray(scaled.crop((left, top, left + side, top + side)), dtype=np.float32)
    return (square * np.float32(STEP) - np.float32(1)).transpose(2, 0, 1)
