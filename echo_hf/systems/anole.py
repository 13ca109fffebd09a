"""Anole, a language model whose vocabulary includes tokens of images."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from math import isqrt
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from echo_hf.config.checks import Words
from echo_hf.config.systems import SystemConfig
from echo_hf.engines.checkpoint import CONFIG
from echo_hf.errors import GenerationError
from echo_hf.systems.base import GenerationResult, OutcomeStage, Task, unsupported_task
from echo_hf.systems.images import to_png
from echo_hf.systems.local_models import LocalModel, LocalOptions, LocalSystem
from echo_hf.systems.registry import parse_options, register
from echo_hf.tables import Outcome

SAFETENSORS = "model.safetensors"
WEIGHT_NAME = re.compile(r"(?:model\.|vqmodel\.)*((?:decoder|post_quant_conv|quantize)\..+)")
LEVEL_NAME = re.compile(r"decoder\.up\.(\d+)\.(.+)")
CHANNELS = 3
# Three input images of 1024 tokens and the output would exceed its context of 4096.
MAX_INPUTS = 2
# Chameleon was trained with 2/255 rounded to this, so that white is a little less than 1.
PIXEL_SCALE = 0.0078


GuidanceScale = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class AnoleOptions(LocalOptions):
    """Parameters of the adapter.

    Attributes:
        text_guidance: How far the prompt pulls away from the inputs alone; 1 is no guidance.
        image_guidance: How far the inputs pull away from nothing; 1 is no guidance.
        temperature: What logits are divided by.
        top_p: Share of the probability that is drawn from, the most probable tokens first.
        decoder: The VQGAN with its decoder: a name on the Hub, or a folder, with
            `model.safetensors`.
        decoder_revision: Branch, tag or commit of the decoder on the Hub.
    """

    text_guidance: GuidanceScale = 3.0
    image_guidance: GuidanceScale = 1.2
    temperature: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = 0.7
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.9
    decoder: Words = "leloy/Anole-7b-v0.1-vqvae-hf"
    decoder_revision: Words | None = None


class AnoleTokens(NamedTuple):
    """The special tokens that frame prompts and images."""

    start: int
    image_starts: int
    image_ends: int
    end_of_turn: int
    pad: int

    @classmethod
    def from_vocabulary(cls, vocabulary: Mapping[str, int] | None, place: str) -> Self:
        names = ("<s>", "<racm3:break>", "<eoss>", "<reserved08706>", "<pad>")
        try:
            return cls(*((vocabulary or {})[name] for name in names))
        except KeyError as missing:
            raise GenerationError(
                f"{place}: the model's vocabulary has no {missing}: expected Anole, or a model "
                "that is trained from it"
            ) from None


def build_branches(
    text: Sequence[int], inputs: Sequence[Sequence[int]], special: AnoleTokens
) -> tuple[list[int], list[int], list[int]]:
    """Build what the model reads in each branch of guidance, up to the start of its image."""
    images = [
        token for image in inputs for token in (special.image_starts, *image, special.image_ends)
    ]
    return (
        [special.start, *images, *text, special.end_of_turn, special.image_starts],
        [special.start, *images, special.image_starts],
        [special.start, special.image_starts],
    )


def apply_guidance(logits: Any, options: AnoleOptions) -> Any:
    """Combine the logits of the three branches by the guidance of prompt and inputs."""
    full, inputs, nothing = logits
    by_inputs = options.image_guidance * (inputs - nothing)
    return nothing + by_inputs + options.text_guidance * (full - inputs)


def draw_token(logits: Any, temperature: float, top_p: float, generator: Any) -> int:
    import torch

    values, order = (logits / temperature).softmax(-1).sort(descending=True, stable=True)
    mass_before = values.cumsum(-1) - values
    weights = torch.where(mass_before < top_p, values, 0.0).cpu()
    choice = torch.multinomial(weights, 1, generator=generator)
    return int(order.cpu()[choice])


def crop_square(image: Image.Image, side: int) -> NDArray[np.float32]:
    """Scale an image to its shorter side, and crop the central square."""
    short = min(image.size)
    width, height = (side * length // short for length in image.size)
    scaled = image.resize((width, height), Image.Resampling.LANCZOS)
    x, y = (width - side) // 2, (height - side) // 2
    square = np.asarray(scaled.crop((x, y, x + side, y + side)), dtype=np.float32)
    return (square * np.float32(PIXEL_SCALE) - np.float32(1)).transpose(2, 0, 1)


def make_decoder(config: Any, weights: Mapping[str, Any], place: str) -> Any:
    """Build the decoder of a VQGAN, for `decode_image`."""
    from torch import nn
    from transformers.models.janus.modeling_janus import JanusVQVAEDecoder

    names = ("channel_multiplier", "num_res_blocks", "base_channels", "latent_channels", "dropout")
    own = {name: getattr(config, name) for name in names}
    decoder = JanusVQVAEDecoder(SimpleNamespace(out_channels=CHANNELS, **own))
    for level in decoder.up:
        level.attn = nn.ModuleList()
    codebook = nn.Embedding(config.num_embeddings, config.embed_dim)
    parts = {
        "quantize": nn.ModuleDict({"embedding": codebook}),
        "post_quant_conv": nn.Conv2d(config.embed_dim, config.latent_channels, 1),
        "decoder": decoder,
    }
    network = nn.ModuleDict(parts)
    try:
        network.load_state_dict(rename_decoder_weights(weights))
    except RuntimeError as error:
        missing = " ".join(str(error).split("\n")[1:2]).strip()[:200]
        raise GenerationError(
            f"{place}: the decoder does not fit the model ({missing}): expected its own VQGAN, "
            "with the decoder"
        ) from None
    return network.float().eval()


def decode_image(network: Any, codes: Sequence[int]) -> Image.Image:
    """Decode an image from its codes, which are the rows of a square."""
    import torch

    side, codebook = isqrt(len(codes)), network["quantize"]["embedding"]
    with torch.inference_mode():
        embeddings = codebook(torch.tensor(codes, device=codebook.weight.device))
        square = embeddings.view(1, side, side, -1).permute(0, 3, 1, 2)
        values = network["decoder"](network["post_quant_conv"](square))[0]
        levels = ((values.clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8)
    return Image.fromarray(levels.permute(1, 2, 0).cpu().numpy())


def rename_decoder_weights(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the weights of a decoder as transformers names them."""
    matches = ((WEIGHT_NAME.fullmatch(name), value) for name, value in weights.items())
    parts = {match[1]: value for match, value in matches if match}
    if any(name.startswith("decoder.up.0.upsample") for name in parts):
        return parts
    # The original code counts levels from the last that is computed.
    levels = {name: LEVEL_NAME.fullmatch(name) for name in parts}
    last = max((int(match[1]) for match in levels.values() if match), default=0)
    return {
        f"decoder.up.{last - int(match[1])}.{match[2]}" if match else name: parts[name]
        for name, match in levels.items()
    }


