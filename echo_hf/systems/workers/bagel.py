"""Worker that draws with BAGEL, run by the Python of BAGEL's own environment.

    python bagel.py --weights models/BAGEL-7B-MoT

It is started in a checkout of BAGEL, imports BAGEL's modules from there and nothing of echo-hf, and
speaks the protocol of the adapter `command`. `parameters` of a request may hold `think`, which
makes the model plan in words first, and, in `text_to_image` and `edit`, arguments of BAGEL's
`interleave_inference` that replace the ones below.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
from pathlib import Path
from typing import Any

VERSION = "1"
DETERMINISM = "the same seed gives the same picture on the same kind of GPU with the same packages"
MAX_SIDE = 1024
STEP = 16
THINK_DEFAULTS = {"max_think_token_n": 1000, "do_sample": False, "text_temperature": 0.3}
TEXT_TO_IMAGE = {
    "cfg_text_scale": 4.0,
    "cfg_img_scale": 1.0,
    "cfg_interval": [0.4, 1.0],
    "timestep_shift": 3.0,
    "num_timesteps": 50,
    "cfg_renorm_min": 0.0,
    "cfg_renorm_type": "global",
}
EDIT = {
    **TEXT_TO_IMAGE,
    "cfg_img_scale": 2.0,
    "cfg_interval": [0.0, 1.0],
    "cfg_renorm_type": "text_channel",
}
# Layers that exchange tensors outside of `forward`, and so need the same device.
SAME_DEVICE_LAYERS = (
    "language_model.model.embed_tokens",
    "time_embedder",
    "latent_pos_embed",
    "vae2llm",
    "llm2vae",
    "connector",
    "vit_pos_embed",
)


def main() -> None:
    """Load the model, announce it, and answer requests until the input ends."""
    parser = argparse.ArgumentParser(description="Draws with BAGEL for echo-hf.")
    parser.add_argument("--weights", required=True, help="folder of ByteDance-Seed/BAGEL-7B-MoT")
    parser.add_argument("--memory", help="most memory of a GPU that is used, such as 40GiB")
    options = parser.parse_args()
    sys.path.insert(0, str(Path.cwd()))
    answers = sys.stdout
    # Libraries may print, and the protocol has stdout for itself.
    with contextlib.redirect_stdout(sys.stderr):
        inferencer = load(options.weights, options.memory)
        hello = {"echo_hf_worker": 1, "name": "bagel", "version": VERSION}
        print(json.dumps({**hello, "determinism": DETERMINISM}), file=answers, flush=True)
        for line in sys.stdin:
            request = json.loads(line)
            response = {"id": request["id"], **answer_request(inferencer, request)}
            print(json.dumps(response), file=answers, flush=True)


def answer_request(inferencer: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Draw and save the image of a request; return the answer without its id."""
    parameters, paths, size = request["parameters"], request["inputs"], request["size"]
    unknown = sorted(set(parameters) - {"think", "text_to_image", "edit"})
    if unknown:
        text = f"expected think, text_to_image or edit, got {unknown}"
        return {"outcome": "failed", "code": "bad_parameter", "text": text}
    if isinstance(size, dict):
        sides = size["width"], size["height"]
        if paths or not all(side % STEP == 0 and side <= MAX_SIDE for side in sides):
            text = "a size is for prompts without input, in multiples of 16 up to 1024"
            return {"outcome": "unsupported", "code": "size", "text": text}
    try:
        return draw(inferencer, request)
    except Exception as error:  # the next request may succeed
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        text = " ".join(str(error).split())[:2000]
        return {"outcome": "failed", "code": type(error).__name__, "text": text}


