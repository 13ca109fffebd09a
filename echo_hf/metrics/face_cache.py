"""Faces of inputs, kept for the systems that are given the same inputs."""

from __future__ import annotations

from echo_hf.errors import ScoreError
from echo_hf.metrics.face_match import Faces

MOST_BYTES = 2**26
# A key, an entry and two arrays around the numbers: what a picture without faces takes.
OVERHEAD = 512


class FaceCache:
    """What was found in inputs, kept in memory so that each is looked at once for all systems.

    Given to `face_identity` for one system after the other. An input is known by its pixels in
    the order in which they are fed, and by all that decides what is found in them. Boxes and
    embeddings are kept, 2 KB for each face, and no pixel. What no longer fits is looked at anew.

    Args:
        most_bytes: How much is kept at most; 64 MiB are some 25 000 pictures of one face.

    Raises:
        ScoreError: `most_bytes` is no number of bytes.

    Example:
        >>> import numpy as np
        >>> cache = FaceCache(most_bytes=1000)
        >>> nobody = Faces(np.empty((0, 4), np.float32), np.empty((0, 512), np.float32))
        >>> for name in ("first", "second"):
        ...     cache.keep(("pack", name), nobody)
        >>> len(cache), cache.find(("pack", "second")) is None
        (1, True)
    """

    def __init__(self, *, most_bytes: int = MOST_BYTES) -> None:
        if not isinstance(most_bytes, int) or most_bytes < 0:
            raise ScoreError(f"most_bytes is {most_bytes!r}: expected a whole number from 0")
        self._most_bytes = most_bytes
        self._kept: dict[tuple[str, str], Faces] = {}
        self._kept_bytes = 0

    def __len__(self) -> int:
        """How many inputs are kept."""
        return len(self._kept)

    def find(self, key: tuple[str, str]) -> Faces | None:
        """The faces of an input.

        Args:
            key: What decides which are found, and the digest of the input's pixels.

        Returns:
            The faces; null where they are not kept.
        """
        return self._kept.get(key)

    def keep(self, key: tuple[str, str], faces: Faces) -> None:
        """Keeps the faces of an input, if there is room.

        What came first stays: every system has the inputs in the same order, and to make room
        for the last would be to lose each just before it is needed again.

        Args:
            key: As for `find`.
            faces: Its faces.
        """
        size = OVERHEAD + faces.boxes.nbytes + faces.embeddings.nbytes
        if key in self._kept or self._kept_bytes + size > self._most_bytes:
            return
        self._kept[key] = faces
        self._kept_bytes += size
