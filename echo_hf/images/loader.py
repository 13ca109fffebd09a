"""Decode untrusted images, and load them for measuring: upright, in sRGB, flattened."""

from __future__ import annotations

import hashlib
import io
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock, RLock
from typing import Any

import numpy as np
from PIL import Image, ImageCms, ImageFile

from echo_hf._infra.regular_file import open_regular
from echo_hf.config.collection import MAX_IMAGE_BYTES, MAX_IMAGE_PIXELS
from echo_hf.errors import ImageError
from echo_hf.reasons import Reason


class BadImage(Reason):
    """Why something cannot be shown as an image: `BadImageError.reason`."""

    NO_FILE = "no_file", "the file does not exist or cannot be read"
    NOT_AN_IMAGE = "not_a_picture", "it is not an image in a supported format"
    HTML = "html", "it is a web page, whatever its name says"
    SVG = "svg", "it is a drawing in SVG, which has no pixels and may hold scripts"
    TOO_MANY_BYTES = "too_many_bytes", "the file is larger than is read"
    TOO_MANY_PIXELS = "too_many_pixels", "decoded, it would have more pixels than are read"
    TOO_SMALL = "too_small", "one of its sides is a single pixel, as of a tracking pixel"
    TRUNCATED = "truncated", "the file ends before the image does"
    DAMAGED = "damaged", "the bytes of the image contradict its format"
    UNKNOWN_RANGE = "unknown_range", "its numbers do not say which of them are black and white"


class ImageNotice(Reason):
    """Notices about an image that could be loaded."""

    ANIMATED = "animated", "it has several frames; the first is taken"
    TRANSPARENT = "transparent", "it is transparent in places; the background is seen there"
    SIXTEEN_BITS = "sixteen_bits", "it has 16 bits a channel; they are rounded to 8"
    BAD_ORIENTATION = "bad_orientation", "the camera's notes cannot be read; it is not turned"
    BAD_PROFILE = "bad_profile", "its color profile cannot be read; its numbers are taken as sRGB"
    OTHER_PROFILE = "other_profile", "its color profile is for other channels; it is taken as sRGB"
    GAMMA_IGNORED = "gamma_ignored", "without a profile, gamma or primaries not sRGB's are ignored"


# An MPO, two JPEGs in one file, is opened as the JPEG that it begins with.
FORMATS = ("AVIF", "BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")
HEAD_BYTES = 1024
MIN_SIDE = 2
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
PixelSize = tuple[int, int]  # width and height in pixels


def detect_format(data: bytes) -> str | None:
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "WEBP"
    if data[4:8] == b"ftyp":
        end = min(int.from_bytes(data[:4], "big"), HEAD_BYTES)
        # The four bytes after the first brand are a version.
        brands = {data[start : start + 4] for start in (8, *range(16, end, 4))}
        if AVIF_BRANDS & brands:
            return "AVIF"
    return next((name for name, starts in SIGNATURES.items() if data.startswith(starts)), None)


def detect_other_format(data: bytes) -> BadImage:
    # Without the zeros that text in UTF-16 is full of.
    start = data[:HEAD_BYTES].replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").lower()
    if not start.startswith(b"<"):
        return BadImage.NOT_AN_IMAGE
    page = min((start.find(mark) for mark in PAGE_MARKS if mark in start), default=-1)
    drawing = start.find(b"<svg")
    if drawing >= 0 and not 0 <= page < drawing:
        return BadImage.SVG
    return BadImage.HTML if page >= 0 else BadImage.NOT_AN_IMAGE


class ProcessGuard:
    """A context manager for threads that changes a process-wide setting while any is inside."""

    def __init__(self, change: Callable[[ExitStack], None]) -> None:
        self._change = change
        self._lock = Lock()
        self._inside = 0
        self._changes = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._change(self._changes)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._changes.close()


def _set_strict(changes: ExitStack) -> None:
    changes.enter_context(warnings.catch_warnings())
    # Pillow warns of oddities that change no pixel, and at fewer pixels than are allowed here.
    warnings.simplefilter("ignore")
    allowed = ImageFile.LOAD_TRUNCATED_IMAGES
    changes.callback(setattr, ImageFile, "LOAD_TRUNCATED_IMAGES", allowed)
    ImageFile.LOAD_TRUNCATED_IMAGES = False


