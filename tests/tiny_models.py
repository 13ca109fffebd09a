"""Tiny vision-language models with random weights, written to a folder without any download.

They are real checkpoints: configuration, safetensors weights, tokenizer, processor and chat
template in the files that transformers and vLLM look for. What they say means nothing; what is
proved with them is the way there and back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

REASON = "needs torch, torchvision and transformers: see `make test-vllm`"

SEED = 20_250_325
# vLLM's attention on the processor knows heads of 32, 64 and 128 only.
HEAD = 32
HIDDEN = 2 * HEAD
CONTEXT = 32_768
# Ten times the usual spread: the answer depends on the question instead of on the last word alone.
SPREAD = 0.2
MIN_PIXELS = 56 * 56
MAX_PIXELS = 16_384 * 28 * 28
EMPTY: Mapping[str, Any] = MappingProxyType({})

END_OF_TEXT, TURN, END_OF_TURN = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
IMAGE = {
    "vision_start_token_id": "<|vision_start|>",
    "vision_end_token_id": "<|vision_end|>",
    "image_token_id": "<|image_pad|>",
    "video_token_id": "<|video_pad|>",
}
PLACE = "<image>"
GEMMA_TOKENS = {
    "boi_token": "<start_of_image>",
    "eoi_token": "<end_of_image>",
    "image_token": "<image_soft_token>",
}
QWEN_PLACE = "<|vision_start|><|image_pad|><|vision_end|>"
CHAT_TEMPLATE = """\
{%- for message in messages -%}
{{- '<|im_start|>' + message['role'] + '\n' -}}
{%- if message['content'] is string -%}
{{- message['content'] -}}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'text' -%}
{{- part['text'] -}}
{%- else -%}
{{- '<image>' -}}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\n' -}}
{%- endif -%}
"""


def write_tiny_qwen2_5_vl(folder: Path, *, seed: int = SEED) -> Path:
    """Writes a Qwen2.5-VL of a third of a million weights, one token a byte."""
    from transformers import Qwen2_5_VLForConditionalGeneration

    tokenizer = byte_tokenizer(IMAGE.values())
    write_model(Qwen2_5_VLForConditionalGeneration, qwen_config(tokenizer), folder, seed)
    qwen_processor(tokenizer).save_pretrained(folder)
    return folder


def write_tiny_llava(folder: Path, *, seed: int = SEED) -> Path:
    """Writes a Llava, whose family follows no rule of ours: it sees 28 x 28 pixels."""
    from transformers import LlavaForConditionalGeneration

    tokenizer = byte_tokenizer([PLACE])
    write_model(LlavaForConditionalGeneration, _llava_config(tokenizer), folder, seed)
    _llava_processor(tokenizer).save_pretrained(folder)
    return folder


def write_tiny_scorer(folder: Path, outputs: int = 1, *, seed: int = SEED) -> Path:
    """Writes a Qwen2.5-VL with a head of some outputs, as vLLM reads one."""
    import torch
    from safetensors.torch import load_file, save_file

    write_tiny_qwen2_5_vl(folder, seed=seed)
    weights = load_file(folder / "model.safetensors")
    head = torch.randn(outputs, HIDDEN, generator=torch.Generator().manual_seed(seed))
    save_file({**weights, "language_model.score.weight": head}, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    labels = {str(number): f"LABEL_{number}" for number in range(outputs)}
    config |= {"architectures": ["Qwen2_5_VLForSequenceClassification"], "id2label": labels}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return folder


def write_tiny_gemma_scorer(folder: Path, outputs: int = 1, *, seed: int = SEED) -> Path:
    """Writes a Gemma 3 that sees images of 28 x 28 pixels, with a head of some outputs."""
    import torch
    from transformers import (
        Gemma3Config,
        Gemma3ForSequenceClassification,
        Gemma3ImageProcessor,
        Gemma3Processor,
    )

    tokenizer = byte_tokenizer(GEMMA_TOKENS.values())
    tokens = {name: tokenizer.convert_tokens_to_ids(token) for name, token in GEMMA_TOKENS.items()}
    for name, token in GEMMA_TOKENS.items():
        setattr(tokenizer, name, token)
        setattr(tokenizer, f"{name}_id", tokens[name])
    vision = {"hidden_size": HIDDEN, "intermediate_size": 2 * HIDDEN, "num_hidden_layers": 2}
    config = Gemma3Config(
        text_config={**text_config(tokenizer), "head_dim": HEAD, "sliding_window": 64},
        vision_config={**vision, "num_attention_heads": 2, "image_size": 28, "patch_size": 14},
        mm_tokens_per_image=4,
        boi_token_index=tokens["boi_token"],
        eoi_token_index=tokens["eoi_token"],
        image_token_index=tokens["image_token"],
        num_labels=outputs,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        Gemma3ForSequenceClassification(config).float().save_pretrained(folder)
    Gemma3Processor(
        image_processor=Gemma3ImageProcessor(size={"height": 28, "width": 28}),
        tokenizer=tokenizer,
        chat_template=CHAT_TEMPLATE.replace(PLACE, GEMMA_TOKENS["boi_token"]),
        image_seq_length=4,
    ).save_pretrained(folder)
    settings = folder / "tokenizer_config.json"
    own = {**json.loads(settings.read_text("utf-8")), "extra_special_tokens": GEMMA_TOKENS}
    settings.write_text(json.dumps(own), "utf-8")
    return folder


def byte_tokenizer(images: Iterable[str] = ()) -> Any:
    """A tokenizer of Qwen's kind whose tokens are single bytes, and the special ones."""
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import Qwen2Tokenizer

    vocabulary = {character: at for at, character in enumerate(sorted(ByteLevel.alphabet()))}
    tokenizer = Qwen2Tokenizer(
        vocab=vocabulary,
        merges=[],
        eos_token=END_OF_TURN,
        pad_token=END_OF_TEXT,
        model_max_length=CONTEXT,
    )
    special = [END_OF_TEXT, TURN, END_OF_TURN, *images]
    tokenizer.add_special_tokens({"additional_special_tokens": special})
    return tokenizer


