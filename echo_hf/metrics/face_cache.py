"""Faces of inputs, kept for the systems that are given the same inputs."""

from __future__ import annotations

from echo_hf.metrics.face_match import Faces
from echo_hf.metrics.face_reader import FaceReader
from echo_hf.metrics.input_cache import InputCache

MOST_BYTES = 2**26


class FaceCache(InputCache[FaceReader, Faces]):
    """What was found in inputs, and the networks, so that all systems share both.

    Given to `face_identity` for one system after the other: the networks are loaded once, and look
    at each input once. An input is known by its pixels in the order in which they are fed, and by
    all that decides what is found in them. Boxes and embeddings are kept, 2 KB for each face, and
    no pixel. What no longer fits is looked at anew.

    Args:
        most_bytes: How much is kept of inputs at most; 64 MiB are some 24 000 pictures of one face.

    Raises:
        ScoreError: `most_bytes` is no number of bytes.

    Example:
        >>> import numpy as np
        >>> cache = FaceCache(most_bytes=1000)
        >>> nobody = Faces(np.empty((0, 4), np.float32), np.empty((0, 512), np.float32))
        >>> for name in (b"first", b"second"):
        ...     cache.keep(("pack", name), nobody)
        >>> len(cache), cache.kept_bytes, cache.find(("pack", b"second")) is None
        (1, 640, True)
    """

    def __init__(self, *, most_bytes: int = MOST_BYTES) -> None:
        super().__init__(most_bytes=most_bytes)

    def _size(self, value: Faces) -> int:
        # A text of letters that are not Latin takes up to four bytes for each.
        return value.boxes.nbytes + value.embeddings.nbytes + 4 * len(value.failed)

    def _copied(self, value: Faces) -> Faces:
        return Faces(value.boxes.copy(), value.embeddings.copy(), value.failed)
