"""Decode images from strangers: within limits, and with a reason for each failure."""

from __future__ import annotations

import io
import stat
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from threading import Lock
from typing import Literal

from PIL import Image, ImageFile

from echo_hf.errors import ImageError
from echo_hf.images.store import FORMATS, MOST_BYTES, MOST_PIXELS
from echo_hf.reasons import BadImage

FIRST_BYTES = 1024
SHORTEST_SIDE = 2
SIGNATURES = {
    "PNG": (b"\x89PNG\r\n\x1a\n",),
    "JPEG": (b"\xff\xd8\xff",),
    "GIF": (b"GIF87a", b"GIF89a"),
    "BMP": (b"BM",),
    "TIFF": (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+"),
}
AVIF_BRANDS = frozenset({b"avif", b"avis"})
PAGE_MARKS = (b"<!doctype html", b"<html", b"<head", b"<body")

ImageSource = bytes | Path | Image.Image


def format_of(data: bytes) -> str | None:
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "WEBP"
    if data[4:8] == b"ftyp":
        end = min(int.from_bytes(data[:4], "big"), FIRST_BYTES)
        # The four bytes after the first brand are a version.
        brands = {data[at : at + 4] for at in (8, *range(16, end, 4))}
        if AVIF_BRANDS & brands:
            return "AVIF"
    return next((name for name, starts in SIGNATURES.items() if data.startswith(starts)), None)


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
    ends_early = ENDS_EARLY.get(format_of(data) or "")
    return ends_early is not None and ends_early(data)


def _tiff_ends_early(data: bytes) -> bool:
    order: Literal["little", "big"] = "little" if data.startswith(b"II") else "big"
    directory = int.from_bytes(data[8:16] if b"+" in data[2:4] else data[4:8], order)
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


class ProcessGuard:
    """A context manager for threads that change a setting of the process while any is inside."""

    def __init__(self, change: Callable[[ExitStack], None]) -> None:
        self._change = change
        self._lock = Lock()
        self._inside = 0
        self._before = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._change(self._before)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._before.close()


def _strictly(before: ExitStack) -> None:
    before.enter_context(warnings.catch_warnings())
    # Pillow warns of oddities that change no pixel, and at fewer pixels than are allowed here.
    warnings.simplefilter("ignore")
    allowed = ImageFile.LOAD_TRUNCATED_IMAGES
    before.callback(setattr, ImageFile, "LOAD_TRUNCATED_IMAGES", allowed)
    ImageFile.LOAD_TRUNCATED_IMAGES = False


# Strict about half images, silent otherwise. What it guards belongs to the process: there is one.
decoding = ProcessGuard(_strictly)


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
    name = f"image {source.name!r}" if isinstance(source, Path) else "image"
    try:
        data = b"" if isinstance(source, Image.Image) else _read(source)
    except BadImageError as error:
        raise BadImageError(error.reason, error.detail, name) from None
    try:
        with decoding, _opened(source, data) as image:
            width, height = image.size
            if width * height > most_pixels:
                detail = f"{width} x {height}, expected at most {most_pixels} pixels"
                raise BadImageError(BadImage.TOO_MANY_PIXELS, detail)
            if min(width, height) < SHORTEST_SIDE:
                detail = f"{width} x {height}, expected {SHORTEST_SIDE} pixels a side"
                raise BadImageError(BadImage.TOO_SMALL, detail)
            yield image
    except BadImageError as error:
        raise BadImageError(error.reason, error.detail, name) from error.__cause__
    except MemoryError:
        raise  # says nothing about the image
    except Exception as error:  # a decoder fed with hostile bytes raises whatever it trips over
        reason = BadImage.DAMAGED
        if isinstance(error, Image.DecompressionBombError):
            reason = BadImage.TOO_MANY_PIXELS
        elif "truncated" in str(error).lower() or is_cut(data):
            reason = BadImage.TRUNCATED
        # Pillow names the object in memory when it cannot tell what the bytes are.
        said = "" if "<_io." in str(error) else " ".join(str(error).split())
        detail = said[:200] or type(error).__name__
        if reason is BadImage.TRUNCATED and data:
            detail = f"{len(data)} bytes: fetch it again"
        raise BadImageError(reason, detail, name) from error


def _read(source: bytes | Path) -> bytes:
    if isinstance(source, bytes):
        return source[: MOST_BYTES + 1]
    if not isinstance(source, Path):
        raise TypeError(f"{type(source).__name__!r} is not an image: expected bytes, Path or Image")
    try:
        if not stat.S_ISREG(source.stat().st_mode):  # to read a pipe is to wait for ever
            raise BadImageError(BadImage.NO_FILE, "not a regular file")
        with source.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadImageError(BadImage.NO_FILE, error.strerror or type(error).__name__) from None


def _opened(source: ImageSource, data: bytes) -> AbstractContextManager[Image.Image]:
    if isinstance(source, Image.Image):
        return nullcontext(source)
    if len(data) > MOST_BYTES:
        raise BadImageError(BadImage.TOO_MANY_BYTES, f"expected at most {MOST_BYTES} bytes")
    if format_of(data) is None:
        said = f"it begins with {data[:16]!r}, expected one of {', '.join(FORMATS)}"
        raise BadImageError(kind_of_other(data), said)
    return Image.open(io.BytesIO(data), formats=FORMATS)
