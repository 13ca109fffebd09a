"""Something that is made at its first use, once for all threads, and closed in the end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Lock
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


class Opened(Generic[Thing]):
    """Makes a thing when it is first asked for.

    Args:
        make: Gives a context manager; its value is the thing.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[Thing]]) -> None:
        self._make = make
        self._lock = Lock()
        self._open: tuple[AbstractContextManager[Thing], Thing] | None = None

    def get(self) -> Thing:
        """The thing; made by whichever thread comes first, while the others wait."""
        with self._lock:
            if self._open is None:
                manager = self._make()
                self._open = manager, manager.__enter__()
            return self._open[1]

    def close(self) -> None:
        """Frees the thing, if there is one; the next `get` makes another."""
        with self._lock:
            if self._open is not None:
                manager, _ = self._open
                self._open = None
                manager.__exit__(None, None, None)
