"""A tiny safety guard of Llama 4's kind with random weights, written to a folder.

A real checkpoint in every file, whose settings say, as the published guard's do, that attention has
no chunks. Its chat template names the categories, leaves out those that a switch excludes, and
shows one user turn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from echo_hf.engines.base import ImageRef, Message, Request, Text
from tests.tiny_models import (
    EMPTY,
    END_OF_TEXT,
    HEAD,
    HIDDEN,
    SEED,
    SPREAD,
    byte_tokenizer,
    text_config,
    write_model,
)

# An image is cut into tiles; four patches of a tile are one token.
TILE = 56
PATCH = 14
MOST_TILES = 4
LONGEST = 2048
# Tokens of an image by its width and height, counted by hand. A square has one tile: its beginning
# and end, a mark, four patches. 130 x 70 has two by two tiles, each of four patches and a mark,
# before the whole; 120 x 40 has three side by side, 56 x 200 four below each other.
TOKENS = {(40, 40): 7, (130, 70): 27, (120, 40): 22, (56, 200): 27}

IMAGE, PATCH_OF_IMAGE = "<|image|>", "<|patch|>"
START, END = "<|image_start|>", "<|image_end|>"
COLUMN, ROW = "<|tile_x_separator|>", "<|tile_y_separator|>"
SPECIAL = (IMAGE, PATCH_OF_IMAGE, START, END, COLUMN, ROW)

CATEGORIES = {"S1": "Threats", "S2": "Swindles", "S3": "Stolen likeness", "S10": "Secret recipes"}
CHAT_TEMPLATE = """\
{%- set named = NAMED -%}
{%- set excluded = excluded_category_keys | default([]) -%}
{{- 'Is what the person sent free of these kinds of content?\n' -}}
{%- for key, name in named.items() if key not in excluded -%}
{{- key + ': ' + name + '.\n' -}}
{%- endfor -%}
{%- for message in messages -%}
{{- '<' + message['role'] + '>' -}}
{%- if message['content'] is string -%}
{{- message['content'] -}}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'text' -%}{{- part['text'] -}}{%- else -%}{{- '<|image|>' -}}{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '\n' -}}
{%- endfor -%}
{{- 'Answer safe, or unsafe and the kinds.\n' -}}
""".replace("NAMED", repr(CATEGORIES))


def asked(*parts: Text | ImageRef | str, max_tokens: int = 12) -> Request:
    said = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Request("safety", (Message("user", said),), None, max_tokens)


def prompt_of(words: str, excluded: Collection[str] = ()) -> str:
    kinds = "".join(f"{key}: {name}.\n" for key, name in CATEGORIES.items() if key not in excluded)
    return (
        "Is what the person sent free of these kinds of content?\n"
        f"{kinds}<user>{words}\nAnswer safe, or unsafe and the kinds.\n"
    )


def noise(folder: Path, width: int, height: int) -> ImageRef:
    pixels = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    file = folder / f"{width}x{height}.png"
    Image.fromarray(pixels).save(file)
    return ImageRef(hashlib.sha256(file.read_bytes()).hexdigest(), file)


def write_tiny_guard(folder: Path, *, seed: int = SEED) -> Path:
    """Writes a Llama 4 without experts whose attention has no chunks, one token a byte."""
    from transformers import Llama4ForConditionalGeneration

    tokenizer = byte_tokenizer(SPECIAL)
    write_model(Llama4ForConditionalGeneration, guard_config(tokenizer), folder, seed)
    guard_processor(tokenizer).save_pretrained(folder)
    return folder


def guard_config(
    tokenizer: Any, text: Mapping[str, Any] = EMPTY, vision: Mapping[str, Any] = EMPTY
) -> Any:
    """A tiny shape, but for the sizes that are given."""
    from transformers import Llama4Config

    return Llama4Config(
        text_config={
            **text_config(tokenizer),
            "intermediate_size_mlp": 2 * HIDDEN,
            # Three of four layers would have chunks; the fourth sees all tokens, wherever they are.
            "num_hidden_layers": 4,
            "head_dim": HEAD,
            "num_local_experts": 1,
            "moe_layers": [],
            "interleave_moe_layer_step": 0,
            "max_position_embeddings": LONGEST,
            "attention_chunk_size": None,
            "pad_token_id": tokenizer.convert_tokens_to_ids(END_OF_TEXT),
            **text,
        },
        vision_config={
            "hidden_size": HIDDEN,
            "intermediate_size": 4 * HIDDEN,  # four patches, side by side
            "num_hidden_layers": 2,
            "num_attention_heads": HIDDEN // HEAD,
            "image_size": TILE,
            "patch_size": PATCH,
            "vision_output_dim": HIDDEN,
            "projector_input_dim": HIDDEN,
            "projector_output_dim": HIDDEN,
            "initializer_range": SPREAD,
            **vision,
        },
        boi_token_index=tokenizer.convert_tokens_to_ids(START),
        eoi_token_index=tokenizer.convert_tokens_to_ids(END),
        image_token_index=tokenizer.convert_tokens_to_ids(PATCH_OF_IMAGE),
    )


def guard_processor(tokenizer: Any, tile: int = TILE, most_tiles: int = MOST_TILES) -> Any:
    from transformers import Llama4ImageProcessor, Llama4Processor

    return Llama4Processor(
        image_processor=Llama4ImageProcessor(
            size={"height": tile, "width": tile}, max_patches=most_tiles
        ),
        tokenizer=tokenizer,
        patch_size=PATCH,
        chat_template=CHAT_TEMPLATE,
    )
