"""A picture as a server gets it: its own bytes, or resized by the model's rule."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

from PIL import Image

from echo_hf.engines.base import ImageRef
from echo_hf.engines.families import budget_of, family_of
from echo_hf.engines.openai.options import Options
from echo_hf.engines.pixels import sent_reference

# What every server takes, by the first bytes of a file; in WEBP's, four bytes say its length.
SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


@dataclass(frozen=True, slots=True)
class PixelRule:
    """How pictures are resized before they are sent.

    Attributes:
        family: Whose rule it is, null for none.
        min_pixels: Fewest pixels, null for the family's own.
        max_pixels: Most pixels, null for the family's own.
    """

    family: str | None
    min_pixels: int | None
    max_pixels: int | None

    def describe(self) -> dict[str, Any]:
        """What of it decides an answer."""
        budget = budget_of(self.family, self.min_pixels, self.max_pixels)
        return {
            "factor": budget.factor,
            "min_pixels": budget.min_pixels,
            "max_pixels": budget.max_pixels,
        }


def pixel_rule(options: Options) -> PixelRule | None:
    """How pictures are resized under these options.

    Args:
        options: Options of the engine.

    Returns:
        The rule; null where pictures are sent as they are.

    Raises:
        EngineError: No such family, or no picture has that many pixels.
    """
    budget = (options.min_pixels, options.max_pixels)
    if options.family is None and budget == (None, None):
        return None
    rule = PixelRule(options.family or family_of(options.model), *budget)
    rule.describe()
    return rule


def data_url(reference: ImageRef, rule: PixelRule | None) -> str:
    """A picture as a data URL.

    Args:
        reference: The picture.
        rule: How it is resized; null sends its very bytes, if they are of a format that every
            server takes, else the same pixels as PNG.

    Returns:
        The address.

    Raises:
        PictureError: It is missing, changed, or cannot be decoded.
    """
    sent = sent_reference(
        reference,
        family=rule.family if rule else None,
        min_pixels=rule.min_pixels if rule else None,
        max_pixels=rule.max_pixels if rule else None,
    )
    if rule is None and reference.file is not None:
        data = reference.file.read_bytes()
        mime = mime_type(data)
        if mime is not None:
            return _url(mime, data)
    return _url("image/png", _png(sent.image))


def mime_type(data: bytes) -> str | None:
    """The type of a picture by its content, null for one that not every server takes.

    Args:
        data: Bytes of an encoded picture.

    Returns:
        The type.

    Example:
        >>> mime_type(b"GIF89a..."), mime_type(b"BM6...")
        ('image/gif', None)
    """
    found = next((mime for start, mime in SIGNATURES.items() if data.startswith(start)), None)
    return None if found == "image/webp" and data[8:12] != b"WEBP" else found


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)  # it travels once
    return buffer.getvalue()


def _url(mime: str, data: bytes) -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"
