"""Decode images from strangers: within limits, and with a reason for each failure."""

from __future__ import annotations

import io
import stat
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Literal

from PIL import Image, ImageFile

from echo_hf.errors import ImageError
from echo_hf.images.store import FORMATS, MOST_BYTES, MOST_PIXELS
from echo_hf.reasons import BadImage

FIRST_BYTES = 1024
SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"BM": "BMP",
    b"II*\x00": "TIFF",
    b"MM\x00*": "TIFF",
    b"II+\x00": "TIFF",
    b"MM\x00+": "TIFF",
}
AVIF_BRANDS = frozenset({b"avif", b"avis"})
PAGE_MARKS = (b"<!doctype html", b"<html", b"<head", b"<body")


def format_of(data: bytes) -> str | None:
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "WEBP"
    if data[4:8] == b"ftyp" and AVIF_BRANDS & _brands(data):
        return "AVIF"
    return next((name for start, name in SIGNATURES.items() if data.startswith(start)), None)


def kind_of_other(data: bytes) -> BadImage:
    # Without the zeros that text in UTF-16 is full of.
    start = data[:FIRST_BYTES].replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").lower()
    if not start.startswith(b"<"):
        return BadImage.NOT_AN_IMAGE
    page = min((start.find(mark) for mark in PAGE_MARKS if mark in start), default=-1)
    drawing = start.find(b"<svg")
    if drawing >= 0 and not 0 <= page < drawing:
        return BadImage.SVG
    return BadImage.HTML if page >= 0 else BadImage.NOT_AN_IMAGE


def is_cut(data: bytes) -> bool:
    """Whether a file that could not be decoded ends too early by its own account."""
    ends_early = ENDS_EARLY.get(format_of(data) or "")
    return ends_early is not None and ends_early(data)


def _brands(data: bytes) -> set[bytes]:
    end = min(int.from_bytes(data[:4], "big"), FIRST_BYTES)
    # The four bytes after the first brand are a version.
    return {data[at : at + 4] for at in (8, *range(16, end, 4))}


def _tiff_ends_early(data: bytes) -> bool:
    order: Literal["little", "big"] = "little" if data.startswith(b"II") else "big"
    large = b"+" in data[2:4]
    directory = int.from_bytes(data[8:16] if large else data[4:8], order)
    return directory + 2 > len(data)


def _avif_ends_early(data: bytes) -> bool:
    at = 0
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if size == 1:
            size = int.from_bytes(data[at + 8 : at + 16], "big")
        if size < 8:  # 0 means the rest of the file
            return False
        at += size
    return at != len(data)


ENDS_EARLY: dict[str, Callable[[bytes], bool]] = {
    "PNG": lambda data: b"IEND\xaeB`\x82" not in data,
    "JPEG": lambda data: b"\xff\xd9" not in data,
    "GIF": lambda data: not data.rstrip(b"\x00").endswith(b";"),
    "WEBP": lambda data: int.from_bytes(data[4:8], "little") + 8 > len(data),
    "BMP": lambda data: int.from_bytes(data[2:6], "little") > len(data),
    "TIFF": _tiff_ends_early,
    "AVIF": _avif_ends_early,
}


class PillowGuard:
    """A context manager for threads that decode: strict about half images, silent otherwise."""

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


SHORTEST_SIDE = 2

ImageSource = bytes | Path | Image.Image


class BadImageError(ImageError):
    """An image cannot be shown, and why."""

    def __init__(self, reason: BadImage, detail: str, name: str = "image") -> None:
        super().__init__(f"{name}: {reason.meaning} ({detail})")
        self.reason = reason
        self.detail = detail
        self.name = name

    def __reduce__(self) -> tuple[type[BadImageError], tuple[BadImage, str, str]]:
        return type(self), (self.reason, self.detail, self.name)


@contextmanager
def open_image(source: ImageSource, *, most_pixels: int = MOST_PIXELS) -> Iterator[Image.Image]:
    """Opens an image; what its decoder trips over inside the block is a `BadImageError` too."""
    name = _named(source) if isinstance(source, Path) else "image"
    data = b"" if isinstance(source, Image.Image) else _read(source)
    try:
        with decoding:
            yield from _opened(source, data, most_pixels)
    except BadImageError as error:
        raise BadImageError(error.reason, error.detail, name) from error.__cause__
    except MemoryError:
        raise  # says nothing about the image
    except Exception as error:  # a decoder fed with hostile bytes raises whatever it trips over
        reason = _why(error, data)
        raise BadImageError(reason, _detail(reason, error, data), name) from error


def _read(source: bytes | Path) -> bytes:
    if isinstance(source, bytes):
        return source[: MOST_BYTES + 1]
    if not isinstance(source, Path):
        raise TypeError(f"{type(source).__name__!r} is not an image: expected bytes, Path or Image")
    try:
        found = source.stat()
        if not stat.S_ISREG(found.st_mode):  # to read a pipe is to wait for ever
            raise BadImageError(BadImage.NO_FILE, "not a regular file", _named(source))
        with source.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        detail = error.strerror or type(error).__name__
        raise BadImageError(BadImage.NO_FILE, detail, _named(source)) from None


def _named(source: Path) -> str:
    return f"image {source.name!r}"


def _opened(source: ImageSource, data: bytes, most_pixels: int) -> Iterator[Image.Image]:
    if isinstance(source, Image.Image):
        _check_size(source, most_pixels)
        yield source
        return
    if len(data) > MOST_BYTES:
        raise BadImageError(BadImage.TOO_MANY_BYTES, f"expected at most {MOST_BYTES} bytes")
    if format_of(data) is None:
        said = f"it begins with {data[:16]!r}, expected one of {', '.join(FORMATS)}"
        raise BadImageError(kind_of_other(data), said)
    with Image.open(io.BytesIO(data), formats=FORMATS) as image:
        _check_size(image, most_pixels)
        yield image


def _check_size(image: Image.Image, most_pixels: int) -> None:
    width, height = image.size
    if width * height > most_pixels:
        raise BadImageError(
            BadImage.TOO_MANY_PIXELS, f"{width} x {height}, expected at most {most_pixels} pixels"
        )
    if min(width, height) < SHORTEST_SIDE:
        raise BadImageError(
            BadImage.TOO_SMALL, f"{width} x {height}, expected {SHORTEST_SIDE} pixels a side"
        )


def _why(error: Exception, data: bytes) -> BadImage:
    if isinstance(error, Image.DecompressionBombError):
        return BadImage.TOO_MANY_PIXELS
    if "truncated" in str(error).lower() or is_cut(data):
        return BadImage.TRUNCATED
    return BadImage.DAMAGED


def _detail(reason: BadImage, error: Exception, data: bytes) -> str:
    if reason is BadImage.TRUNCATED and data:
        return f"{len(data)} bytes: fetch it again"
    # Pillow names the object in memory when it cannot tell what the bytes are.
    said = "" if "<_io." in str(error) else " ".join(str(error).split())
    return said[:200] or type(error).__name__
