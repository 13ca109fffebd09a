"""The bytes of a picture that a model of this process has drawn."""

from __future__ import annotations

import io

from PIL import Image


def as_png(picture: Image.Image) -> bytes:
    """Encodes a picture without loss.

    Args:
        picture: In any mode that PNG has.

    Returns:
        A PNG file: the same for the same pixels.

    Example:
        >>> as_png(Image.new("RGB", (2, 2)))[1:4]
        b'PNG'
    """
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()
