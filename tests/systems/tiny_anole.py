"""A tiny Anole with random weights, written to a folder without any download.

Its images are squares of 32 pixels, drawn as 64 tokens. What it draws means nothing; what is
proved with it is the way from a prompt and images to an image.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

REASON = "needs torch and transformers: see `make test-extras`"
SEED = 20_250_325
HIDDEN = 32
SIDE, TOKENS, CODES = 32, 64, 16
CONTEXT = 3 * (TOKENS + 2) + 60
WORDS = ("<s>", "<pad>", "</s>", "<unk>", "<racm3:break>", "<eoss>", "<image>", "<reserved08706>")
LEVELS = 3


def write_tiny_anole(folder: Path, *, seed: int = SEED) -> Path:
    import torch
    from safetensors.torch import save_file
    from transformers import ChameleonForConditionalGeneration

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = ChameleonForConditionalGeneration(config())
        weights = decoder_weights(model)
    with torch.no_grad():  # so that what goes in is seen in what comes out, and where it stood
        model.lm_head.weight.mul_(20)
        model.model.embed_tokens.weight.mul_(20)
        for layer in model.model.layers:
            layer.self_attn.q_norm.weight.mul_(4)
            for part in (layer.self_attn.v_proj, layer.self_attn.o_proj, layer.mlp.down_proj):
                part.weight.mul_(10)
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    (folder / "decoder").mkdir()
    save_file(weights, folder / "decoder" / "model.safetensors")
    return folder


def vocabulary() -> dict[str, int]:
    from tokenizers.pre_tokenizers import ByteLevel

    names = [*WORDS, *map(code_name, range(CODES)), *sorted(ByteLevel.alphabet())]
    return {name: number for number, name in enumerate(names)}


def code_name(code: int) -> str:
    return "IMGIMG" + "".join(chr(ord("A") + int(digit)) for digit in str(code)) + "Z"


def config() -> Any:
    from transformers import ChameleonConfig

    words = vocabulary()
    return ChameleonConfig(
        vocab_size=len(words),
        hidden_size=HIDDEN,
        intermediate_size=HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        pad_token_id=words["<pad>"],
        bos_token_id=words["<s>"],
        eos_token_id=words["</s>"],
        vocabulary_map=words,
        vq_config={
            "embed_dim": 8,
            "num_embeddings": CODES,
            "latent_channels": 8,
            "resolution": SIDE,
            "base_channels": 32,
            "channel_multiplier": [1] * LEVELS,
            "num_res_blocks": 1,
        },
    )


def tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    reader = Tokenizer(models.BPE(vocab=vocabulary(), merges=[]))
    reader.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    reader.decoder = decoders.ByteLevel()
    roles = ("bos_token", "pad_token", "eos_token", "unk_token")
    return PreTrainedTokenizerFast(
        tokenizer_object=reader,
        additional_special_tokens=list(WORDS[4:]),
        **dict(zip(roles, WORDS, strict=False)),
    )


def decoder_weights(model: Any) -> dict[str, Any]:
    from types import SimpleNamespace

    from torch import nn
    from transformers.models.janus.modeling_janus import JanusVQVAEDecoder

    said = model.config.vq_config.to_dict()
    decoder = JanusVQVAEDecoder(SimpleNamespace(**said, out_channels=3))
    for level in decoder.up:
        level.attn = nn.ModuleList()
    parts = {**model.model.vqmodel.state_dict()}
    parts |= {f"decoder.{name}": value for name, value in decoder.state_dict().items()}
    return {name: value.clone().contiguous() for name, value in parts.items()}


def in_original_order(weights: dict[str, Any]) -> dict[str, Any]:
    renamed = {}
    for name, value in weights.items():
        parts = name.split(".")
        if parts[:2] == ["decoder", "up"]:
            parts[2] = str(LEVELS - 1 - int(parts[2]))
        renamed[".".join(parts)] = value
    return renamed