def draw(inferencer: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Draw with BAGEL's own arguments for the kind of task, updated by the parameters."""
    import numpy
    import torch
    from PIL import Image, ImageOps

    parameters, paths, size, seed = (
        request[name] for name in ("parameters", "inputs", "size", "seed")
    )
    own = parameters.get("edit" if paths else "text_to_image", {})
    arguments = {**THINK_DEFAULTS, **(EDIT if paths else TEXT_TO_IMAGE), **own}
    if isinstance(size, dict):
        arguments["image_shapes"] = (size["height"], size["width"])
    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)  # also seeds all GPUs
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    with contextlib.ExitStack() as opened:
        images = [opened.enter_context(Image.open(path)) for path in paths]
        outputs = inferencer.interleave_inference(
            [*map(ImageOps.exif_transpose, images), request["prompt"]],
            think=bool(parameters.get("think", False)),
            **arguments,
        )
    words = "\n".join(part for part in outputs if isinstance(part, str)) or None
    images = [part for part in outputs if not isinstance(part, str)]
    if not images:
        return {"outcome": "no_image", "text": words}
    images[-1].save(request["output"], "PNG")
    return {
        "outcome": "ok",
        "output": request["output"],
        "text": words,
        "seed": seed,
        "details": {"arguments": arguments, "inputs": len(paths)},
    }


def load(weights: str, memory: str | None) -> Any:
    """Load BAGEL's `InterleaveInferencer` over all GPUs, within a limit of memory for each."""
    from data.data_utils import add_special_tokens
    from data.transforms import ImageTransform
    from inferencer import InterleaveInferencer
    from modeling.autoencoder import load_ae
    from modeling.qwen2 import Qwen2Tokenizer

    vae, vae_config = load_ae(local_path=str(Path(weights) / "ae.safetensors"))
    tokenizer, new_token_ids, _ = add_special_tokens(Qwen2Tokenizer.from_pretrained(weights))
    return InterleaveInferencer(
        model=_load_weights(_make_empty_model(weights, vae_config), weights, memory),
        vae_model=vae,
        tokenizer=tokenizer,
        # Largest side, smallest side, and the number that sides are multiples of.
        vae_transform=ImageTransform(1024, 512, 16),
        vit_transform=ImageTransform(980, 224, 14),
        new_token_ids=new_token_ids,
    )


def _make_empty_model(weights: str, vae_config: Any) -> Any:
    import modeling.bagel as bagel
    from accelerate import init_empty_weights

    text_config = bagel.Qwen2Config.from_json_file(str(Path(weights) / "llm_config.json"))
    text_config.qk_norm, text_config.tie_word_embeddings = True, False
    text_config.layer_module = "Qwen2MoTDecoderLayer"
    vision_config = bagel.SiglipVisionConfig.from_json_file(str(Path(weights) / "vit_config.json"))
    vision_config.rope = False
    vision_config.num_hidden_layers -= 1
    config = bagel.BagelConfig(
        visual_gen=True,
        visual_und=True,
        llm_config=text_config,
        vit_config=vision_config,
        vae_config=vae_config,
        vit_max_num_patch_per_side=70,
        connector_act="gelu_pytorch_tanh",
        latent_patch_size=2,
        max_latent_size=64,
    )
    with init_empty_weights():
        parts = bagel.Qwen2ForCausalLM(text_config), bagel.SiglipVisionModel(vision_config)
        model = bagel.Bagel(*parts, config)
        model.vit_model.vision_model.embeddings.convert_conv2d_to_linear(vision_config, meta=True)
    return model


def _load_weights(model: Any, weights: str, memory: str | None) -> Any:
    import torch
    from accelerate import infer_auto_device_map, load_checkpoint_and_dispatch

    gpus = range(torch.cuda.device_count())
    places = infer_auto_device_map(
        model,
        max_memory=dict.fromkeys(gpus, memory) if memory else None,
        no_split_module_classes=["Bagel", "Qwen2MoTDecoderLayer"],
    )
    first = places.get(SAME_DEVICE_LAYERS[0], 0)
    places.update({name: first for name in SAME_DEVICE_LAYERS if name in places or len(gpus) == 1})
    return load_checkpoint_and_dispatch(
        model,
        checkpoint=str(Path(weights) / "ema.safetensors"),
        device_map=places,
        offload_buffers=True,
        dtype=torch.bfloat16,
        force_hooks=True,
    ).eval()


if __name__ == "__main__":
    main()
