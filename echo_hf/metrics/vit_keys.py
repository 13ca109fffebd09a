"""Self-similarity of a picture: how alike the keys are that a ViT makes of its places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from echo_hf.metrics.cudnn_guard import without_cudnn
from echo_hf.metrics.squashed import Levels
from echo_hf.metrics.vit_layout import blocks_of, key_projection
from echo_hf.metrics.vit_loading import LoadedVit

if TYPE_CHECKING:
    import torch

Similarity = NDArray[np.float32]

# Mean and spread of the levels of ImageNet from 0 to 1, red, green and blue.
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HIGHEST = 255
SHORTEST_KEY = 1e-8


def self_similarities(vit: LoadedVit, layer: int, pictures: Levels) -> Similarity:
    """Cosines of the keys of every two places of each picture.

    The ViT is run up to the block whose keys are taken, without hooks, so that threads and
    batches do not get each other's.

    Args:
        vit: The ViT.
        layer: Number of the block, the first being 0.
        pictures: Array [picture, size, size, channel] of levels, 0 to 255.

    Returns:
        Array [picture, token, token] from -1 to 1, symmetric; the first token is that of the
        class. NaN where the ViT makes no number, or one whose square float32 cannot hold.
    """
    import torch

    # No short cuts of GPUs, which round to 10 bits where nobody has asked for it: neither those of
    # mixed precision nor those that the convolutions of cuDNN take by default.
    mixed = torch.autocast(vit.device.partition(":")[0], enabled=False)
    with torch.inference_mode(), without_cudnn, mixed:
        keys = _keys(vit, layer, _normalised(pictures, vit.device))
        units = _directions(keys)
        found: Similarity = (units @ units.mT).cpu().numpy()
    return found


def _normalised(pictures: Levels, device: str) -> torch.Tensor:
    import torch

    levels = torch.tensor(pictures, device=device).permute(0, 3, 1, 2)
    # Named, since numbers of Python are otherwise of the type that a program has set as its own.
    mean, spread = (
        torch.tensor(one, device=device, dtype=torch.float32).view(-1, 1, 1)
        for one in (MEAN, SPREAD)
    )
    return (levels.float() / HIGHEST - mean) / spread


def _keys(vit: LoadedVit, layer: int, pixels: torch.Tensor) -> torch.Tensor:
    """Array [picture, token, width] of the keys of all heads side by side."""
    *before, last = blocks_of(vit.model)[: layer + 1]
    hidden = vit.model.embeddings(pixels, interpolate_pos_encoding=vit.interpolated)
    for block in before:
        hidden = block(hidden)
    keys: torch.Tensor = key_projection(last)(last.layernorm_before(hidden))
    return keys


def _directions(keys: torch.Tensor) -> torch.Tensor:
    """Keys of length 1; NaN where a length is not finite, which divided by would be a 0."""
    lengths = keys.norm(dim=-1, keepdim=True)
    return (keys / lengths.clamp_min(SHORTEST_KEY)).where(lengths.isfinite(), float("nan"))
