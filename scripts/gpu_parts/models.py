"""Models of the shapes that are published, or of tiny ones, with weights made up on the spot.

What vLLM loads has no weights in its files: it makes them up itself (`load_format: dummy`). The
pipeline's are written, as diffusers knows no other way.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from echo_hf.engines.memory import GIB, ModelShape, find_shape
from echo_hf.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
# The tests have the tiny models that these are made from; first, as some packages install `tests`.
sys.path.insert(0, str(ROOT))
READER, GUARD = "Qwen/Qwen2.5-VL-7B-Instruct", "meta-llama/Llama-Guard-4-12B"
# What the published shapes leave out, because it decides no memory.
QWEN_VISION = {
    "depth": 32,
    "num_heads": 16,
    "out_hidden_size": 3584,
    "fullatt_block_indexes": [7, 15, 23, 31],
}
GUARD_TEXT = {"intermediate_size_mlp": 8192, "max_position_embeddings": 131_072}
GUARD_VISION = {
    "num_hidden_layers": 34,
    "num_attention_heads": 16,
    "vision_output_dim": 4096,
    "projector_input_dim": 4096,
    "projector_output_dim": 4096,
}
GUARD_TILES = 16
TINY = {"dtype": "float32", "enforce_eager": True, "max_num_seqs": 8, "max_pixels": 64 * 28 * 28}
TINY_WORDS = 1024  # of a vocabulary
MOST_LEARNED = 32_000
# FLUX.1 Kontext [dev]; what is not named is the default of its classes.
TRANSFORMER_LAYERS, SINGLE_LAYERS, T5_LAYERS = 19, 38, 24
T5 = {"d_model": 4096, "d_ff": 10_240, "d_kv": 64, "num_heads": 64, "vocab_size": 32_128}
CLIP = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12}
AUTOENCODER = {
    "block_out_channels": (128, 256, 512, 512),
    "layers_per_block": 2,
    "latent_channels": 16,
    "norm_num_groups": 32,
    "shift_factor": 0.1159,
    "scaling_factor": 0.3611,
}
NOISE, SPREAD = 2**24, 0.02
MOST_OF_ROOM = 0.8  # the rest is for what is drawn


@dataclass(frozen=True)
class MadeUp:
    """The shape of a model, counted and as it is published, and what an engine is told of it."""

    counted: ModelShape
    shape: ModelShape
    options: Mapping[str, Any]


def reader(folder: Path, tiny: bool) -> MadeUp:
    """Qwen2.5-VL 7B."""
    from transformers import Qwen2_5_VLForConditionalGeneration

    from tests.tiny_models import IMAGE, qwen_config, qwen_processor

    shape = None if tiny else find_shape(READER)
    words = tokenizer(shape, IMAGE.values())
    config = qwen_config(words, *_sizes(shape, {}, QWEN_VISION))
    counted = _write(Qwen2_5_VLForConditionalGeneration, config, qwen_processor(words), folder)
    return _made_up(folder, shape, counted, {"limit_images": 16, "max_model_len": 32_768})


def guard(folder: Path, tiny: bool) -> MadeUp:
    """Llama Guard 4 12B."""
    from transformers import Llama4ForConditionalGeneration

    from tests.tiny_guard import SPECIAL, guard_config, guard_processor

    shape = None if tiny else find_shape(GUARD)
    words = tokenizer(shape, SPECIAL)
    config = guard_config(words, *_sizes(shape, GUARD_TEXT, GUARD_VISION))
    tiles = () if shape is None else (shape.config["vision_config"]["image_size"], GUARD_TILES)
    counted = _write(Llama4ForConditionalGeneration, config, guard_processor(words, *tiles), folder)
    longest = counted.config["text_config"]["max_position_embeddings"]
    options = {"limit_images": 5, "max_pixels": None, "max_model_len": min(longest, 16_384)}
    return _made_up(folder, shape, counted, options)


def _made_up(
    folder: Path, shape: ModelShape | None, counted: ModelShape, options: Mapping[str, Any]
) -> MadeUp:
    dummy = {"model": str(folder), "engine_args": {"load_format": "dummy"}}
    sized = {"dtype": "bfloat16"} if shape else TINY
    return MadeUp(counted, shape or counted, {**dummy, **sized, **options})


def _sizes(
    shape: ModelShape | None, text: Mapping[str, Any], vision: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    if shape is None:
        return {}, {}
    said = dict(shape.config)
    seen = said.pop("vision_config")
    return {**said, **text}, {**seen, **vision}


def tokenizer(shape: ModelShape | None, special: Sequence[str]) -> Any:
    """One with as many tokens as the shape has, of which the first are learned from our words.

    A model of random weights says any of them: those that no text needed are made-up words.
    """
    from tokenizers import ByteLevelBPETokenizer
    from transformers import Qwen2Tokenizer

    from tests.tiny_models import END_OF_TEXT, END_OF_TURN, TURN

    marks = [END_OF_TEXT, TURN, END_OF_TURN, *special]
    wanted = (shape.config["vocab_size"] if shape else TINY_WORDS) - len(marks)
    learner = ByteLevelBPETokenizer()
    texts = sorted(
        str(file)
        for folder, names in (("echo_hf/prompts", "*.md"), ("echo_hf/quickstart", "*.jsonl"))
        for file in (ROOT / folder).rglob(names)
    )
    learner.train(texts, vocab_size=min(wanted, MOST_LEARNED), show_progress=False)
    learned = json.loads(learner.to_str())["model"]
    vocabulary: dict[str, int] = learned["vocab"]
    others = (word for word in map("".join, product(ascii_lowercase, repeat=4)))
    unknown = (word for word in others if word not in vocabulary)
    vocabulary |= {
        word: len(vocabulary) + at
        for at, word in enumerate(list(islice(unknown, wanted - len(vocabulary))))
    }
    merges = [tuple(pair) for pair in learned["merges"]]
    made = Qwen2Tokenizer(
        vocab=vocabulary, merges=merges, eos_token=END_OF_TURN, pad_token=END_OF_TEXT
    )
    made.add_special_tokens({"additional_special_tokens": marks})
    return made


def _write(kind: Any, config: Any, processor: Any, folder: Path) -> ModelShape:
    """Writes everything but weights, and counts those that there would be."""
    import torch
    from safetensors.torch import save_file

    with torch.device("meta"):
        model = kind(config)
    model.config.architectures = [kind.__name__]
    model.generation_config.eos_token_id = config.get_text_config().eos_token_id
    model.generation_config.pad_token_id = config.get_text_config().pad_token_id
    for part in (model.config, model.generation_config, processor):
        part.save_pretrained(folder)
    save_file({}, folder / "model.safetensors")  # an engine knows a folder by its weights
    counts = {name: weights.numel() for name, weights in model.named_parameters()}
    seeing = sum(count for name, count in counts.items() if "visual" in name or "vision" in name)
    return ModelShape(config.to_dict(), sum(counts.values()), seeing)


def kontext(folder: Path, tiny: bool, gpu_gib: float | None) -> str:
    """Writes a FLUX.1 Kontext in bfloat16, cut to what fits, and says how much of it that is."""
    from tests.systems import tiny_pipelines

    if tiny:
        tiny_pipelines.write_tiny(tiny_pipelines.kontext, folder)
        return "tiny"
    whole, rest = (sum(_bytes(kontext_parts(one))) for one in (1.0, 0.0))
    known = Path("/proc/meminfo").read_text().splitlines()
    held = next(line for line in known if line.startswith("MemAvailable"))
    memory = int(held.split()[1]) * 1024
    room = min(shutil.disk_usage(folder).free, memory, gpu_gib * GIB if gpu_gib else memory)
    share = min(1.0, (MOST_OF_ROOM * room - rest) / (whole - rest))
    if share <= 0:
        raise ConfigError(
            f"{room / GIB:.1f} GiB of disk, memory and GPU are free for {str(folder)!r}: expected "
            f"{rest / MOST_OF_ROOM / GIB:.1f}, and {whole / MOST_OF_ROOM / GIB:.1f} for the whole "
            "pipeline: name another --folder"
        )
    parts = kontext_parts(share)
    _save(parts, folder)
    config = parts["transformer"].config
    layers = f"{config.num_layers} + {config.num_single_layers}"
    full = f"{TRANSFORMER_LAYERS} + {SINGLE_LAYERS}"
    return f"{layers} layers" if layers == full else f"{layers} of {full} layers"


def kontext_parts(share: float) -> dict[str, Any]:
    import torch
    from diffusers import AutoencoderKL, FlowMatchEulerDiscreteScheduler, FluxTransformer2DModel
    from transformers import CLIPTextConfig, CLIPTextModel, T5Config, T5EncoderModel

    from tests.systems import tiny_pipelines

    clip, t5 = tiny_pipelines.clip_tokenizer(), tiny_pipelines.t5_tokenizer()
    ends = {name: getattr(clip, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}

    def layers(count: int) -> int:
        return max(1, int(share * count))

    with torch.device("meta"):
        transformer = FluxTransformer2DModel(
            num_layers=layers(TRANSFORMER_LAYERS),
            num_single_layers=layers(SINGLE_LAYERS),
            guidance_embeds=True,
        )
        language = T5EncoderModel(
            T5Config(**T5, num_layers=layers(T5_LAYERS), feed_forward_proj="gated-gelu")
        )
        return {
            "scheduler": FlowMatchEulerDiscreteScheduler(),
            "vae": AutoencoderKL(**{**tiny_pipelines.AUTOENCODER, **AUTOENCODER}),
            "text_encoder": CLIPTextModel(CLIPTextConfig(**CLIP, num_attention_heads=12, **ends)),
            "tokenizer": clip,
            "text_encoder_2": language,
            "tokenizer_2": t5,
            "transformer": transformer,
        }


def _bytes(parts: Mapping[str, Any]) -> Iterator[int]:
    models = (part for part in parts.values() if hasattr(part, "parameters"))
    for weights in chain.from_iterable(model.parameters() for model in models):
        yield 2 * weights.numel()


def _save(parts: Mapping[str, Any], folder: Path) -> None:
    """One part after the other, so that only the largest has to be in memory."""
    import torch
    from diffusers import FluxKontextPipeline

    FluxKontextPipeline(**parts).save_config(folder)
    noise = torch.randn(NOISE).mul_(SPREAD).to(torch.bfloat16)
    for name, part in parts.items():
        if hasattr(part, "parameters"):
            part.to(torch.bfloat16).to_empty(device="cpu")
            for of, weights in part.named_parameters():
                flat = weights.data.view(-1)
                if weights.dim() == 1:
                    flat.fill_(float(of.endswith("weight")))
                    continue
                for piece in flat.split(NOISE):
                    piece.copy_(noise[: len(piece)])
        part.save_pretrained(folder / name)
        if hasattr(part, "parameters"):
            part.to_empty(device="meta")
