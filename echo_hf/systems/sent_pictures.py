"""An input picture as it is sent to a system that is somewhere else."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from PIL import Image, ImageChops

from echo_hf.engines.base import ImageRef
from echo_hf.engines.pixels import sent_reference
from echo_hf.load_rgb import ORIENTATION, TURNS, load_picture, load_rgb
from echo_hf.open_picture import open_picture
from echo_hf.reasons import PictureNotice
from echo_hf.systems.sizes import Pixels

# What all makers take, by Pillow's name of the format.
TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}
ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}
PNG = "image/png"
INK = "CMYK"
NOTICED = {PictureNotice.TRANSPARENT: "transparent", PictureNotice.SIXTEEN_BITS: "depth"}


@dataclass(frozen=True, slots=True)
class SentInput:
    """An input picture on its way.

    Attributes:
        data: Its encoded bytes.
        mime_type: Their type.
        size: Width and height of the upright picture.
        changed: Why it is not sent as the bytes that it was; empty where it is.
    """

    data: bytes
    mime_type: str
    size: Pixels
    changed: tuple[str, ...] = ()

    @property
    def data_url(self) -> str:
        """The picture as an address that holds it."""
        return f"data:{self.mime_type};base64,{base64.b64encode(self.data).decode()}"

    @property
    def ending(self) -> str:
        """What the name of such a file ends in."""
        return ENDINGS[self.mime_type]

    def details(self) -> dict[str, Any]:
        """How it was sent, for the provenance of an output."""
        return {"type": self.mime_type, "size": list(self.size), "changed": list(self.changed)}


def sent_input(reference: ImageRef) -> SentInput:
    """Makes an input ready to be sent.

    Its own bytes go where every reader sees the same in them: PNG, JPEG or WebP, upright, of one
    frame, opaque, of 8 bits, without inks, and without a profile that changes a colour. Else the
    pixels go as PNG which `load_rgb` gives, the same that local systems, metrics and judges see:
    white shows through what is transparent.

    Args:
        reference: The picture.

    Returns:
        The picture, its type, its size, and what was changed.

    Raises:
        PictureError: It is missing, has changed on disk, or cannot be decoded.
    """
    seen = sent_reference(reference, family=None).image
    data = reference.file.read_bytes() if reference.file is not None else b""
    changed = tuple(_changes(data))
    if changed:
        return SentInput(_png(seen), PNG, seen.size, changed)
    with open_picture(data) as picture:
        return SentInput(data, TYPES[picture.format or ""], seen.size)


def _changes(data: bytes) -> Iterator[str]:
    with open_picture(data) as picture:
        if picture.format not in TYPES:
            yield "format"
        if getattr(picture, "is_animated", False):
            yield "animated"
        if picture.getexif().get(ORIENTATION, 1) in TURNS:
            yield "turned"
        if picture.mode == INK:
            yield "inks"
        elif picture.info.get("icc_profile") and _profile_counts(data):
            yield "profile"
    notices = load_picture(data).notices
    yield from (name for notice, name in NOTICED.items() if notice in notices)


def _profile_counts(data: bytes) -> bool:
    managed, plain = (load_rgb(data, colour_management=on) for on in (True, False))
    return ImageChops.difference(managed, plain).getbbox() is not None


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)  # it travels once
    return buffer.getvalue()
