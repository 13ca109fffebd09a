"""Read files that others may have written: regular files alone, inside their folder, not too large.

To open a pipe or a device is to wait for ever or to read for ever, and a link may lead anywhere.
"""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from pathlib import Path

FLAGS = os.O_RDONLY
for name in ("O_BINARY", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"):  # not each system has each
    FLAGS |= getattr(os, name, 0)


class RefusedFileError(OSError):
    """A file that is not read, and why in a word: outside, irregular, too_large or unreadable."""

    def __init__(self, code: str, said: str) -> None:
        super().__init__(said)
        self.code, self.strerror = code, said


def place_inside(path: Path, folder: Path | None) -> Path:
    """Where a path ends, its links followed; links of huggingface_hub's cache stay in theirs."""
    try:
        place = path.resolve()
        if place.is_symlink():  # from Python 3.13 on, a circle of links stays as it is
            raise RuntimeError
        if folder is not None and not any(map(place.is_relative_to, _roots(folder.resolve()))):
            raise RefusedFileError("outside", "it leads out of its folder")
    except (RuntimeError, ValueError) as error:  # a circle of links, a NUL
        raise RefusedFileError("unreadable", type(error).__name__) from None
    return place


def _roots(folder: Path) -> list[Path]:
    # In that cache the files of a snapshot are links to what all snapshots of a repository share.
    whole = folder.parents[1] if len(folder.parents) > 1 else folder
    return [folder, whole / "blobs"] if folder.parent.name == "snapshots" else [folder]


def open_regular(
    path: Path, folder: Path | None = None, *, most_bytes: int | None = None
) -> BufferedReader:
    """Opens a regular file, inside a folder where one is named; a limit holds for all of it."""
    place = place_inside(path, folder)
    _check(place.stat(), most_bytes)  # some devices do something when they are opened
    number = os.open(place, FLAGS)
    try:
        _check(os.fstat(number), most_bytes)
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def _check(about: os.stat_result, most_bytes: int | None) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise RefusedFileError("irregular", "not a regular file")
    if most_bytes is not None and about.st_size > most_bytes:
        said = f"{about.st_size:,} bytes, expected at most {most_bytes:,}"
        raise RefusedFileError("too_large", said)


def read_regular(path: Path, folder: Path | None = None, *, most_bytes: int) -> bytes:
    """What a regular file holds, inside a folder where one is named."""
    with open_regular(path, folder, most_bytes=most_bytes) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:  # it grows, or says that it is empty
        raise RefusedFileError("too_large", f"more than {most_bytes:,} bytes")
    return data
