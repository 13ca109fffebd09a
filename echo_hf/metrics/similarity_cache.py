"""Self-similarities of inputs, kept for the systems that are given the same inputs."""

from __future__ import annotations

from echo_hf.errors import ScoreError
from echo_hf.metrics.vit_keys import Similarity

MOST_BYTES = 2**28


class SimilarityCache:
    """What a ViT sees in inputs, kept in memory so that each is looked at once for all systems.

    Given to `structure_distance` for one system after the other. An input is known by the pixels
    that the ViT is given, and by all that decides what it makes of them. The self-similarity is
    kept in float32, 155 KB for each input of DINO ViT-S/16 (197 x 197 numbers), and nothing else
    of it. What is kept never grows beyond `most_bytes`: what no longer fits is computed anew.

    Args:
        most_bytes: How much is kept at most; 256 MiB are 1729 inputs of DINO ViT-S/16.

    Raises:
        ScoreError: `most_bytes` is no number of bytes.

    Example:
        >>> import numpy as np
        >>> cache = SimilarityCache(most_bytes=1000)
        >>> for name in (b"first", b"second"):
        ...     cache.keep(("vit", name), np.eye(12, dtype=np.float32))
        >>> len(cache), cache.kept_bytes, cache.find(("vit", b"second")) is None
        (1, 576, True)
    """

    def __init__(self, *, most_bytes: int = MOST_BYTES) -> None:
        if not isinstance(most_bytes, int) or most_bytes < 0:
            raise ScoreError(f"most_bytes is {most_bytes!r}: expected a whole number from 0")
        self._most_bytes = most_bytes
        self._kept: dict[tuple[str, bytes], Similarity] = {}
        self._kept_bytes = 0

    def __len__(self) -> int:
        """How many inputs are kept."""
        return len(self._kept)

    @property
    def kept_bytes(self) -> int:
        """How many bytes they take."""
        return self._kept_bytes

    def find(self, key: tuple[str, bytes]) -> Similarity | None:
        """The self-similarity of an input.

        Args:
            key: What decides numbers, and the digest of the input's pixels.

        Returns:
            Array [token, token]; null where it is not kept.
        """
        return self._kept.get(key)

    def keep(self, key: tuple[str, bytes], similarity: Similarity) -> None:
        """Keeps a self-similarity, if there is room.

        What came first stays: every system has the inputs in the same order, and to make room
        for the last would be to lose each just before it is needed again.

        Args:
            key: As for `find`.
            similarity: Array [token, token].
        """
        if key in self._kept or self._kept_bytes + similarity.nbytes > self._most_bytes:
            return
        # A copy: a part of a batch would hold on to the whole of it.
        self._kept[key] = similarity.copy()
        self._kept_bytes += similarity.nbytes
