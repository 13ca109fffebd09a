"""Resize images on our side as a model's own processor would, and put them into an address."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from PIL import Image

from echo_hf.engines.base import ImageRef
from echo_hf.errors import EngineError, ImageError, unknown
from echo_hf.images.loader import format_of, upright_rgb

HIGHEST_ASPECT_RATIO = 200
TAKEN = ("PNG", "JPEG", "GIF", "WEBP")  # by every server

Size = tuple[int, int]


class Budget(NamedTuple):
    """Both sides become multiples of the factor, and the pixels stay within the bounds."""

    factor: int
    min_pixels: int
    max_pixels: int | None


# The budgets are those of the published checkpoints' own preprocessor settings.
FAMILIES: Mapping[str, Budget] = {
    "qwen2_vl": Budget(28, 4 * 28**2, 16_384 * 28**2),
    "qwen2_5_vl": Budget(28, 4 * 28**2, 16_384 * 28**2),
    "qwen3_vl": Budget(32, 64 * 32**2, 16_384 * 32**2),
}
ANY_SIZE = Budget(1, 1, None)


def budget_of(
    family: str | None,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
    *,
    place: str = "",
) -> Budget:
    if family is not None and family not in FAMILIES:
        raise EngineError(unknown("family", family, FAMILIES, place))
    own = ANY_SIZE if family is None else FAMILIES[family]
    least = own.min_pixels if min_pixels is None else min_pixels
    most = own.max_pixels if max_pixels is None else max_pixels
    if least < 1 or (most is not None and most < max(least, own.factor**2)):
        raise EngineError(
            f"no image has min_pixels {least!r} and max_pixels {most!r}: expected 1 or more, and "
            f"a maximum of at least the minimum and one patch of {own.factor**2} pixels"
        )
    return Budget(own.factor, least, most)


def fitted(size: Size, budget: Budget) -> Size:
    """The size in which an image is sent: the one that the family's own processor would choose."""
    if budget == ANY_SIZE:
        return size
    factor, area = budget.factor, size[0] * size[1]
    most = math.inf if budget.max_pixels is None else budget.max_pixels
    # To the nearest multiple, a half to the even one: as the families' processors round.
    width, height = (round(side / factor) * factor for side in size)
    if width * height > most:
        shrink = math.sqrt(area / most)
        width, height = (max(1, math.floor(side / shrink / factor)) * factor for side in size)
    elif width * height < budget.min_pixels:
        grow = math.sqrt(budget.min_pixels / area)
        width, height = (math.ceil(side * grow / factor) * factor for side in size)
    # Rounding may lengthen what was just short enough, and a server would refuse that.
    is_narrow = any(max(one) > HIGHEST_ASPECT_RATIO * min(one) for one in (size, (width, height)))
    if is_narrow or not budget.min_pixels <= width * height <= most:
        raise ImageError(
            f"an image of {size[0]} x {size[1]} pixels has no size between min_pixels "
            f"{budget.min_pixels} and max_pixels {budget.max_pixels} in steps of {factor}, or one "
            f"side more than {HIGHEST_ASPECT_RATIO} times the other: crop it, or allow more pixels"
        )
    return width, height


def sent_reference(reference: ImageRef, budget: Budget = ANY_SIZE) -> Image.Image:
    if reference.file is None:
        raise ImageError(f"image {reference.sha256!r} has no file: run `collect` to fetch it")
    image = upright_rgb(reference.file, reference.sha256)
    size = fitted(image.size, budget)
    # Resampled as the families' own processors do.
    return image if size == image.size else image.resize(size, Image.Resampling.BICUBIC)


def data_url(reference: ImageRef, budget: Budget | None) -> str:
    """An image as an address: its own bytes without a budget, where every server takes them."""
    sent = sent_reference(reference, budget or ANY_SIZE)
    data = reference.file.read_bytes() if budget is None and reference.file is not None else b""
    if (kind := format_of(data)) not in TAKEN:
        buffer, kind = io.BytesIO(), "PNG"
        sent.save(buffer, kind, compress_level=1)  # it travels once
        data = buffer.getvalue()
    return f"data:image/{str(kind).lower()};base64,{base64.b64encode(data).decode()}"


def image_part(reference: ImageRef, budget: Budget | None) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_url(reference, budget)}}
