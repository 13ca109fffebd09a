"""Images live once, as the bytes they were, under the sha256 of those bytes."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from echo_hf._infra.atomic import replaced_file
from echo_hf._infra.regular_file import read_regular
from echo_hf.config.collection import MOST_BYTES as MOST_BYTES
from echo_hf.config.collection import MOST_PIXELS as MOST_PIXELS
from echo_hf.errors import ImageError
from echo_hf.images.loader import FORMATS as FORMATS
from echo_hf.images.loader import in_turn, open_image

DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class ImageStore:
    root: Path

    def put(self, data: bytes, most_pixels: int = MOST_PIXELS) -> str:
        """Keeps an image: when this returns it survives a machine that loses its power."""
        digest = hashlib.sha256(data).hexdigest()
        # What lies here whole has been decoded once.
        if not self._holds(digest, len(data)):
            path = self.path(digest)
            check_image(data, most_pixels)
            path.parent.mkdir(parents=True, exist_ok=True)
            with replaced_file(path) as partial, partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            # The name of a new file is a part of its folder, and that of a new folder of the root.
            _sync(path.parent)
            _sync(self.root)
        return digest

    def open(self, digest: str) -> bytes:
        try:
            with open(self._place(digest), "rb", buffering=0) as file:  # noqa: PTH123 - quicker
                data = file.read()
        except FileNotFoundError:
            raise ImageError(
                f"no image {digest!r} in {str(self.root)!r}: run `collect` again to fetch it"
            ) from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise ImageError(
                f"image {digest!r} in {str(self.root)!r} has changed: delete the file and run "
                "`collect` again"
            )
        return data

    def take(self, other: ImageStore, digest: str) -> None:
        """Takes in an image that another store has, by a link where disks allow it."""
        path, there = self.path(digest), other.path(digest)
        if path.exists() or not there.exists():
            return
        try:
            data = read_regular(there, other.root, most_bytes=MOST_BYTES)
        except OSError as error:
            raise ImageError(f"{str(there)!r} is not read: {error.strerror}") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise ImageError(f"{str(there)!r} has changed: delete it, and fetch it again")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(there.resolve(), path)
        except OSError:  # on another disk, or one without hard links
            self.put(data)

    def path(self, digest: str) -> Path:
        return Path(self._place(digest))

    def _place(self, digest: str) -> str:
        if not DIGEST.fullmatch(digest):
            raise ImageError(f"{digest!r} is not a sha256: expected 64 hexadecimal characters")
        return f"{self.root}/{digest[:2]}/{digest}"

    def _holds(self, digest: str, size: int) -> bool:
        try:
            return os.stat(self._place(digest)).st_size == size  # noqa: PTH116 - quicker
        except OSError:
            return False


def _sync(folder: Path) -> None:
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def check_image(data: bytes, most_pixels: int = MOST_PIXELS) -> tuple[int, int]:
    """The size of an image, once all of it was decoded."""
    # One pixel is an image, whatever it is good for.
    opened = open_image(data, most_pixels=most_pixels, shortest_side=1)
    with opened as image, in_turn(image.size):
        image.load()
        return image.size