# Strict about half images, silent otherwise. What it guards belongs to the process: there is one.
decoding = ProcessGuard(_set_strict)


LARGE_PIXELS = 1 << 24
_large_lock = RLock()


def take_turns(size: PixelSize) -> AbstractContextManager[object]:
    """Let the threads of a process decode large images one after the other.

    A few kilobytes may be a sheet of a hundred million pixels, and each thread might hold one.
    """
    return _large_lock if is_large(size) else nullcontext()


def is_large(size: PixelSize) -> bool:
    return size[0] * size[1] > LARGE_PIXELS


class BadImageError(ImageError):
    """An image that cannot be shown, with the reason."""

    def __init__(self, reason: BadImage, detail: str, name: str = "image") -> None:
        super().__init__(f"{name}: {reason.meaning} ({detail})")
        self.reason = reason
        self.detail = detail
        self.name = name

    def __reduce__(self) -> tuple[type[BadImageError], tuple[BadImage, str, str]]:
        return type(self), (self.reason, self.detail, self.name)


@contextmanager
def open_image(
    source: ImageSource, *, max_pixels: int = MAX_IMAGE_PIXELS, min_side: int = MIN_SIDE
) -> Iterator[Image.Image]:
    """Open an image; decoder errors inside the block become `BadImageError`."""
    if not isinstance(source, ImageSource):
        raise TypeError(f"{type(source).__name__!r} is not an image: expected bytes, Path or Image")
    name = f"image {source.name!r}" if isinstance(source, Path) else "image"
    try:
        with decoding, _open_source(source) as image:
            width, height = image.size
            if width * height > max_pixels:
                detail = f"{width} x {height}, expected at most {max_pixels} pixels"
                raise BadImageError(BadImage.TOO_MANY_PIXELS, detail)
            if min(width, height) < min_side:
                detail = f"{width} x {height}, expected {min_side} pixels a side"
                raise BadImageError(BadImage.TOO_SMALL, detail)
            yield image
    except BadImageError as error:
        raise BadImageError(error.reason, error.detail, name) from error.__cause__
    except MemoryError:
        raise  # says nothing about the image
    except Exception as error:  # a decoder fed with hostile bytes raises whatever it trips over
        # Pillow names the object in memory when it cannot tell what the bytes are.
        message = "" if "<_io." in str(error) else " ".join(str(error).split())[:200]
        reason = BadImage.TRUNCATED if "truncated" in message.lower() else BadImage.DAMAGED
        if isinstance(error, Image.DecompressionBombError):
            reason = BadImage.TOO_MANY_PIXELS
        raise BadImageError(reason, message or type(error).__name__, name) from error


def _open_source(source: ImageSource) -> AbstractContextManager[Image.Image]:
    if isinstance(source, Image.Image):
        return nullcontext(source)
    data = source if isinstance(source, bytes) else read_image_file(source)
    if len(data) > MAX_IMAGE_BYTES:
        raise BadImageError(BadImage.TOO_MANY_BYTES, f"expected at most {MAX_IMAGE_BYTES} bytes")
    if detect_format(data) is None:
        message = f"it begins with {data[:16]!r}, expected one of {', '.join(FORMATS)}"
        raise BadImageError(detect_other_format(data), message)
    return Image.open(io.BytesIO(data), formats=FORMATS)


def read_image_file(path: Path) -> bytes:
    """Read a regular file, one byte over the limit at most."""
    try:
        with open_regular(path) as file:
            return file.read(MAX_IMAGE_BYTES + 1)
    except OSError as error:
        raise BadImageError(BadImage.NO_FILE, error.strerror or type(error).__name__) from None


