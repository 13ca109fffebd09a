"""Decode images from strangers, and load them for measuring: upright, in sRGB, flattened."""

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
from echo_hf.config.collection import MOST_BYTES, MOST_PIXELS
from echo_hf.errors import ImageError
from echo_hf.reasons import BadImage, ImageNotice

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


LARGE_PIXELS = 1 << 24
_large = RLock()


def in_turn(size: tuple[int, int]) -> AbstractContextManager[object]:
    """Lets the threads of a process decode large images one after the other.

    A few kilobytes may be a sheet of a hundred million pixels, and each thread might hold one.
    """
    return _large if is_large(size) else nullcontext()


def is_large(size: tuple[int, int]) -> bool:
    return size[0] * size[1] > LARGE_PIXELS


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
    data = source if isinstance(source, bytes) else read_image_file(source)
    if len(data) > MOST_BYTES:
        raise BadImageError(BadImage.TOO_MANY_BYTES, f"expected at most {MOST_BYTES} bytes")
    if format_of(data) is None:
        said = f"it begins with {data[:16]!r}, expected one of {', '.join(FORMATS)}"
        raise BadImageError(kind_of_other(data), said)
    return Image.open(io.BytesIO(data), formats=FORMATS)


def read_image_file(path: Path) -> bytes:
    """The beginning of a regular file, which is all of it unless it is too large."""
    try:
        with open_regular(path) as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadImageError(BadImage.NO_FILE, error.strerror or type(error).__name__) from None


MODES = {"RGB": "RGB", "GRAY": "L", "CMYK": "CMYK"}
LATTICE_SIDE = 17
ROUNDING = 1
INTENT = ImageCms.Intent.RELATIVE_COLORIMETRIC
FLAGS = ImageCms.Flags.BLACKPOINTCOMPENSATION
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
    """Loads an image the one way in which all images are loaded."""
    return load_image(source, color_management=color_management, background=background).image


def load_image(
    source: ImageSource, *, color_management: bool = True, background: Color = WHITE
) -> LoadedImage:
    """`load_rgb`, with what was noticed on the way."""
    notices: set[ImageNotice] = set()
    with open_image(source) as image, in_turn(image.size):
        # How the file has its pixels; gone once they are loaded.
        tiles = getattr(image, "tile", None)
        stored = tiles[0].args if tiles and isinstance(tiles[0].args, str) else ""
        if getattr(image, "is_animated", False):
            notices.add(ImageNotice.ANIMATED)
        image.load()
        colors, alpha = _separated(image, stored, notices)
        profile = image.info.get("icc_profile")
        if profile and color_management:
            shown, notice = to_srgb(colors, profile)
            notices |= {notice} if notice else set()
        else:
            # What was opened here is nobody else's: of a large image a copy is not made.
            is_own = colors.mode == "RGB" and not isinstance(source, Image.Image)
            shown = colors if is_own else colors.convert("RGB")
            if not profile and _states_other_colors(image.info):
                notices.add(ImageNotice.GAMMA_IGNORED)
        if alpha is not None and alpha.getextrema()[0] != 255:
            notices.add(ImageNotice.TRANSPARENT)
            canvas = Image.new("RGB", shown.size, background)
            canvas.paste(shown, mask=alpha)
            shown = canvas
        try:
            turn = TURNS.get(image.getexif().get(ORIENTATION, 1))
        except Exception:  # the camera's notes are as hostile as the rest
            notices.add(ImageNotice.BAD_ORIENTATION)
            turn = None
        shown = shown if turn is None else shown.transpose(turn)
    shown.info.clear()
    return LoadedImage(shown, frozenset(notices))


def to_srgb(image: Image.Image, profile: bytes) -> tuple[Image.Image, ImageNotice | None]:
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        if MODES.get(source.profile.xcolor_space.strip()) != image.mode:
            return image.convert("RGB"), ImageNotice.OTHER_PROFILE
        # The library's table for grey has too few steps: dark levels would be 10 of 255 off.
        flags = FLAGS | ImageCms.Flags.NOOPTIMIZE if image.mode == "L" else FLAGS
        target = ImageCms.createProfile("sRGB")
        transform = ImageCms.buildTransform(source, target, image.mode, "RGB", INTENT, flags)
        if image.mode != "CMYK":  # for which Pillow's own conversion is no measure of ink
            probe = _probe(image.mode)
            both = probe.convert("RGB"), _applied(transform, probe)
            before, after = (np.asarray(one, np.int16) for one in both)
            if np.abs(before - after).max() <= ROUNDING:
                return image.convert("RGB"), None
        return _applied(transform, image), None
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return image.convert("RGB"), ImageNotice.BAD_PROFILE


