"""Tiny pipelines with random weights, written to a folder without any download.

They are real: every part in the files that diffusers looks for, loaded back through the class that
`model_index.json` names. What they draw means nothing; what is proved with them is what goes in
and what comes out. Their latents are an eighth of an image's sides, as those of the real ones.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

Write = Callable[[str], Path]
REASON = "needs torch, diffusers and transformers: see `make test-extras`"
SEED = 20_250_325
HIDDEN = 32
QWEN_WORDS = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>"),
    *("<|image_pad|>", "<|video_pad|>"),
)
# Of both autoencoders: latents are an eighth of an image's sides.
AUTOENCODER: dict[str, Any] = {
    "in_channels": 3,
    "out_channels": 3,
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
    "block_out_channels": (4,) * 4,
    "layers_per_block": 1,
    "latent_channels": 1,
    "norm_num_groups": 1,
    "use_quant_conv": False,
    "use_post_quant_conv": False,
}
FLUX: dict[str, Any] = {
    "patch_size": 1,
    "in_channels": 4,
    "num_layers": 1,
    "num_single_layers": 1,
    "attention_head_dim": 16,
    "num_attention_heads": 2,
    "joint_attention_dim": HIDDEN,
}
CHAT = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_tiny(make: Callable[[], Any], folder: Path) -> Path:
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        pipe = make()
    for name, part in pipe.components.items():
        if name.startswith("transformer"):
            _livelier(part)
    pipe.save_pretrained(folder)
    return folder


def kontext() -> Any:
    """FLUX.1 Kontext."""
    from diffusers import FluxKontextPipeline

    return FluxKontextPipeline(**_flux_parts())


def flux() -> Any:
    """FLUX.1, which draws from text alone."""
    from diffusers import FluxPipeline

    return FluxPipeline(**_flux_parts())


def klein() -> Any:
    """FLUX.2 klein."""
    from diffusers import (
        AutoencoderKLFlux2,
        FlowMatchEulerDiscreteScheduler,
        Flux2KleinPipeline,
        Flux2Transformer2DModel,
    )
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokenizer = _qwen_tokenizer()
    language = Qwen3Config(
        intermediate_size=HIDDEN,
        hidden_size=HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        vocab_size=len(tokenizer),
        max_position_embeddings=512,
    )
    return Flux2KleinPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=AutoencoderKLFlux2(**AUTOENCODER),
        text_encoder=Qwen3ForCausalLM(language),
        tokenizer=tokenizer,
        transformer=Flux2Transformer2DModel(
            **FLUX,
            timestep_guidance_channels=HIDDEN,
            axes_dims_rope=(4, 4, 4, 4),
            guidance_embeds=False,
        ),
    )


def _livelier(part: Any) -> None:
    # At the usual spread a prompt changes no level of the image: what goes in has to be seen.
    import torch

    with torch.no_grad():
        for weights in part.parameters():
            if weights.dim() > 1:
                weights.mul_(3)


def _flux_parts() -> dict[str, Any]:
    from diffusers import AutoencoderKL, FlowMatchEulerDiscreteScheduler, FluxTransformer2DModel
    from transformers import CLIPTextConfig, CLIPTextModel, T5Config, T5EncoderModel

    clip, t5 = clip_tokenizer(), t5_tokenizer()
    clip_config = CLIPTextConfig(
        vocab_size=len(clip),
        hidden_size=HIDDEN,
        intermediate_size=HIDDEN,
        num_attention_heads=2,
        num_hidden_layers=1,
        projection_dim=HIDDEN,
        bos_token_id=clip.bos_token_id,
        eos_token_id=clip.eos_token_id,
        pad_token_id=clip.pad_token_id,
    )
    t5_config = T5Config(
        vocab_size=len(t5),
        d_model=HIDDEN,
        d_ff=HIDDEN,
        d_kv=16,
        num_layers=1,
        num_heads=2,
        pad_token_id=0,
        eos_token_id=1,
        is_encoder_decoder=False,
    )
    return {
        "scheduler": FlowMatchEulerDiscreteScheduler(),
        "vae": AutoencoderKL(
            **AUTOENCODER, mid_block_add_attention=False, shift_factor=0.0, scaling_factor=1.0
        ),
        "text_encoder": CLIPTextModel(clip_config),
        "tokenizer": clip,
        "text_encoder_2": T5EncoderModel(t5_config),
        "tokenizer_2": t5,
        "transformer": FluxTransformer2DModel(
            **FLUX, pooled_projection_dim=HIDDEN, axes_dims_rope=(4, 4, 8), guidance_embeds=True
        ),
    }


def clip_tokenizer() -> Any:
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import CLIPTokenizer

    letters = sorted(ByteLevel.alphabet())
    words = [*letters, *(f"{letter}</w>" for letter in letters)]
    words += ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {word: number for number, word in enumerate(words)}
    return CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=77)


def t5_tokenizer() -> Any:
    from transformers import T5Tokenizer

    letters = [letter for letter in string.printable if not letter.isspace()]
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581", -2.0)]
    pieces += [(letter, -3.0) for letter in letters]
    return T5Tokenizer(vocab=pieces, extra_ids=0, model_max_length=512)


def _qwen_tokenizer() -> Any:
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import Qwen2Tokenizer

    vocabulary = {letter: number for number, letter in enumerate(sorted(ByteLevel.alphabet()))}
    end_of_text, _, end_of_turn, *_ = QWEN_WORDS
    tokenizer = Qwen2Tokenizer(
        vocab=vocabulary, merges=[], eos_token=end_of_turn, pad_token=end_of_text
    )
    tokenizer.add_special_tokens({"additional_special_tokens": list(QWEN_WORDS)})
    tokenizer.chat_template = CHAT
    return tokenizer
