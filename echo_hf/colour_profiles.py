"""Take a picture from the colours that its profile describes to sRGB."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import numpy as np
from PIL import Image, ImageCms

from echo_hf.reasons import PictureNotice

MODES = {"RGB": "RGB", "GRAY": "L", "CMYK": "CMYK"}
LATTICE_SIDE = 17
ROUNDING = 1
INTENT = ImageCms.Intent.RELATIVE_COLORIMETRIC
FLAGS = ImageCms.Flags.BLACKPOINTCOMPENSATION


def to_srgb(picture: Image.Image, profile: bytes) -> tuple[Image.Image, PictureNotice | None]:
    """A picture's colours in sRGB.

    A profile that is sRGB but for rounding changes nothing: what is tagged as what it already is
    keeps its numbers.

    Args:
        picture: A picture in mode RGB, L or CMYK.
        profile: An ICC profile.

    Returns:
        The picture in mode RGB, and a notice where the profile could not be used; the numbers are
        then taken as they are.
    """
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        if MODES.get(source.profile.xcolor_space.strip()) != picture.mode:
            return picture.convert("RGB"), PictureNotice.OTHER_PROFILE
        transform = _transform(source, picture.mode)
        if _is_plain(transform, picture.mode):
            return picture.convert("RGB"), None
        return _applied(transform, picture), None
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return picture.convert("RGB"), PictureNotice.BAD_PROFILE


def _transform(source: ImageCms.ImageCmsProfile, mode: str) -> ImageCms.ImageCmsTransform:
    # The library's table for grey has too few steps: dark levels would be 10 of 255 off.
    flags = FLAGS | ImageCms.Flags.NOOPTIMIZE if mode == "L" else FLAGS
    target = ImageCms.createProfile("sRGB")
    return ImageCms.buildTransform(source, target, mode, "RGB", INTENT, flags)


def _is_plain(transform: ImageCms.ImageCmsTransform, mode: str) -> bool:
    if mode == "CMYK":  # Pillow's own conversion is no measure of ink
        return False
    probe = _probe(mode)
    before, after = (
        np.asarray(one, np.int16) for one in (probe.convert("RGB"), _applied(transform, probe))
    )
    return bool(np.abs(before - after).max() <= ROUNDING)


def _applied(transform: ImageCms.ImageCmsTransform, picture: Image.Image) -> Image.Image:
    shown: Any = ImageCms.applyTransform(picture, transform)
    if not isinstance(shown, Image.Image):
        raise TypeError("the transform gave no picture")
    return shown


@cache
def _probe(mode: str) -> Image.Image:
    if mode == "L":
        return Image.fromarray(np.arange(256, dtype=np.uint8)[None])
    steps = np.linspace(0, 255, LATTICE_SIDE).round().astype(np.uint8)
    lattice = np.stack(np.meshgrid(steps, steps, steps), -1)
    return Image.fromarray(lattice.reshape(LATTICE_SIDE, -1, 3))