@dataclass(frozen=True, slots=True)
class LoadedAnole:
    """The model and its decoder; `codes` maps tokens to codes, an image has `count` tokens."""

    model: Any
    tokenizer: Any
    decoder: Any
    words: AnoleTokens
    codes: Mapping[int, int]
    side: int
    count: int
    context: int
    details: Mapping[str, Any]

    def tokenize_text(self, text: str) -> list[int]:
        """Tokenize a text; whatever it says, no token begins or ends an image."""
        encoded = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)
        return list(encoded["input_ids"])

    def tokenize_image(self, image: Image.Image) -> list[int]:
        import torch

        values = torch.from_numpy(crop_square(image, self.side))[None]
        with torch.inference_mode():
            tokens = self.model.get_image_tokens(values.to(self.model.device, self.model.dtype))
        return [int(token) for token in tokens[0]]


def draw_tokens(
    loaded: LoadedAnole, rows: Sequence[Sequence[int]], options: AnoleOptions, seed: int
) -> list[int]:
    """Draw as many tokens as an image has, from the tokens of images alone."""
    import torch
    from transformers import DynamicCache

    model, pad = loaded.model, loaded.words.pad
    generator = torch.Generator("cpu").manual_seed(seed)
    allowed = torch.tensor(sorted(loaded.codes), device=model.device)
    gaps = [max(map(len, rows)) - len(row) for row in rows]
    filled = [[pad] * gap + list(row) for gap, row in zip(gaps, rows, strict=True)]
    masks = [[0] * gap + [1] * len(row) for gap, row in zip(gaps, rows, strict=True)]
    ids, mask = (torch.tensor(values, device=model.device) for values in (filled, masks))
    tokens = list[int]()
    # transformers 5.24 renamed the argument.
    is_renamed = "cache" in signature(model.model.forward).parameters
    cache_name = "cache" if is_renamed else "past_key_values"
    cache_argument = {cache_name: DynamicCache(config=model.model.config)}
    with torch.inference_mode():
        while len(tokens) < loaded.count:
            # The model's own `forward` forbids image tokens. Positions do not count the padding:
            # only their differences should matter, but sums are rounded.
            places = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            inputs = {"input_ids": ids, "attention_mask": mask, "position_ids": places}
            output = model.model(**inputs, **cache_argument, use_cache=True)
            logits = model.lm_head(output.last_hidden_state[:, -1])
            mixed = apply_guidance(logits[:, allowed].float(), options)
            place = draw_token(mixed, options.temperature, options.top_p, generator)
            tokens.append(int(allowed[place]))
            ids = allowed[place].repeat(len(rows), 1)
            mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=1)
    return tokens


