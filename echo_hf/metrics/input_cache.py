"""What networks see in inputs, kept for the systems that are given the same inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from threading import Lock
from typing import Generic, TypeVar

from echo_hf.errors import ScoreError
from echo_hf.metrics.loaded_once import LoadedOnce

Value = TypeVar("Value")
Network = TypeVar("Network")
# Beside its arrays an entry takes a key, a digest, its place in a dict that has grown just now,
# and what numpy and Python need for each object.
ENTRY_BYTES = 640


class InputCache(ABC, Generic[Network, Value]):
    """Values of inputs up to a number of bytes, and the networks that made them.

    Given to a metric for one system after the other, also from several threads. What came first
    stays: every system has the inputs in the same order, and to make room for the last would be to
    lose each just before it is needed again. All goes when the cache goes.

    Args:
        most_bytes: How much is kept of inputs at most; networks come on top.

    Raises:
        ScoreError: `most_bytes` is no number of bytes.
    """

    def __init__(self, *, most_bytes: int) -> None:
        if not isinstance(most_bytes, int) or most_bytes < 0:
            raise ScoreError(f"most_bytes is {most_bytes!r}: expected a whole number from 0")
        self.networks: LoadedOnce[Network] = LoadedOnce()
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._kept: dict[tuple[str, bytes], Value] = {}
        self._kept_bytes = 0

    def __getstate__(self) -> dict[str, int]:
        """An empty one with the same bound: another process looks at other inputs."""
        return {"most_bytes": self._most_bytes}

    def __setstate__(self, state: dict[str, int]) -> None:
        InputCache.__init__(self, **state)

    def __len__(self) -> int:
        """How many inputs are kept."""
        return len(self._kept)

    @property
    def kept_bytes(self) -> int:
        """How many bytes they take, with all that belongs to them."""
        return self._kept_bytes

    def find(self, key: tuple[str, bytes]) -> Value | None:
        """What is kept of an input.

        Args:
            key: What decides what is seen, one string for all inputs; and the digest of the
                input's pixels.

        Returns:
            What was kept; null where nothing is.
        """
        return self._kept.get(key)

    def keep(self, key: tuple[str, bytes], value: Value) -> None:
        """Keeps what was seen in an input, if there is room.

        Args:
            key: As for `find`.
            value: What was seen; its arrays are copied, since a part of a batch would hold on to
                the whole of it.
        """
        size = ENTRY_BYTES + self._size(value)
        with self._lock:
            if key in self._kept or self._kept_bytes + size > self._most_bytes:
                return
            self._kept[key] = self._copied(value)
            self._kept_bytes += size

    @abstractmethod
    def _size(self, value: Value) -> int:
        """Bytes of its arrays and texts."""

    @abstractmethod
    def _copied(self, value: Value) -> Value:
        """The same, holding on to nothing else."""
