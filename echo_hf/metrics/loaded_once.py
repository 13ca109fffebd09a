"""Networks that several accumulators share, so that each is loaded once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

from echo_hf.errors import ScoreError

Network = TypeVar("Network")
# A network may take a large part of a GPU: those of two settings side by side, and no more.
MOST = 2


class LoadedOnce(Generic[Network]):
    """Loads a network when it is first asked for, and gives the same from then on.

    What cannot be loaded is remembered as well: a Hub that is out of reach is asked once. At most
    two are kept, those that were asked for last; they go when this goes. One thread loads at a
    time, and others that want the same wait for it.

    Example:
        >>> networks, loads = LoadedOnce(), []
        >>> for name in ("vit", "vit", "dino"):
        ...     _ = networks.get(name, lambda: loads.append(1) or object())
        >>> len(loads), len(networks)
        (2, 2)
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: dict[Hashable, Network | ScoreError] = {}

    def __len__(self) -> int:
        """How many outcomes are kept."""
        return len(self._found)

    def get(self, key: Hashable, load: Callable[[], Network]) -> Network:
        """The network, loaded the first time.

        Args:
            key: All that decides which network it is.
            load: Loads it.

        Returns:
            The network.

        Raises:
            ScoreError: It cannot be loaded, now or when it was tried.
        """
        with self._lock:
            found = self._found.pop(key, None)
            found = _outcome(load) if found is None else found
            self._found[key] = found
            while len(self._found) > MOST:
                del self._found[next(iter(self._found))]
        if isinstance(found, ScoreError):
            # A copy: an error that is raised holds on to all that the raising function had.
            raise type(found)(str(found)) from found.__cause__
        return found


def _outcome(load: Callable[[], Network]) -> Network | ScoreError:
    try:
        return load()
    except ScoreError as error:
        return _without_frames(error)


def _without_frames(error: ScoreError) -> ScoreError:
    """The error's words and cause, without what its functions held, such as half a network."""
    kept = type(error)(str(error))
    cause = error.__cause__
    kept.__cause__ = cause.with_traceback(None) if cause is not None else None
    return kept
