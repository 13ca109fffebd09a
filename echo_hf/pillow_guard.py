"""Pillow's process-wide switches, held as decoding needs them while any thread decodes.

Warnings are filtered, and half pictures accepted, for a whole process at once. Set and reset by
each thread for itself, such a switch stays as the last thread found it, which may be wrong for
good; here the first thread that comes in sets them and the last that leaves puts them back.
"""

from __future__ import annotations

import warnings
from threading import Lock

from PIL import ImageFile


class PillowGuard:
    """A context manager for threads that decode: strict about half pictures, silent otherwise.

    Other libraries like to switch on `ImageFile.LOAD_TRUNCATED_IMAGES`, with which the missing
    part of a picture is grey and nobody is told.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._truncated_allowed = False
        self._filters = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._set()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._put_back()

    def _set(self) -> None:
        self._filters = warnings.catch_warnings()
        self._filters.__enter__()
        # Pillow warns of oddities that change no pixel, and at fewer pixels than are allowed here.
        warnings.simplefilter("ignore")
        self._truncated_allowed = ImageFile.LOAD_TRUNCATED_IMAGES
        ImageFile.LOAD_TRUNCATED_IMAGES = False

    def _put_back(self) -> None:
        ImageFile.LOAD_TRUNCATED_IMAGES = self._truncated_allowed
        self._filters.__exit__(None, None, None)


# What it guards belongs to the process, so there is one of it.
decoding = PillowGuard()