PROFILE_MODES = {"RGB": "RGB", "GRAY": "L", "CMYK": "CMYK"}
LATTICE_SIDE = 17
MAX_ROUNDING = 1
INTENT = ImageCms.Intent.RELATIVE_COLORIMETRIC
FLAGS = ImageCms.Flags.BLACKPOINTCOMPENSATION
WHITE = (255, 255, 255)
ORIENTATION_TAG = 0x0112
ORIENTATION_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
MAX_16_BIT = 65_535
PHOTOMETRIC_TAG, BITS_TAG, WHITE_IS_ZERO = 262, 258, 0
SRGB_GAMMA = 1 / 2.2
SRGB_PRIMARIES = (0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06)
COLOR_TOLERANCE = 0.005
# Pillow hands out a PNG's transparent color as the file has it, and its pixels in 8 bits.
KEY_STEPS = {"L;2": 85, "L;4": 17}
HIGH_BYTE = "RGB;16B"

Color = tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class LoadedImage:
    image: Image.Image
    notices: frozenset[ImageNotice]


def load_rgb(
    source: ImageSource, *, color_management: bool = True, background: Color = WHITE
) -> Image.Image:
    """Load an image in the one way in which all images are loaded."""
    return load_image(source, color_management=color_management, background=background).image


def load_image(
    source: ImageSource, *, color_management: bool = True, background: Color = WHITE
) -> LoadedImage:
    """Load an image as `load_rgb` does, with notices of what was found."""
    notices: set[ImageNotice] = set()
    with open_image(source) as image, take_turns(image.size):
        # How the file has its pixels; gone once they are loaded.
        tiles = getattr(image, "tile", None)
        raw_mode = tiles[0].args if tiles and isinstance(tiles[0].args, str) else ""
        if getattr(image, "is_animated", False):
            notices.add(ImageNotice.ANIMATED)
        image.load()
        colors, alpha = _separate_alpha(image, raw_mode, notices)
        profile = image.info.get("icc_profile")
        if profile and color_management:
            rgb, notice = convert_to_srgb(colors, profile)
            notices |= {notice} if notice else set()
        else:
            # What was opened here is nobody else's: of a large image a copy is not made.
            is_own = colors.mode == "RGB" and not isinstance(source, Image.Image)
            rgb = colors if is_own else colors.convert("RGB")
            if not profile and _has_other_colors(image.info):
                notices.add(ImageNotice.GAMMA_IGNORED)
        if alpha is not None and alpha.getextrema()[0] != 255:
            notices.add(ImageNotice.TRANSPARENT)
            canvas = Image.new("RGB", rgb.size, background)
            canvas.paste(rgb, mask=alpha)
            rgb = canvas
        try:
            turn = ORIENTATION_TURNS.get(image.getexif().get(ORIENTATION_TAG, 1))
        except Exception:  # the camera's notes are as hostile as the rest
            notices.add(ImageNotice.BAD_ORIENTATION)
            turn = None
        rgb = rgb if turn is None else rgb.transpose(turn)
    rgb.info.clear()
    return LoadedImage(rgb, frozenset(notices))


def convert_to_srgb(image: Image.Image, profile: bytes) -> tuple[Image.Image, ImageNotice | None]:
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        if PROFILE_MODES.get(source.profile.xcolor_space.strip()) != image.mode:
            return image.convert("RGB"), ImageNotice.OTHER_PROFILE
        # The library's table for grey has too few steps: dark levels would be 10 of 255 off.
        flags = FLAGS | ImageCms.Flags.NOOPTIMIZE if image.mode == "L" else FLAGS
        target = ImageCms.createProfile("sRGB")
        transform = ImageCms.buildTransform(source, target, image.mode, "RGB", INTENT, flags)
        if image.mode != "CMYK":  # for which Pillow's own conversion is no measure of ink
            probe = _make_probe(image.mode)
            versions = probe.convert("RGB"), _apply_transform(transform, probe)
            plain, managed = (np.asarray(version, np.int16) for version in versions)
            if np.abs(plain - managed).max() <= MAX_ROUNDING:
                return image.convert("RGB"), None
        return _apply_transform(transform, image), None
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return image.convert("RGB"), ImageNotice.BAD_PROFILE


def _apply_transform(transform: ImageCms.ImageCmsTransform, image: Image.Image) -> Image.Image:
    converted: Any = ImageCms.applyTransform(image, transform)
    if not isinstance(converted, Image.Image):
        raise TypeError("the transform gave no image")
    return converted