def _applied(transform: ImageCms.ImageCmsTransform, image: Image.Image) -> Image.Image:
    shown: Any = ImageCms.applyTransform(image, transform)
    if not isinstance(shown, Image.Image):
        raise TypeError("the transform gave no image")
    return shown


@cache
def _probe(mode: str) -> Image.Image:
    if mode == "L":
        return Image.fromarray(np.arange(256, dtype=np.uint8)[None])
    steps = np.linspace(0, 255, LATTICE_SIDE).round().astype(np.uint8)
    lattice = np.stack(np.meshgrid(steps, steps, steps), -1)
    return Image.fromarray(lattice.reshape(LATTICE_SIDE, -1, 3))


def _separated(
    image: Image.Image, stored: str, notices: set[ImageNotice]
) -> tuple[Image.Image, Image.Image | None]:
    """Colors in mode L, RGB, CMYK, or another that Pillow converts; and opacity, if any."""
    mode = image.mode
    if mode in ("I", "F") or mode.startswith("I;16"):
        notices.add(ImageNotice.SIXTEEN_BITS)
        return _eight_bits(image), _keyed(image, stored)
    if ";16" in stored:
        notices.add(ImageNotice.SIXTEEN_BITS)
    shown = {"1": "L", "La": "LA", "RGBa": "RGBA"}  # the last two are multiplied by opacity
    if mode in ("P", "PA"):
        full = image.convert("RGBA" if image.has_transparency_data else "RGB")
    else:
        full = image.convert(shown[mode]) if mode in shown else image
    if full.mode in ("RGBA", "LA"):
        *_, alpha = full.split()
        return full.convert("RGB" if full.mode == "RGBA" else "L"), alpha
    return full, _keyed(image, stored) if mode in ("1", "L", "RGB") else None


def _eight_bits(image: Image.Image) -> Image.Image:
    tags: Any = getattr(image, "tag_v2", {})
    values = np.asarray(image)
    if image.mode == "F" or (image.mode == "I" and tags.get(BITS_A_SAMPLE)):
        raise BadImageError(BadImage.UNKNOWN_RANGE, f"pixels of mode {image.mode!r}")
    # What is left of mode I holds 16 bits in 32: some programs read PNG files so.
    if values.min() < 0 or values.max() > LARGEST_16_BIT:
        raise BadImageError(BadImage.UNKNOWN_RANGE, f"values from {values.min()} to {values.max()}")
    if tags.get(PHOTOMETRIC) == WHITE_IS_ZERO:
        values = LARGEST_16_BIT - values
    rounded = (values.astype(np.uint32) * 255 + LARGEST_16_BIT // 2) // LARGEST_16_BIT
    return Image.fromarray(rounded.astype(np.uint8))


def _keyed(image: Image.Image, stored: str) -> Image.Image | None:
    """Opacity of an image in which one color stands for transparent."""
    key = image.info.get("transparency")
    if key is None:
        return None
    scaled = np.asarray(key) * KEY_STEPS.get(stored, 1) >> (8 if stored == HIGH_BYTE else 0)
    values = np.asarray(image.convert("L") if image.mode == "1" else image)
    hidden = (values.reshape(*values.shape[:2], -1) == scaled.reshape(-1)).all(-1)
    return Image.fromarray(np.where(hidden, 0, 255).astype(np.uint8))


def _states_other_colors(info: dict[Any, Any]) -> bool:
    if "srgb" in info:
        return False
    gamma, primaries = info.get("gamma", SRGB_GAMMA), info.get("chromaticity", SRGB_PRIMARIES)
    stated = zip([gamma, *primaries], [SRGB_GAMMA, *SRGB_PRIMARIES], strict=True)
    return not all(math.isclose(*pair, rel_tol=0, abs_tol=TOLERANCE) for pair in stated)


def upright_rgb(file: Path, sha256: str | None = None) -> Image.Image:
    """Decodes an image by `load_rgb`; the bytes on disk stay as they are."""
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
