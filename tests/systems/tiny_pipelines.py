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


def edit_plus() -> Any:
    """Qwen-Image-Edit of late 2025, with several inputs."""
    from diffusers import (
        AutoencoderKLQwenImage,
        FlowMatchEulerDiscreteScheduler,
        QwenImageEditPlusPipeline,
        QwenImageTransformer2DModel,
    )
    from transformers import Qwen2_5_VLForConditionalGeneration
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    tokenizer = _qwen_tokenizer()
    return QwenImageEditPlusPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=AutoencoderKLQwenImage(
            base_dim=24,
            z_dim=4,
            dim_mult=[1, 1, 1, 1],
            num_res_blocks=1,
            temperal_downsample=[False, True, True],
            latents_mean=[0.0] * 4,
            latents_std=[1.0] * 4,
        ),
        text_encoder=Qwen2_5_VLForConditionalGeneration(_qwen_vl_config(tokenizer)),
        tokenizer=tokenizer,
        processor=qwen_processor_class()(Qwen2VLImageProcessorPil(), tokenizer),
        transformer=QwenImageTransformer2DModel(
            patch_size=2,
            in_channels=16,
            out_channels=4,
            num_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=HIDDEN,
            guidance_embeds=False,
            axes_dims_rope=(8, 4, 4),
        ),
    )


def checked() -> Any:
    from diffusers import DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
    from diffusers.pipelines.stable_diffusion import StableDiffusionSafetyChecker
    from transformers import CLIPConfig, CLIPImageProcessorPil

    parts = _flux_parts()
    sight = {
        "hidden_size": HIDDEN,
        "intermediate_size": HIDDEN,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 32,
        "patch_size": 16,
        "projection_dim": HIDDEN,
    }
    checker = StableDiffusionSafetyChecker(CLIPConfig(vision_config=sight, projection_dim=HIDDEN))
    checker.concept_embeds_weights.data.fill_(-2)  # below any cosine
    return StableDiffusionPipeline(
        scheduler=DDIMScheduler(clip_sample=False, set_alpha_to_one=False, steps_offset=1),
        vae=parts["vae"],
        text_encoder=parts["text_encoder"],
        tokenizer=parts["tokenizer"],
        unet=UNet2DConditionModel(
            sample_size=8,
            in_channels=1,
            out_channels=1,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            block_out_channels=(HIDDEN, HIDDEN),
            layers_per_block=1,
            cross_attention_dim=HIDDEN,
            attention_head_dim=2,
            norm_num_groups=4,
        ),
        safety_checker=checker,
        feature_extractor=CLIPImageProcessorPil(
            size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
        ),
    )


def qwen_processor_class() -> Any:
    from transformers.models.qwen2_vl.processing_qwen2_vl import Qwen2VLProcessor as WithVideos
    from transformers.processing_utils import ProcessorMixin

    class Qwen2VLProcessor(WithVideos):
        def __init__(
            self, image_processor: Any = None, tokenizer: Any = None, chat_template: Any = None
        ) -> None:
            *_, self.image_token, self.video_token = QWEN_WORDS
            self.image_token_id = tokenizer.convert_tokens_to_ids(self.image_token)
            self.video_token_id = tokenizer.convert_tokens_to_ids(self.video_token)
            ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)

    Qwen2VLProcessor.__module__ = WithVideos.__module__
    return Qwen2VLProcessor


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

    clip, t5 = _clip_tokenizer(), _t5_tokenizer()
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


def _clip_tokenizer() -> Any:
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import CLIPTokenizer

    letters = sorted(ByteLevel.alphabet())
    words = [*letters, *(f"{letter}</w>" for letter in letters)]
    words += ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {word: number for number, word in enumerate(words)}
    return CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=77)


def _t5_tokenizer() -> Any:
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


def _qwen_vl_config(tokenizer: Any) -> Any:
    from transformers import Qwen2_5_VLConfig

    number = tokenizer.convert_tokens_to_ids
    return Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": HIDDEN,
            "intermediate_size": HIDDEN,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "rope_parameters": {
                "rope_type": "default",
                "mrope_section": [2, 3, 3],
                "rope_theta": 1e6,
            },
            "bos_token_id": None,
            "eos_token_id": None,
        },
        vision_config={
            "depth": 1,
            "hidden_size": HIDDEN,
            "intermediate_size": HIDDEN,
            "num_heads": 2,
            "out_hidden_size": HIDDEN,
        },
        image_token_id=number("<|image_pad|>"),
        video_token_id=number("<|video_pad|>"),
        vision_start_token_id=number("<|vision_start|>"),
        vision_end_token_id=number("<|vision_end|>"),
    )
