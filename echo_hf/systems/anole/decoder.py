"""The decoder of Anole's VQGAN: from a picture's codes to the picture.

transformers has the network for Janus, whose VQGAN differs by the attention in its lowest level;
without that it is Chameleon's. Weights come in two orders of levels: the original counts from full
resolution, transformers from the lowest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from PIL import Image

from echo_hf.errors import GenerationError

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
