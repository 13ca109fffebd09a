"""Open a picture that a stranger made: within limits, and with a reason for each that fails."""

from __future__ import annotations

import io
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

from echo_hf.errors import PictureError
from echo_hf.picture_kinds import format_of, is_cut, kind_of_other
from echo_hf.pictures import FORMATS, MOST_BYTES, MOST_PIXELS
from echo_hf.pillow_guard import decoding
from echo_hf.reasons import BadPicture

SHORTEST_SIDE = 2

PictureSource = bytes | Path | Image.Image


class BadPictureError(PictureError):
    """A picture cannot be shown, and why.

    Attributes:
        reason: The kind of fault.
        detail: What a person needs to see the cause.
        name: How the picture is called in the message.
    """

    def __init__(self, reason: BadPicture, detail: str, name: str = "picture") -> None:
        super().__init__(f"{name}: {reason.meaning} ({detail})")
        self.reason = reason
        self.detail = detail
        self.name = name

    def __reduce__(self) -> tuple[type[BadPictureError], tuple[BadPicture, str, str]]:
        return type(self), (self.reason, self.detail, self.name)


@contextmanager
def open_picture(source: PictureSource, *, most_pixels: int = MOST_PIXELS) -> Iterator[Image.Image]:
    """Opens a picture; what its decoder trips over inside the block is a `BadPictureError` too.

    Args:
        source: Bytes of an encoded picture, its file, or a picture of Pillow's, which is neither
            changed nor closed.
        most_pixels: Width times height that is still opened.

    Yields:
        The picture, with its size known and its pixels not yet decoded.

    Raises:
        BadPictureError: It is no picture, a broken one, or outside the limits.
        TypeError: The source is none of the three.
    """
    name = _named(source) if isinstance(source, Path) else "picture"
    data = b"" if isinstance(source, Image.Image) else _read(source)
    try:
        with decoding:
            yield from _opened(source, data, most_pixels)
    except BadPictureError as error:
        raise BadPictureError(error.reason, error.detail, name) from error.__cause__
    except MemoryError:
        raise  # says nothing about the picture
    except Exception as error:  # a decoder fed with hostile bytes raises whatever it trips over
        reason = _why(error, data)
        raise BadPictureError(reason, _detail(reason, error, data), name) from error


def _read(source: bytes | Path) -> bytes:
    if isinstance(source, bytes):
        return source[: MOST_BYTES + 1]
    if not isinstance(source, Path):
        raise TypeError(f"{type(source).__name__!r} is no picture: expected bytes, Path or Image")
    try:
        found = source.stat()
        if not stat.S_ISREG(found.st_mode):  # to read a pipe is to wait for ever
            raise BadPictureError(BadPicture.NO_FILE, "not a regular file", _named(source))
        with source.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        detail = error.strerror or type(error).__name__
        raise BadPictureError(BadPicture.NO_FILE, detail, _named(source)) from None


def _named(source: Path) -> str:
    return f"picture {source.name!r}"


def _opened(source: PictureSource, data: bytes, most_pixels: int) -> Iterator[Image.Image]:
    if isinstance(source, Image.Image):
        _check_size(source, most_pixels)
        yield source
        return
    if len(data) > MOST_BYTES:
        raise BadPictureError(BadPicture.TOO_MANY_BYTES, f"expected at most {MOST_BYTES} bytes")
    if format_of(data) is None:
        raise BadPictureError(kind_of_other(data), _beginning(data))
    with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
        _check_size(picture, most_pixels)
        yield picture


def _check_size(picture: Image.Image, most_pixels: int) -> None:
    width, height = picture.size
    if width * height > most_pixels:
        raise BadPictureError(
            BadPicture.TOO_MANY_PIXELS, f"{width} x {height}, expected at most {most_pixels} pixels"
        )
    if min(width, height) < SHORTEST_SIDE:
        raise BadPictureError(
            BadPicture.TOO_SMALL, f"{width} x {height}, expected {SHORTEST_SIDE} pixels a side"
        )


def _why(error: Exception, data: bytes) -> BadPicture:
    if isinstance(error, Image.DecompressionBombError):
        return BadPicture.TOO_MANY_PIXELS
    if "truncated" in str(error).lower() or is_cut(data):
        return BadPicture.TRUNCATED
    return BadPicture.DAMAGED


def _detail(reason: BadPicture, error: Exception, data: bytes) -> str:
    if reason is BadPicture.TRUNCATED and data:
        return f"{len(data)} bytes: fetch it again"
    # Pillow names the object in memory when it cannot tell what the bytes are.
    said = "" if "<_io." in str(error) else " ".join(str(error).split())
    return said[:200] or type(error).__name__


def _beginning(data: bytes) -> str:
    return f"it begins with {data[:16]!r}, expected one of {', '.join(FORMATS)}"
