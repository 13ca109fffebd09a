"""ViTs with random weights, in the files of the Hub, and what a plain reading makes of them.

`keys_of` is written from the definition of a ViT, in numpy and float64, and shares nothing with
transformers but the names of the weights in the file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.special import erf, softmax

REASON = "needs torch and transformers: see `make test-extras`"
MEAN, SPREAD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
EPS = 1e-6

Numbers = NDArray[np.float64]
Weights = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Shape:
    side: int = 32
    patch: int = 8
    width: int = 16
    heads: int = 2
    blocks: int = 3

    @property
    def tokens(self) -> int:
        return (self.side // self.patch) ** 2 + 1


TINY = Shape()
DINO_S_16 = Shape(side=224, patch=16, width=384, heads=6, blocks=12)


def weights_of(shape: Shape, seed: int = 0, spread: float = 0.1, faint: float = 1.0) -> Weights:
    rng = np.random.default_rng(seed)
    wide, names = 4 * shape.width, {}
    square, many = (shape.width, shape.width), (1, shape.tokens, shape.width)
    names["embeddings.cls_token"] = rng.normal(0, faint, (1, 1, shape.width))
    names["embeddings.position_embeddings"] = rng.normal(0, faint, many)
    kernel = (shape.width, 3, shape.patch, shape.patch)
    names["embeddings.patch_embeddings.projection.weight"] = rng.normal(0, spread * faint, kernel)
    names["embeddings.patch_embeddings.projection.bias"] = np.zeros(shape.width)
    for at in range(shape.blocks):
        layers = {
            **{f"attention.attention.{one}": square for one in ("query", "key", "value")},
            "attention.output.dense": square,
            "intermediate.dense": (wide, shape.width),
            "output.dense": (shape.width, wide),
        }
        for name, size in layers.items():
            names[f"encoder.layer.{at}.{name}.weight"] = rng.normal(0, spread, size)
            names[f"encoder.layer.{at}.{name}.bias"] = rng.normal(0, spread, size[0])
        for name in ("layernorm_before", "layernorm_after"):
            names[f"encoder.layer.{at}.{name}.weight"] = rng.normal(1, spread, shape.width)
            names[f"encoder.layer.{at}.{name}.bias"] = rng.normal(0, spread, shape.width)
    names["layernorm.weight"], names["layernorm.bias"] = np.ones(shape.width), np.zeros(shape.width)
    return {name: value.astype(np.float32) for name, value in names.items()}


def write_vit(folder: Path, shape: Shape, weights: Weights, **settings: object) -> Path:
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "model_type": "vit",
        "architectures": ["ViTModel"],
        "image_size": shape.side,
        "patch_size": shape.patch,
        "num_channels": 3,
        "hidden_size": shape.width,
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.blocks,
        "intermediate_size": 4 * shape.width,
        "layer_norm_eps": 1e-12,
        **settings,
    }
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def keys_of(weights: Weights, shape: Shape, layer: int, image: Image.Image) -> Numbers:
    hidden = _embedded(weights, shape, image)
    for at in range(layer):
        block = f"encoder.layer.{at}."
        hidden = hidden + _attention(weights, shape, block, hidden)
        raised = _linear(
            weights,
            f"{block}intermediate.dense",
            _normed(weights, f"{block}layernorm_after", hidden),
        )
        bent = raised * (1 + erf(raised / np.sqrt(2))) / 2
        hidden = hidden + _linear(weights, f"{block}output.dense", bent)
    block = f"encoder.layer.{layer}."
    normed = _normed(weights, f"{block}layernorm_before", hidden)
    return _linear(weights, f"{block}attention.attention.key", normed)


def distance_of(
    weights: Weights, shape: Shape, layer: int, one: Image.Image, other: Image.Image
) -> float:
    cosines = []
    for image in (one, other):
        keys = keys_of(weights, shape, layer, image)
        lengths = np.sqrt((keys**2).sum(axis=1))
        cosines.append(keys @ keys.T / np.outer(lengths, lengths))
    return float(((cosines[0] - cosines[1]) ** 2).mean())


def _embedded(weights: Weights, shape: Shape, image: Image.Image) -> Numbers:
    small = image.resize((shape.side, shape.side), Image.Resampling.BILINEAR)
    pixels = (np.asarray(small, np.float64) / 255 - MEAN) / SPREAD
    count, side = shape.side // shape.patch, shape.patch
    kernel = weights["embeddings.patch_embeddings.projection.weight"].astype(np.float64)
    patches = pixels.reshape(count, side, count, side, 3)
    tokens = np.einsum("aybxc,kcyx->abk", patches, kernel).reshape(-1, shape.width)
    tokens += weights["embeddings.patch_embeddings.projection.bias"]
    full = np.concatenate([weights["embeddings.cls_token"][0], tokens])
    return full + weights["embeddings.position_embeddings"][0]


def _attention(weights: Weights, shape: Shape, block: str, hidden: Numbers) -> Numbers:
    normed = _normed(weights, f"{block}layernorm_before", hidden)
    query, key, value = (
        _linear(weights, f"{block}attention.attention.{name}", normed)
        .reshape(len(hidden), shape.heads, -1)
        .transpose(1, 0, 2)
        for name in ("query", "key", "value")
    )
    weight = softmax(query @ key.transpose(0, 2, 1) / np.sqrt(key.shape[-1]), axis=-1)
    joined = (weight @ value).transpose(1, 0, 2).reshape(hidden.shape)
    return _linear(weights, f"{block}attention.output.dense", joined)


def _linear(weights: Weights, name: str, hidden: Numbers) -> Numbers:
    return hidden @ weights[f"{name}.weight"].T.astype(np.float64) + weights[f"{name}.bias"]


def _normed(weights: Weights, name: str, hidden: Numbers) -> Numbers:
    centred = hidden - hidden.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPS)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]