@cache
def _make_probe(mode: str) -> Image.Image:
    if mode == "L":
        return Image.fromarray(np.arange(256, dtype=np.uint8)[None])
    steps = np.linspace(0, 255, LATTICE_SIDE).round().astype(np.uint8)
    lattice = np.stack(np.meshgrid(steps, steps, steps), -1)
    return Image.fromarray(lattice.reshape(LATTICE_SIDE, -1, 3))


def _separate_alpha(
    image: Image.Image, raw_mode: str, notices: set[ImageNotice]
) -> tuple[Image.Image, Image.Image | None]:
    """Return colors in a convertible mode, and the opacity, if any."""
    mode = image.mode
    if mode in ("I", "F") or mode.startswith("I;16"):
        notices.add(ImageNotice.SIXTEEN_BITS)
        return _reduce_to_8_bits(image), _read_color_key(image, raw_mode)
    if ";16" in raw_mode:
        notices.add(ImageNotice.SIXTEEN_BITS)
    plain_modes = {"1": "L", "La": "LA", "RGBa": "RGBA"}  # the last two are multiplied by opacity
    if mode in ("P", "PA"):
        converted = image.convert("RGBA" if image.has_transparency_data else "RGB")
    else:
        converted = image.convert(plain_modes[mode]) if mode in plain_modes else image
    if converted.mode in ("RGBA", "LA"):
        *_, alpha = converted.split()
        return converted.convert("RGB" if converted.mode == "RGBA" else "L"), alpha
    return converted, _read_color_key(image, raw_mode) if mode in ("1", "L", "RGB") else None


def _reduce_to_8_bits(image: Image.Image) -> Image.Image:
    tags: Any = getattr(image, "tag_v2", {})
    values = np.asarray(image)
    if image.mode == "F" or (image.mode == "I" and tags.get(BITS_TAG)):
        raise BadImageError(BadImage.UNKNOWN_RANGE, f"pixels of mode {image.mode!r}")
    # What is left of mode I holds 16 bits in 32: some programs read PNG files so.
    if values.min() < 0 or values.max() > MAX_16_BIT:
        raise BadImageError(BadImage.UNKNOWN_RANGE, f"values from {values.min()} to {values.max()}")
    if tags.get(PHOTOMETRIC_TAG) == WHITE_IS_ZERO:
        values = MAX_16_BIT - values
    rounded = (values.astype(np.uint32) * 255 + MAX_16_BIT // 2) // MAX_16_BIT
    return Image.fromarray(rounded.astype(np.uint8))


def _read_color_key(image: Image.Image, raw_mode: str) -> Image.Image | None:
    """Return the opacity of an image with one transparent color."""
    key = image.info.get("transparency")
    if key is None:
        return None
    scaled = np.asarray(key) * KEY_STEPS.get(raw_mode, 1) >> (8 if raw_mode == HIGH_BYTE else 0)
    values = np.asarray(image.convert("L") if image.mode == "1" else image)
    is_hidden = (values.reshape(*values.shape[:2], -1) == scaled.reshape(-1)).all(-1)
    return Image.fromarray(np.where(is_hidden, 0, 255).astype(np.uint8))


def _has_other_colors(info: dict[Any, Any]) -> bool:
    if "srgb" in info:
        return False
    gamma, primaries = info.get("gamma", SRGB_GAMMA), info.get("chromaticity", SRGB_PRIMARIES)
    pairs = zip([gamma, *primaries], [SRGB_GAMMA, *SRGB_PRIMARIES], strict=True)
    return not all(math.isclose(*pair, rel_tol=0, abs_tol=COLOR_TOLERANCE) for pair in pairs)


def load_upright(file: Path, sha256: str | None = None) -> Image.Image:
    """Decode a file by `load_rgb`; its bytes on disk stay as they are."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ImageError(
            f"image {file.name!r} cannot be read, {error.strerror}: run `collect` again to fetch it"
        ) from None
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise ImageError(f"image {sha256!r} has changed on disk: run `collect` again")
    try:
        return load_rgb(data)
    except BadImageError as error:
        raise BadImageError(error.reason, error.detail, f"image {file.name!r}") from None
