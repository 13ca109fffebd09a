"""Load Anole, its tokenizer and its decoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from echo_hf.engines.transformers.loading import is_out_of_memory
from echo_hf.errors import EchoError, GenerationError
from echo_hf.systems.anole.decoder import SAFETENSORS, PictureDecoder, make_decoder
from echo_hf.systems.anole.options import AnoleOptions
from echo_hf.systems.anole.pixels import pixels
from echo_hf.systems.anole.prompts import Words, words_of
from echo_hf.systems.local_models import LocalModel
from echo_hf.systems.local_options import device_of, dtype_of
from echo_hf.systems.local_trouble import one_line


@dataclass(frozen=True, slots=True)
class LoadedAnole:
    """A model that can draw.

    Attributes:
        model: Chameleon, as transformers has it.
        tokenizer: Its tokenizer.
        decoder: From codes to pictures.
        words: The tokens around texts and pictures.
        codes: Code of each token of a picture.
        side: Of a picture, in pixels.
        count: Tokens of a picture.
        context: Most tokens that it reads and writes.
        details: Which model it is, for the provenance of what it draws.
    """

    model: Any
    tokenizer: Any
    decoder: PictureDecoder
    words: Words
    codes: Mapping[int, int]
    side: int
    count: int
    context: int
    details: Mapping[str, Any]

    def text_tokens(self, text: str) -> list[int]:
        """Tokens of a text; whatever a prompt says, none of them begins or ends a picture."""
        read = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)
        return list(read["input_ids"])

    def picture_tokens(self, picture: Image.Image) -> list[int]:
        """Tokens of the square in the middle of a picture."""
        import torch

        values = torch.from_numpy(pixels(picture, self.side))[None]
        with torch.inference_mode():
            found = self.model.get_image_tokens(values.to(self.model.device, self.model.dtype))
        return [int(token) for token in found[0]]


def load_anole(model: LocalModel, decoder: LocalModel, options: AnoleOptions) -> LoadedAnole:
    """Loads a model.

    Args:
        model: The language model.
        decoder: The VQGAN with its decoder.
        options: The parameters of its system.

    Returns:
        The model, on its device.

    Raises:
        GenerationError: One of them is not there, or does not fit the other.
    """
    place = f"system {model.system!r}"
    device = device_of(options, place)
    model.index_at_hand()
    decoder.index_at_hand()
    try:
        return _loaded(model, decoder, options, device)
    except EchoError:
        raise
    except Exception as error:  # whatever the driver, the memory or the files are short of
        raise GenerationError(_explained(model, error)) from error


def _loaded(
    model: LocalModel, decoder: LocalModel, options: AnoleOptions, device: str
) -> LoadedAnole:
    chameleon, tokenizer = _chameleon(model, options)
    place, config = f"system {model.system!r}", chameleon.config
    codes = dict(chameleon.model.vocabulary_mapping.bpe2img)
    vq = config.vq_config
    drawn_by = make_decoder(vq, _weights(decoder), place)
    drawn_by.network.to(device)
    return LoadedAnole(
        model=chameleon.to(device),
        tokenizer=tokenizer,
        decoder=drawn_by,
        words=words_of(config.vocabulary_map, place),
        codes=codes,
        side=vq.resolution,
        # Every level of the VQGAN but the first halves the sides.
        count=(vq.resolution // 2 ** (len(vq.channel_multiplier) - 1)) ** 2,
        context=config.max_position_embeddings,
        details=_details(model, decoder, options, device),
    )


def _chameleon(model: LocalModel, options: AnoleOptions) -> tuple[Any, Any]:
    from transformers import AutoTokenizer, ChameleonForConditionalGeneration

    chameleon = ChameleonForConditionalGeneration.from_pretrained(
        model.source,
        revision=model.pinned,
        dtype=dtype_of(options),
        use_safetensors=True,
        trust_remote_code=False,
    )
    tokenizer = AutoTokenizer.from_pretrained(
        model.source, revision=model.pinned, trust_remote_code=False
    )
    return chameleon.eval(), tokenizer


def _weights(decoder: LocalModel) -> Any:
    import torch
    from huggingface_hub import hf_hub_download
    from safetensors.torch import load_file

    file = decoder.index_at_hand() or Path(
        hf_hub_download(decoder.source, decoder.index, revision=decoder.revision)
    )
    if file.name == SAFETENSORS:
        return load_file(file)
    # Numbers alone: a pickle that would do anything else is refused.
    read = torch.load(file, map_location="cpu", weights_only=True)
    return read.get("state_dict", read)


def _details(
    model: LocalModel, decoder: LocalModel, options: AnoleOptions, device: str
) -> dict[str, Any]:
    import torch
    import transformers

    return {
        "commit": model.commit,
        "decoder_commit": decoder.commit,
        "dtype": options.dtype,
        "device": device,
        "versions": {one.__name__: str(one.__version__) for one in (torch, transformers)},
    }


def _explained(model: LocalModel, error: Exception) -> str:
    place = f"system {model.system!r}"
    if is_out_of_memory(error):
        return f"{place}: model {model.source!r} does not fit into memory: use a smaller dtype"
    return (
        f"{place}: cannot load {model.source!r} ({type(error).__name__}: {one_line(error)}): "
        "expected Anole as transformers loads it, with safetensors weights"
    )
