"""Self-similarities of inputs, kept for the systems that are given the same inputs."""

from __future__ import annotations

from echo_hf.metrics.input_cache import InputCache
from echo_hf.metrics.vit_keys import Similarity
from echo_hf.metrics.vit_loading import LoadedVit

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

    Example:
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
