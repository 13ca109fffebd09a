"""Decode a picture as a model is to see it: upright, opaque, eight bits of red, green and blue.

The bytes are what strangers posted: their format, length and number of pixels are held to the same
limits as in the picture store, and whatever a decoder trips over is one kind of error.
"""

from __future__ import annotations

import hashlib
import io
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from echo_hf.errors import PictureError
from echo_hf.pictures import FORMATS, MOST_BYTES, MOST_PIXELS

WHITE = (255, 255, 255)
LARGEST_16_BIT = 65_535


def upright_rgb(file: Path, sha256: str | None = None) -> Image.Image:
    """Decodes a picture.

    The camera's orientation is applied, what is transparent shows white, 16 bits are scaled to 8,
    of an animation the first frame is taken. The bytes on disk stay as they are.

    Args:
        file: An encoded picture.
        sha256: Digest that its bytes must have, in hexadecimal; null where any will do.

    Returns:
        The picture in mode RGB.

    Raises:
        PictureError: The file is missing, has other bytes, or is no picture that can be shown.
    """
    data = _read(file)
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise PictureError(f"picture {sha256!r} has changed on disk: run `collect` again")
    try:
        return _decoded(data)
    except PictureError as error:
        raise PictureError(f"picture {file.name!r} {error}") from None
    except Exception as error:  # a decoder fed with hostile bytes raises whatever it trips over
        said = " ".join(str(error).split()) or type(error).__name__
        raise PictureError(f"picture {file.name!r} cannot be decoded: {said}") from error


def _read(file: Path) -> bytes:
    try:
        if file.stat().st_size > MOST_BYTES:
            raise PictureError(f"picture {file.name!r} has more than {MOST_BYTES} bytes")
        return file.read_bytes()
    except OSError as error:
        raise PictureError(
            f"picture {file.name!r} cannot be read, {error.strerror}: run `collect` again to fetch "
            "it"
        ) from None


def _decoded(data: bytes) -> Image.Image:
    with warnings.catch_warnings():
        # Pillow warns at fewer pixels than are allowed here, and about harmless oddities.
        warnings.simplefilter("ignore")
        with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
            width, height = picture.size
            if width * height > MOST_PIXELS:
                raise PictureError(f"is {width} x {height}, expected at most {MOST_PIXELS} pixels")
            return _opaque(_eight_bits(ImageOps.exif_transpose(picture)))


def _eight_bits(picture: Image.Image) -> Image.Image:
    if picture.mode in ("I", "F"):
        raise PictureError(
            f"has pixels of mode {picture.mode!r}, whose black and white nobody defined: expected "
            "8 or 16 bits a channel"
        )
    if not picture.mode.startswith("I;16"):
        return picture
    # Pillow's own conversion cuts the values off at 255.
    values = np.asarray(picture).astype(np.uint32)
    rounded = (values * 255 + LARGEST_16_BIT // 2) // LARGEST_16_BIT
    return Image.fromarray(rounded.astype(np.uint8))


def _opaque(picture: Image.Image) -> Image.Image:
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    shown = Image.new("RGBA", picture.size, WHITE)
    shown.alpha_composite(picture.convert("RGBA"))
    return shown.convert("RGB")
