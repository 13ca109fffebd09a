"""The image store: each image once, as its original bytes, under their sha256."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from echo_hf._infra.atomic import replace_file
from echo_hf._infra.regular_file import read_regular
from echo_hf.config.collection import MAX_IMAGE_BYTES as MAX_IMAGE_BYTES
from echo_hf.config.collection import MAX_IMAGE_PIXELS as MAX_IMAGE_PIXELS
from echo_hf.errors import ImageError
from echo_hf.images.loader import FORMATS as FORMATS
from echo_hf.images.loader import open_image, take_turns

DIGEST_PATTERN = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class ImageStore:
    root: Path

    def put(self, data: bytes, max_pixels: int = MAX_IMAGE_PIXELS) -> str:
        """Store an image durably, even against power loss."""
        digest = hashlib.sha256(data).hexdigest()
        # What lies here whole has been decoded once.
        if not self._is_stored(digest, len(data)):
            path = self.path(digest)
            check_image(data, max_pixels)
            path.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(path) as partial, partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            # The name of a new file is a part of its folder, and that of a new folder of the root.
            _sync_folder(path.parent)
            _sync_folder(self.root)
        return digest

    def open(self, digest: str) -> bytes:
        try:
            with open(self._file_path(digest), "rb", buffering=0) as file:  # noqa: PTH123 - quicker
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
        """Copy an image from another store, by a hard link where the disk allows it."""
        path, source = self.path(digest), other.path(digest)
        if path.exists() or not source.exists():
            return
        try:
            data = read_regular(source, other.root, max_bytes=MAX_IMAGE_BYTES)
        except OSError as error:
            raise ImageError(f"{str(source)!r} is not read: {error.strerror}") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise ImageError(f"{str(source)!r} has changed: delete it, and fetch it again")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source.resolve(), path)
        except OSError:  # on another disk, or one without hard links
            self.put(data)

    def path(self, digest: str) -> Path:
        return Path(self._file_path(digest))

    def _file_path(self, digest: str) -> str:
        if not DIGEST_PATTERN.fullmatch(digest):
            raise ImageError(f"{digest!r} is not a sha256: expected 64 hexadecimal characters")
        return f"{self.root}/{digest[:2]}/{digest}"

    def _is_stored(self, digest: str, size: int) -> bool:
        try:
            return os.stat(self._file_path(digest)).st_size == size  # noqa: PTH116 - quicker
        except OSError:
            return False


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_image(data: bytes, max_pixels: int = MAX_IMAGE_PIXELS) -> tuple[int, int]:
    """Decode an image whole, and return its size."""
    # One pixel is an image, whatever it is good for.
    opening = open_image(data, max_pixels=max_pixels, min_side=1)
    with opening as image, take_turns(image.size):
        image.load()
        return image.size
