"""A file that one process at a time holds: the one way in which a run keeps others out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from echo_hf.errors import EchoError, RunError


@contextmanager
def held(path: Path, busy: EchoError, wait_s: float = 0) -> Iterator[None]:
    """Holds a file while a block runs."""
    lock = FileLock(path)
    try:
        lock.acquire(timeout=wait_s)
    except Timeout:
        raise busy from None
    except OSError as error:
        raise RunError(
            f"cannot lock {str(path)!r} ({error.strerror or error}): choose a folder with --runs "
            "that can be written, on a disk that knows locks"
        ) from error
    try:
        yield
    finally:
        lock.release()
