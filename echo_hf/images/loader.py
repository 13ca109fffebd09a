"""Load an image for measuring, judging or a model: upright, in sRGB, flattened."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageCms

from echo_hf.errors import PictureError
from echo_hf.images.decode import BadPictureError, PictureSource, open_picture
from echo_hf.images.store import MOST_BYTES, MOST_PIXELS
from echo_hf.reasons import BadPicture, PictureNotice

MODES = {"RGB": "RGB", "GRAY": "L", "CMYK": "CMYK"}
LATTICE_SIDE = 17
ROUNDING = 1
INTENT = ImageCms.Intent.RELATIVE_COLORIMETRIC
FLAGS = ImageCms.Flags.BLACKPOINTCOMPENSATION


def to_srgb(picture: Image.Image, profile: bytes) -> tuple[Image.Image, PictureNotice | None]:
    """A picture's colours in sRGB."""
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


WHITE = (255, 255, 255)
ORIENTATION = 0x0112
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
LARGEST_16_BIT = 65_535
PHOTOMETRIC, BITS_A_SAMPLE, WHITE_IS_ZERO = 262, 258, 0
SRGB_GAMMA = 1 / 2.2
SRGB_PRIMARIES = (0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06)
TOLERANCE = 0.005
# Pillow hands out a PNG's transparent colour as the file has it, and its pixels in 8 bits.
KEY_STEPS = {"L;2": 85, "L;4": 17}
HIGH_BYTE = "RGB;16B"

Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class LoadedPicture:
    """A picture as it is measured, and what was noticed on the way."""

    image: Image.Image
    notices: frozenset[PictureNotice]


def load_rgb(
    source: PictureSource,
    *,
    colour_management: bool = True,
    background: Colour = WHITE,
    most_pixels: int = MOST_PIXELS,
) -> Image.Image:
    """Loads a picture the one way in which all pictures are loaded."""
    loaded = load_picture(
        source,
        colour_management=colour_management,
        background=background,
        most_pixels=most_pixels,
    )
    return loaded.image


def load_picture(
    source: PictureSource,
    *,
    colour_management: bool = True,
    background: Colour = WHITE,
    most_pixels: int = MOST_PIXELS,
) -> LoadedPicture:
    """`load_rgb`, with what was noticed on the way."""
    notices: set[PictureNotice] = set()
    with open_picture(source, most_pixels=most_pixels) as picture:
        stored = _stored_as(picture)
        if getattr(picture, "is_animated", False):
            notices.add(PictureNotice.ANIMATED)
        picture.load()
        colours, alpha = _separated(picture, stored, notices)
        shown = _in_srgb(picture, colours, colour_management, notices)
        if alpha is not None and alpha.getextrema()[0] != 255:
            notices.add(PictureNotice.TRANSPARENT)
            shown = _over(background, shown, alpha)
        shown = _turned(picture, shown, notices)
    shown.info.clear()
    return LoadedPicture(shown, frozenset(notices))


def _stored_as(picture: Image.Image) -> str:
    tiles = getattr(picture, "tile", None)
    stored = tiles[0].args if tiles else ""
    return stored if isinstance(stored, str) else ""


def _separated(
    picture: Image.Image, stored: str, notices: set[PictureNotice]
) -> tuple[Image.Image, Image.Image | None]:
    """Colours in mode L, RGB, CMYK, or another that Pillow converts; and opacity, if any."""
    mode = picture.mode
    if mode in ("I", "F") or mode.startswith("I;16"):
        notices.add(PictureNotice.SIXTEEN_BITS)
        return _eight_bits(picture), _keyed(picture, stored)
    if ";16" in stored:
        notices.add(PictureNotice.SIXTEEN_BITS)
    if mode in ("P", "PA"):
        full = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
    elif mode in ("La", "RGBa"):  # colours multiplied by their opacity
        full = picture.convert("RGBA" if mode == "RGBa" else "LA")
    else:
        full = picture.convert("L") if mode == "1" else picture
    if full.mode in ("RGBA", "LA"):
        *_, alpha = full.split()
        return full.convert("RGB" if full.mode == "RGBA" else "L"), alpha
    return full, _keyed(picture, stored) if mode in ("1", "L", "RGB") else None