@register(
    "anole",
    "Anole, and what is trained from it, in this process",
    extra="transformers",
    packages=("torch", "transformers", "accelerate"),
    devices=True,
)
class AnoleSystem(LocalSystem[AnoleOptions, LoadedAnole]):
    determinism = (
        "Tokens are drawn on the processor from the seed: the same seed gives the same picture on "
        "the same device with the same versions of torch and transformers; elsewhere a rounded "
        "sum may turn one token, and with it all that follow."
    )
    wording = 1
    places = frozenset({"device", "revision", "decoder", "decoder_revision"})
    expected = "Anole as transformers loads it, with safetensors weights"
    smaller = "a smaller dtype"

    def __init__(self, config: SystemConfig) -> None:
        super().__init__(config, parse_options(config, AnoleOptions), CONFIG)
        if config.size != "auto":
            raise GenerationError(
                f"{self.place}: size is {config.size!r}: expected 'auto', as Anole draws squares "
                "of one size"
            )
        decoder = self.options.decoder, self.options.decoder_revision
        self.decoder = LocalModel(config.name, *decoder, SAFETENSORS)

    def signature(self) -> dict[str, Any]:
        """Return all that decides an image; the device does not."""
        return {**super().signature(), "decoder": self.decoder.identity}

    def preflight(self) -> None:
        """Look for the model and its decoder on this machine; nothing is downloaded."""
        super().preflight()
        self.decoder.find_index()

    def load(self, device: str) -> LoadedAnole:
        import torch
        import transformers
        from safetensors.torch import load_file

        self.preflight()
        source, dtype = self.model.source, getattr(torch, self.options.dtype)
        load_options = {"revision": self.model.load_revision, "trust_remote_code": False}
        model: Any = transformers.ChameleonForConditionalGeneration.from_pretrained(
            source, dtype=dtype, use_safetensors=True, **load_options
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, **load_options)
        weights = load_file(self.decoder.fetch_index())
        config, vq = model.config, model.config.vq_config
        machine = self.describe(device, torch, transformers)
        return LoadedAnole(
            model=model.eval().to(device),
            tokenizer=tokenizer,
            decoder=make_decoder(vq, weights, self.place).to(device),
            words=AnoleTokens.from_vocabulary(config.vocabulary_map, self.place),
            codes=dict(model.model.vocabulary_mapping.bpe2img),
            side=vq.resolution,
            # Every level of the VQGAN but the first halves the sides.
            count=(vq.resolution // 2 ** (len(vq.channel_multiplier) - 1)) ** 2,
            context=config.max_position_embeddings,
            details={"decoder_commit": self.decoder.commit, **machine},
        )

    def check_task(self, _: LoadedAnole, task: Task) -> GenerationResult | None:
        return unsupported_task(task, 0, MAX_INPUTS, "Anole")

    def draw_with(
        self, loaded: LoadedAnole, task: Task, inputs: tuple[Image.Image, ...]
    ) -> GenerationResult:
        input_tokens = [loaded.tokenize_image(image) for image in inputs]
        rows = build_branches(loaded.tokenize_text(task.prompt), input_tokens, loaded.words)
        room, seed = loaded.context - loaded.count, self.config.seed + task.draw
        if len(rows[0]) > room:
            text = f"prompt and inputs are {len(rows[0])} tokens, and the model has room for {room}"
            stage = OutcomeStage.INPUT
            return GenerationResult(Outcome.UNSUPPORTED, stage=stage, code="too_long", text=text)
        tokens = draw_tokens(loaded, rows, self.options, seed)
        image = decode_image(loaded.decoder, [loaded.codes[token] for token in tokens])
        details = {
            **loaded.details,
            "inputs": {"given": len(inputs), "used": len(inputs)},
            "size": {"asked": None, "came": list(image.size)},
        }
        return GenerationResult(Outcome.OK, to_png(image), seed=seed, details=details)
