"""Decode images from strangers: within limits, and with a reason for each failure."""

from __future__ import annotations

import io
import stat
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from threading import Lock

from PIL import Image, ImageFile

from echo_hf.config.collection import MOST_BYTES, MOST_PIXELS
from echo_hf.errors import ImageError
from echo_hf.reasons import BadImage

# An MPO, two JPEGs in one file, is opened as the JPEG that it begins with.
FORMATS = ("AVIF", "BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")
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
def open_image(
    source: ImageSource, *, most_pixels: int = MOST_PIXELS, shortest_side: int = SHORTEST_SIDE
) -> Iterator[Image.Image]:
    """Opens an image; what its decoder trips over inside the block is a `BadImageError` too."""
    if not isinstance(source, ImageSource):
        raise TypeError(f"{type(source).__name__!r} is not an image: expected bytes, Path or Image")
    name = f"image {source.name!r}" if isinstance(source, Path) else "image"
    try:
        with decoding, _opened(source) as image:
            width, height = image.size
            if width * height > most_pixels:
                detail = f"{width} x {height}, expected at most {most_pixels} pixels"
                raise BadImageError(BadImage.TOO_MANY_PIXELS, detail)
            if min(width, height) < shortest_side:
                detail = f"{width} x {height}, expected {shortest_side} pixels a side"
                raise BadImageError(BadImage.TOO_SMALL, detail)
            yield image
    except BadImageError as error:
        raise BadImageError(error.reason, error.detail, name) from error.__cause__
    except MemoryError:
        raise  # says nothing about the image
    except Exception as error:  # a decoder fed with hostile bytes raises whatever it trips over
        # Pillow names the object in memory when it cannot tell what the bytes are.
        said = "" if "<_io." in str(error) else " ".join(str(error).split())[:200]
        reason = BadImage.TRUNCATED if "truncated" in said.lower() else BadImage.DAMAGED
        if isinstance(error, Image.DecompressionBombError):
            reason = BadImage.TOO_MANY_PIXELS
        raise BadImageError(reason, said or type(error).__name__, name) from error


def _opened(source: ImageSource) -> AbstractContextManager[Image.Image]:
    if isinstance(source, Image.Image):
        return nullcontext(source)
    data = source if isinstance(source, bytes) else _read(source)
    if len(data) > MOST_BYTES:
        raise BadImageError(BadImage.TOO_MANY_BYTES, f"expected at most {MOST_BYTES} bytes")
    if format_of(data) is None:
        said = f"it begins with {data[:16]!r}, expected one of {', '.join(FORMATS)}"
        raise BadImageError(kind_of_other(data), said)
    return Image.open(io.BytesIO(data), formats=FORMATS)


def _read(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # to read a pipe is to wait for ever
            raise BadImageError(BadImage.NO_FILE, "not a regular file")
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadImageError(BadImage.NO_FILE, error.strerror or type(error).__name__) from None
