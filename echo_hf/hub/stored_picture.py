"""Write pictures down so that what is measured later is what was given."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from echo_hf.errors import ScoreError
from echo_hf.load_rgb import LARGEST_16_BIT, ORIENTATION
from echo_hf.open_picture import PictureSource
from echo_hf.pictures import MOST_BYTES

# Colours that no file holds, and what every loader makes of them.
UNWRITABLE = {"HSV": "RGB", "La": "LA", "RGBa": "RGBA"}
PNG_MODES = ("1", "I;16", "L", "LA", "P", "RGB", "RGBA")


def stored_picture(source: PictureSource | None, name: str) -> dict[str, Any] | None:
    """A picture as `datasets` stores it: the bytes of a file, or its path.

    Files stay as they are, also those that Pillow has opened and not decoded yet. What exists in
    memory alone becomes a PNG file, or a TIFF file where PNG has no such colours: both hold every
    pixel, the colour profile and the orientation as they were.

    Args:
        source: Bytes of a file, its path, a picture of Pillow's, or null.
        name: How messages call the picture.

    Returns:
        A dict with `bytes` or an absolute `path`; null for null.

    Raises:
        ScoreError: It is a picture of Pillow's that can be neither decoded nor read again.

    Example:
        >>> stored_picture(b"GIF89a", "predictions[0]")
        {'bytes': b'GIF89a', 'path': None}
    """
    if source is None:
        return None
    if isinstance(source, Path):
        return {"bytes": None, "path": str(source.absolute())}
    data = _encoded(source, name) if isinstance(source, Image.Image) else source
    return {"bytes": data, "path": None}


def _encoded(picture: Image.Image, name: str) -> bytes:
    try:
        return _its_file(picture) or _written(picture)
    except Exception as error:  # a decoder raises whatever it trips over
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise ScoreError(
            f"{name}: a picture of Pillow's that cannot be decoded ({said}): expected a picture, "
            "or the bytes or the path of its file, which is looked at when the metric is computed"
        ) from error


def _its_file(picture: Image.Image) -> bytes | None:
    """The file of a picture that was opened and not decoded, at its first frame."""
    file: Any = getattr(picture, "fp", None)
    # An animation keeps its file open when it is decoded, so that only `_im` tells.
    if file is None or picture._im is not None or picture.tell():
        return None
    before = file.tell()
    file.seek(0)
    data: bytes = file.read(MOST_BYTES + 1)
    file.seek(before)
    return data


def _written(picture: Image.Image) -> bytes:
    shown = _writable(picture)
    png = {"format": "PNG", "compress_level": 1}
    options: dict[str, Any] = png if shown.mode in PNG_MODES else {"format": "TIFF"}
    turned = picture.getexif().get(ORIENTATION)
    if turned is not None:
        options["exif"] = Image.Exif()
        options["exif"][ORIENTATION] = turned
    sink = io.BytesIO()
    shown.save(sink, **options)
    return sink.getvalue()


def _writable(picture: Image.Image) -> Image.Image:
    if picture.mode == "I":
        values = np.asarray(picture)
        fits = values.min() >= 0 and values.max() <= LARGEST_16_BIT
        return picture.convert("I;16") if fits else picture
    return picture.convert(UNWRITABLE[picture.mode]) if picture.mode in UNWRITABLE else picture
