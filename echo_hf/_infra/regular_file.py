"""Read files of strangers: only regular files, inside their folder, of limited size.

To open a pipe or a device is to wait for ever or to read for ever, and a link may lead anywhere.
"""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from pathlib import Path

OPEN_FLAGS = os.O_RDONLY
for name in ("O_BINARY", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"):  # not each system has each
    OPEN_FLAGS |= getattr(os, name, 0)


class RefusedFileError(OSError):
    """A file that is not read; `code` says outside, irregular, too_large or unreadable."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.strerror = code, message


def resolve_inside(path: Path, folder: Path | None) -> Path:
    """Resolve a path and its links inside a folder, or inside huggingface_hub's cache."""
    try:
        target = path.resolve()
        if target.is_symlink():  # from Python 3.13 on, a circle of links stays as it is
            raise RuntimeError
        if folder is not None and not any(
            map(target.is_relative_to, _allowed_roots(folder.resolve()))
        ):
            raise RefusedFileError("outside", "it leads out of its folder")
    except (RuntimeError, ValueError) as error:  # a circle of links, a NUL
        raise RefusedFileError("unreadable", type(error).__name__) from None
    return target


def _allowed_roots(folder: Path) -> list[Path]:
    # In that cache the files of a snapshot are links to what all snapshots of a repository share.
    repository = folder.parents[1] if len(folder.parents) > 1 else folder
    return [folder, repository / "blobs"] if folder.parent.name == "snapshots" else [folder]


def open_regular(
    path: Path, folder: Path | None = None, *, max_bytes: int | None = None
) -> BufferedReader:
    """Open a regular file, inside a folder if given, up to `max_bytes` long."""
    target = resolve_inside(path, folder)
    _check_file(target.stat(), max_bytes)  # some devices do something when they are opened
    descriptor = os.open(target, OPEN_FLAGS)
    try:
        _check_file(os.fstat(descriptor), max_bytes)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check_file(status: os.stat_result, max_bytes: int | None) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise RefusedFileError("irregular", "not a regular file")
    if max_bytes is not None and status.st_size > max_bytes:
        message = f"{status.st_size:,} bytes, expected at most {max_bytes:,}"
        raise RefusedFileError("too_large", message)


def read_regular(path: Path, folder: Path | None = None, *, max_bytes: int) -> bytes:
    """Read a regular file, inside a folder if given."""
    with open_regular(path, folder, max_bytes=max_bytes) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:  # it grows, or says that it is empty
        raise RefusedFileError("too_large", f"more than {max_bytes:,} bytes")
    return data
