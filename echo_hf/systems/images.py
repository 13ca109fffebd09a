"""Prepare images for systems and check those that come back: sizes, formats, stitching."""

from __future__ import annotations

import base64
import binascii
import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from PIL import Image, ImageChops

from echo_hf.config.systems import FixedSize, OutputSize
from echo_hf.engines.base import ImageRef
from echo_hf.engines.pixels import prepare_image_ref
from echo_hf.errors import ImageError
from echo_hf.images.loader import (
    ORIENTATION_TAG,
    ORIENTATION_TURNS,
    ImageNotice,
    PixelSize,
    load_image,
    load_rgb,
    open_image,
)
from echo_hf.images.store import check_image
from echo_hf.systems.base import GenerationResult, OutcomeStage, Task
from echo_hf.tables import Outcome


def open_inputs(task: Task) -> tuple[Image.Image, ...]:
    return tuple(prepare_image_ref(reference) for reference in task.inputs)


def to_png(image: Image.Image, compress_level: int = -1) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=compress_level)
    return file.getvalue()


DATA_URL = re.compile(r"data:[a-z0-9.+/-]*(?:;[a-z0-9=-]+)*;base64,", re.IGNORECASE)
URL_START = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
MAX_PREFIX = 100


def decode_base64(encoded: str) -> bytes:
    """Decode an image that an answer holds as base64 or as a data URL."""
    if URL_START.match(encoded):
        raise ImageError(
            "the answer names an address instead of an image, and addresses are not followed: "
            "ask the server for base64, mostly by `extra: {response_format: b64_json}`"
        )
    start = DATA_URL.match(encoded[:MAX_PREFIX])
    try:
        return base64.b64decode(encoded[start.end() if start else 0 :], validate=True)
    except (binascii.Error, ValueError):
        raise ImageError("the answer's image is not base64") from None


def add_image(result: GenerationResult, image: bytes | str) -> GenerationResult:
    """Add an image, as bytes or base64, to a result; `failed` where it cannot be used."""
    try:
        encoded = decode_base64(image) if isinstance(image, str) else image
        check_image(encoded)
    except ImageError as error:
        return unusable_image(result, str(error))
    return replace(result, outcome=Outcome.OK, image=encoded, stage=None)


def unusable_image(result: GenerationResult, reason: str) -> GenerationResult:
    return replace(result, outcome=Outcome.FAILED, stage=OutcomeStage.ANSWER, text=reason)


SIZE_TEXT = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})")


def pick_size(
    size: OutputSize, first_input: PixelSize | None, like: Callable[[PixelSize], PixelSize]
) -> PixelSize | None:
    if isinstance(size, FixedSize):
        return size.width, size.height
    return like(first_input) if size == "match_input" and first_input is not None else None


def nearest_size(size: PixelSize, choices: Sequence[PixelSize]) -> PixelSize:
    """Return the choice that is nearest to a size in shape, then in area."""
    width, height = size
    return min(
        choices,
        key=lambda choice: (
            abs(math.log(width * choice[1] / (height * choice[0]))),
            abs(math.log(width * height / (choice[0] * choice[1]))),
        ),
    )


def scale_size(
    size: PixelSize, most_pixels: int, multiple: int = 16, longest: float = math.inf
) -> PixelSize:
    """Return about the largest size in a given shape whose sides are multiples of a number."""
    ratio = min(max(size) / min(size), longest)
    # In units of `multiple`: the short side whose rectangle has just the largest area.
    exact = math.sqrt(most_pixels / ratio) / multiple
    max_area = most_pixels // multiple**2
    sizes: list[PixelSize] = []
    for short in sorted({max(1, math.floor(exact)), math.ceil(exact)}):
        if short**2 <= max_area:
            # The rounded longer side may be too long, or the pixels too many.
            limit = math.floor(min(max_area / short, short * longest))
            sizes.append((max(short, min(round(short * ratio), limit)), short))
    long, short = min(sizes, key=lambda pair: (abs(math.log(pair[0] / pair[1] / ratio)), -pair[1]))
    sides = long * multiple, short * multiple
    return sides if size[0] >= size[1] else sides[::-1]


def read_size(text: str) -> PixelSize:
    match = SIZE_TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size: expected width and height such as '1536x1024'")
    return int(match[1]), int(match[2])


# MIME types that all makers accept, by Pillow's names of formats.
MIME_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}
FILE_SUFFIXES = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}
NOTICE_NAMES = {ImageNotice.TRANSPARENT: "transparent", ImageNotice.SIXTEEN_BITS: "depth"}


@dataclass(frozen=True, slots=True)
class SentInput:
    """An input as a server gets it, and what was changed so that all servers see the same."""

    data: bytes
    mime_type: str
    size: PixelSize
    changed: tuple[str, ...] = ()

    def details(self) -> dict[str, Any]:
        return {"type": self.mime_type, "size": list(self.size), "changed": list(self.changed)}


def prepare_input(reference: ImageRef) -> SentInput:
    opened = prepare_image_ref(reference)
    data = reference.file.read_bytes() if reference.file is not None else b""
    notices = load_image(data).notices
    with open_image(data) as image:
        mime_type, mode = MIME_TYPES.get(image.format or ""), image.mode
        changes = {
            "format": mime_type is None,
            "animated": getattr(image, "is_animated", False),
            "turned": image.getexif().get(ORIENTATION_TAG, 1) in ORIENTATION_TURNS,
            "inks": mode == "CMYK",
            "profile": mode != "CMYK" and image.info.get("icc_profile") and _has_profile(data),
            **{name: notice in notices for notice, name in NOTICE_NAMES.items()},
        }
    changed = tuple(name for name, is_so in changes.items() if is_so)
    if changed or mime_type is None:
        # Compressed little, since it is sent only once.
        return SentInput(to_png(opened, 1), MIME_TYPES["PNG"], opened.size, changed)
    return SentInput(data, mime_type, opened.size)


def _has_profile(data: bytes) -> bool:
    managed, plain = (load_rgb(data, color_management=on) for on in (True, False))
    return ImageChops.difference(managed, plain).getbbox() is not None


def stitch(
    images: Sequence[Image.Image],
    like: Callable[[PixelSize], PixelSize],
    most_pixels: int,
    multiple: int,
) -> Image.Image:
    """Put images side by side, as high as the first is drawn or as `most_pixels` allow."""

    def round_side(side: float) -> int:
        return max(multiple, math.floor(side / multiple + 1e-9) * multiple)

    first_width, first_height = like(images[0].size)
    ratios = [first_width / first_height, *(image.width / image.height for image in images[1:])]
    height = round_side(min(first_height, math.sqrt(most_pixels / sum(ratios))))
    widths = [round_side(ratio * height) for ratio in ratios]
    sheet = Image.new("RGB", (sum(widths), height))
    for x, width, image in zip(accumulate(widths, initial=0), widths, images, strict=False):
        sheet.paste(image.resize((width, height), Image.Resampling.LANCZOS), (x, 0))
    return sheet