def write_model(kind: Any, config: Any, folder: Path, seed: int) -> None:
    """Writes settings and random weights."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = kind(config).float()
    model.generation_config.eos_token_id = config.get_text_config().eos_token_id
    model.generation_config.pad_token_id = config.get_text_config().pad_token_id
    model.save_pretrained(folder)


def text_config(tokenizer: Any) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": 2,
        "num_attention_heads": HIDDEN // HEAD,
        "num_key_value_heads": 1,
        "max_position_embeddings": CONTEXT,
        "initializer_range": SPREAD,
        "bos_token_id": None,
        "eos_token_id": tokenizer.convert_tokens_to_ids(END_OF_TURN),
        "pad_token_id": tokenizer.convert_tokens_to_ids(END_OF_TEXT),
    }


def qwen_config(
    tokenizer: Any, text: Mapping[str, Any] = EMPTY, vision: Mapping[str, Any] = EMPTY
) -> Any:
    """A tiny shape, but for the sizes that are given."""
    from transformers import Qwen2_5_VLConfig

    sizes = {**text_config(tokenizer), **text}
    # Time, height and width share the pairs of a head's numbers.
    eighth = sizes["hidden_size"] // sizes["num_attention_heads"] // 8
    sections = [eighth, eighth * 3 // 2, eighth * 3 // 2]
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": sections}
    return Qwen2_5_VLConfig(
        text_config={**sizes, "rope_parameters": rope},
        vision_config={
            "depth": 2,
            "hidden_size": HIDDEN,
            "intermediate_size": 2 * HIDDEN,
            "num_heads": 2,
            "out_hidden_size": HIDDEN,
            "window_size": 112,
            "fullatt_block_indexes": [1],
            "initializer_range": SPREAD,
            **vision,
        },
        tie_word_embeddings=text.get("tie_word_embeddings", True),
        **{name: tokenizer.convert_tokens_to_ids(token) for name, token in IMAGE.items()},
    )


def qwen_processor(tokenizer: Any) -> Any:
    from transformers import Qwen2_5_VLProcessor, Qwen2VLImageProcessor, Qwen2VLVideoProcessor

    return Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(
            size={"shortest_edge": MIN_PIXELS, "longest_edge": MAX_PIXELS}
        ),
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(),
        chat_template=CHAT_TEMPLATE.replace(PLACE, QWEN_PLACE),
    )


def _llava_config(tokenizer: Any) -> Any:
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig

    return LlavaConfig(
        text_config=LlamaConfig(**text_config(tokenizer)),
        vision_config=CLIPVisionConfig(
            hidden_size=HIDDEN,
            intermediate_size=2 * HIDDEN,
            num_hidden_layers=3,
            num_attention_heads=2,
            image_size=28,
            patch_size=14,
            initializer_range=SPREAD,
        ),
        image_token_index=tokenizer.convert_tokens_to_ids(PLACE),
        tie_word_embeddings=False,
    )


def _llava_processor(tokenizer: Any) -> Any:
    from transformers import CLIPImageProcessor, LlavaProcessor

    return LlavaProcessor(
        image_processor=CLIPImageProcessor(
            size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}
        ),
        tokenizer=tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=CHAT_TEMPLATE,
    )
