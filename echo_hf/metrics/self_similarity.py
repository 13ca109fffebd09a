"""Self-similarity of an image: how alike the keys are that a ViT makes of its places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from echo_hf.metrics.image_features import InputCache
from echo_hf.metrics.vit_loading import LoadedVit, VitOptions, load_vit

if TYPE_CHECKING:
    import torch


Levels = NDArray[np.uint8]
RESAMPLING = Image.Resampling.BILINEAR


@dataclass(frozen=True, slots=True, eq=False)
class Squashed:
    """An image as a ViT is given it."""

    pixels: Levels
    digest: bytes


def resized(image: Image.Image, size: int) -> Squashed:
    """Makes an image a square, whatever its shape was, in 8 bits."""
    pixels = np.asarray(image.resize((size, size), RESAMPLING))
    return Squashed(pixels, sha256(pixels.tobytes()).digest())


def blocks_of(model: Any) -> Sequence[Any]:
    """The blocks of a ViT, in the order in which they are run."""
    blocks: Sequence[Any] = model.encoder.layer if hasattr(model, "encoder") else model.layers
    return blocks


def key_projection(block: Any) -> Any:
    """The layer of a block that makes keys, those of all heads side by side."""
    attention = block.attention
    return attention.k_proj if hasattr(attention, "k_proj") else attention.attention.key


class CudnnGuard:
    """A context manager for threads that want their convolutions without cuDNN."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._was_enabled = True

    def __enter__(self) -> None:
        from torch.backends import cudnn

        with self._lock:
            if not self._inside:
                self._was_enabled, cudnn.enabled = cudnn.enabled, False
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        from torch.backends import cudnn

        with self._lock:
            self._inside -= 1
            if not self._inside:
                cudnn.enabled = self._was_enabled


# What it guards belongs to the process, so there is one of it.
without_cudnn = CudnnGuard()


Similarity = NDArray[np.float32]

# Mean and spread of the levels of ImageNet from 0 to 1, red, green and blue.
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HIGHEST = 255
SHORTEST_KEY = 1e-8


def self_similarities(vit: LoadedVit, layer: int, images: Levels) -> Similarity:
    """Cosines of the keys of every two places of each image."""
    import torch

    # No short cuts of GPUs, which round to 10 bits where nobody has asked for it: neither those of
    # mixed precision nor those that the convolutions of cuDNN take by default.
    mixed = torch.autocast(vit.device.partition(":")[0], enabled=False)
    with torch.inference_mode(), without_cudnn, mixed:
        keys = _keys(vit, layer, _normalised(images, vit.device))
        units = _directions(keys)
        found: Similarity = (units @ units.mT).cpu().numpy()
    return found


def _normalised(images: Levels, device: str) -> torch.Tensor:
    import torch

    levels = torch.tensor(images, device=device).permute(0, 3, 1, 2)
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


MOST_BYTES = 2**28


class SimilarityCache(InputCache[LoadedVit, Similarity]):
    """What a ViT sees in inputs, and the ViT, so that all systems share both.

    Given to `structure_distance` for one system after the other: the ViT is loaded once, and looks
    at each input once. An input is known by the pixels that the ViT is given, and by all that
    decides what it makes of them. The self-similarity is kept in float32, 155 KB for each input of
    DINO ViT-S/16 (197 x 197 numbers), and nothing else of it. What is kept of inputs never grows
    beyond `most_bytes`: what no longer fits is computed anew.

    Args:
        most_bytes: How much is kept of inputs at most; 256 MiB are 1722 inputs of DINO ViT-S/16.

    Raises:
        ScoreError: `most_bytes` is no number of bytes.

    Examples:
        >>> import numpy as np
        >>> cache = SimilarityCache(most_bytes=2000)
        >>> for name in (b"first", b"second"):
        ...     cache.keep(("vit", name), np.eye(12, dtype=np.float32))
        >>> len(cache), cache.kept_bytes, cache.find(("vit", b"second")) is None
        (1, 1216, True)
    """

    def __init__(self, *, most_bytes: int = MOST_BYTES) -> None:
        super().__init__(most_bytes=most_bytes)

    def _size(self, value: Similarity) -> int:
        return value.nbytes

    def _copied(self, value: Similarity) -> Similarity:
        return value.copy()


class SelfSimilarities:
    """The self-similarities of images, from a ViT that is loaded when it is first needed."""

    def __init__(
        self, options: VitOptions, *, batch_size: int, cache: SimilarityCache | None
    ) -> None:
        self._options = options
        self._batch_size = batch_size
        self._cache = cache
        self._vit: LoadedVit | None = None
        self._definition: Mapping[str, Any] | None = None
        self.forwards = 0

    def __getstate__(self) -> dict[str, Any]:
        """Without weights, which another process has no use for, or its own."""
        return {**vars(self), "_vit": None}

    @property
    def definition(self) -> Mapping[str, Any]:
        """What of the ViT and of its surroundings decides numbers; it is loaded to know."""
        return self._definition or self.load().definition

    def load(self) -> LoadedVit:
        """The ViT, loaded the first time."""
        if self._vit is None:
            self._vit = self._loaded()
            self._definition = self._vit.definition
        return self._vit

    def of(
        self, inputs: Iterable[Squashed], outputs: Iterable[Squashed]
    ) -> Mapping[bytes, Similarity]:
        """The self-similarities of images, equal ones being looked at once."""
        vit = self.load()
        own = {one.digest: one for one in inputs}
        images = {**own, **{one.digest: one for one in outputs}}
        found = self._kept(vit.key, images)
        new = [one for one in images.values() if one.digest not in found]
        for first in range(0, len(new), self._batch_size):
            found.update(self._looked_at(vit, new[first : first + self._batch_size]))
        if self._cache is not None:
            for digest in own:
                self._cache.keep((vit.key, digest), found[digest])
        return found

    def _loaded(self) -> LoadedVit:
        options = self._options
        if self._cache is None:
            return load_vit(options)
        return self._cache.networks.get(options, lambda: load_vit(options))

    def _kept(self, key: str, images: Iterable[bytes]) -> dict[bytes, Similarity]:
        if self._cache is None:
            return {}
        looked_up = ((digest, self._cache.find((key, digest))) for digest in images)
        return {digest: kept for digest, kept in looked_up if kept is not None}

    def _looked_at(self, vit: LoadedVit, batch: list[Squashed]) -> dict[bytes, Similarity]:
        self.forwards += len(batch)
        pixels = np.stack([one.pixels for one in batch])
        made = self_similarities(vit, self._options.layer, pixels)
        return {one.digest: similarity for one, similarity in zip(batch, made, strict=True)}