def _eight_bits(picture: Image.Image) -> Image.Image:
    tags: Any = getattr(picture, "tag_v2", {})
    values = np.asarray(picture)
    if picture.mode == "F" or (picture.mode == "I" and tags.get(BITS_A_SAMPLE)):
        raise BadPictureError(BadPicture.UNKNOWN_RANGE, f"pixels of mode {picture.mode!r}")
    # What is left of mode I holds 16 bits in 32: some programs read PNG files so.
    if values.min() < 0 or values.max() > LARGEST_16_BIT:
        raise BadPictureError(
            BadPicture.UNKNOWN_RANGE, f"values from {values.min()} to {values.max()}"
        )
    if tags.get(PHOTOMETRIC) == WHITE_IS_ZERO:
        values = LARGEST_16_BIT - values
    rounded = (values.astype(np.uint32) * 255 + LARGEST_16_BIT // 2) // LARGEST_16_BIT
    return Image.fromarray(rounded.astype(np.uint8))


def _keyed(picture: Image.Image, stored: str) -> Image.Image | None:
    """Opacity of a picture in which one colour stands for transparent."""
    key = picture.info.get("transparency")
    if key is None:
        return None
    scaled = np.asarray(key) * KEY_STEPS.get(stored, 1)
    if stored == HIGH_BYTE:
        scaled = scaled >> 8
    values = np.asarray(picture.convert("L") if picture.mode == "1" else picture)
    hidden = (values.reshape(*values.shape[:2], -1) == scaled.reshape(-1)).all(-1)
    return Image.fromarray(np.where(hidden, 0, 255).astype(np.uint8))


def _in_srgb(
    picture: Image.Image, colours: Image.Image, managed: bool, notices: set[PictureNotice]
) -> Image.Image:
    profile = picture.info.get("icc_profile")
    if not profile:
        if _states_other_colours(picture.info):
            notices.add(PictureNotice.GAMMA_IGNORED)
        return colours.convert("RGB")
    if not managed:
        return colours.convert("RGB")
    shown, notice = to_srgb(colours, profile)
    if notice:
        notices.add(notice)
    return shown


def _states_other_colours(info: dict[Any, Any]) -> bool:
    if "srgb" in info:
        return False
    gamma = info.get("gamma", SRGB_GAMMA)
    primaries = info.get("chromaticity", SRGB_PRIMARIES)
    stated, usual = np.array([gamma, *primaries]), np.array([SRGB_GAMMA, *SRGB_PRIMARIES])
    return not np.allclose(stated, usual, rtol=0, atol=TOLERANCE)


def _over(background: Colour, shown: Image.Image, alpha: Image.Image) -> Image.Image:
    canvas = Image.new("RGB", shown.size, background)
    canvas.paste(shown, mask=alpha)
    return canvas


def _turned(picture: Image.Image, shown: Image.Image, notices: set[PictureNotice]) -> Image.Image:
    try:
        turn = TURNS.get(picture.getexif().get(ORIENTATION, 1))
    except Exception:  # the camera's notes are as hostile as the rest
        notices.add(PictureNotice.BAD_ORIENTATION)
        turn = None
    return shown if turn is None else shown.transpose(turn)


def upright_rgb(file: Path, sha256: str | None = None) -> Image.Image:
    """Decodes a picture by `load_rgb`; the bytes on disk stay as they are."""
    data = _read(file)
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise PictureError(f"picture {sha256!r} has changed on disk: run `collect` again")
    try:
        return load_rgb(data)
    except BadPictureError as error:
        name = f"picture {file.name!r}"
        raise BadPictureError(error.reason, error.detail, name) from None


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
