"""Read a picture that another program left in a folder, and nothing from outside of it."""

from __future__ import annotations

import stat
from pathlib import Path

from echo_hf.errors import PictureError
from echo_hf.pictures import MOST_BYTES, check_picture
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Drawn


class BadFileError(PictureError):
    """A file holds no picture that can be kept.

    Attributes:
        code: `no_picture_file`, `outside`, `no_regular_file` or `bad_picture`.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code

    def drawn(self) -> Drawn:
        """What becomes of the task whose picture this was to be."""
        return Drawn(Outcome.FAILED, stage=OutcomeStage.ANSWER, code=self.code, text=str(self))


def read_picture(path: Path, folder: Path) -> bytes:
    """The bytes of a picture file, after it was decoded once.

    Args:
        path: The file.
        folder: Where it has to lie, links followed.

    Returns:
        Its very bytes.

    Raises:
        BadFileError: It is not there, lies elsewhere, or is no picture within the limits.
    """
    data = read_bytes(path, folder)
    try:
        check_picture(data)
    except PictureError as error:
        raise BadFileError("bad_picture", f"{path.name!r}: {_told(data, error)}") from None
    return data


def read_bytes(path: Path, folder: Path) -> bytes:
    """The bytes of a file in a folder, whatever they are.

    Args:
        path: The file.
        folder: Where it has to lie, links followed.

    Returns:
        Its bytes, and of an oversized one a byte more than a picture may have.

    Raises:
        BadFileError: It is not there, lies elsewhere, or is no regular file.
    """
    place = _inside(path, folder)
    try:
        if not stat.S_ISREG(place.stat().st_mode):  # to read a pipe is to wait for ever
            raise BadFileError("no_regular_file", f"{path.name!r} is no regular file")
        with place.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        said = error.strerror or type(error).__name__
        raise BadFileError("no_picture_file", f"{path.name!r} cannot be read: {said}") from None


def _inside(path: Path, folder: Path) -> Path:
    try:
        place = path.resolve()
    except (OSError, RuntimeError, ValueError):  # a circle of links, a name with a zero byte
        raise BadFileError("no_picture_file", f"{path.name!r} leads nowhere") from None
    if not place.is_relative_to(folder.resolve()):
        raise BadFileError("outside", f"{path.name!r} leads out of its folder")
    return place


def _told(data: bytes, error: PictureError) -> str:
    # Of an oversized file only the beginning was read: the number of its bytes is not known.
    return f"more than {MOST_BYTES} bytes" if len(data) > MOST_BYTES else str(error)
