"""Resize images as a model's own processor would, and encode them as data URLs."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from PIL import Image

from echo_hf.engines.base import ImageRef
from echo_hf.errors import EngineError, ImageError, unknown
from echo_hf.images.loader import PixelSize, detect_format, load_upright

MAX_ASPECT_RATIO = 200
SERVER_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")  # by every server


class PixelBudget(NamedTuple):
    """A resize rule: both sides multiples of `factor`, the pixel count within the bounds."""

    factor: int
    min_pixels: int
    max_pixels: int | None


# The budgets are those of the published checkpoints' own preprocessor settings.
FAMILY_BUDGETS: Mapping[str, PixelBudget] = {
    "qwen2_vl": PixelBudget(28, 4 * 28**2, 16_384 * 28**2),
    "qwen2_5_vl": PixelBudget(28, 4 * 28**2, 16_384 * 28**2),
    "qwen3_vl": PixelBudget(32, 64 * 32**2, 16_384 * 32**2),
}
ANY_SIZE = PixelBudget(1, 1, None)


def pixel_budget(
    family: str | None,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
    *,
    place: str = "",
) -> PixelBudget:
    if family is not None and family not in FAMILY_BUDGETS:
        raise EngineError(unknown("family", family, FAMILY_BUDGETS, place))
    family_budget = ANY_SIZE if family is None else FAMILY_BUDGETS[family]
    lower = family_budget.min_pixels if min_pixels is None else min_pixels
    upper = family_budget.max_pixels if max_pixels is None else max_pixels
    if lower < 1 or (upper is not None and upper < max(lower, family_budget.factor**2)):
        raise EngineError(
            f"no image has min_pixels {lower!r} and max_pixels {upper!r}: expected 1 or more, and "
            f"a maximum of at least the minimum and one patch of {family_budget.factor**2} pixels"
        )
    return PixelBudget(family_budget.factor, lower, upper)


def fit_size(size: PixelSize, budget: PixelBudget) -> PixelSize:
    """Compute the size in which an image is sent, as the family's own processor does."""
    if budget == ANY_SIZE:
        return size
    factor, area = budget.factor, size[0] * size[1]
    max_pixels = math.inf if budget.max_pixels is None else budget.max_pixels
    # To the nearest multiple, a half to the even one: as the families' processors round.
    width, height = (round(side / factor) * factor for side in size)
    if width * height > max_pixels:
        shrink = math.sqrt(area / max_pixels)
        width, height = (max(1, math.floor(side / shrink / factor)) * factor for side in size)
    elif width * height < budget.min_pixels:
        grow = math.sqrt(budget.min_pixels / area)
        width, height = (math.ceil(side * grow / factor) * factor for side in size)
    # Rounding may lengthen what was just short enough, and a server would refuse that.
    is_narrow = any(max(sides) > MAX_ASPECT_RATIO * min(sides) for sides in (size, (width, height)))
    if is_narrow or not budget.min_pixels <= width * height <= max_pixels:
        raise ImageError(
            f"an image of {size[0]} x {size[1]} pixels has no size between min_pixels "
            f"{budget.min_pixels} and max_pixels {budget.max_pixels} in steps of {factor}, or one "
            f"side more than {MAX_ASPECT_RATIO} times the other: crop it, or allow more pixels"
        )
    return width, height


def prepare_image_ref(reference: ImageRef, budget: PixelBudget = ANY_SIZE) -> Image.Image:
    if reference.file is None:
        raise ImageError(f"image {reference.sha256!r} has no file: run `collect` to fetch it")
    image = load_upright(reference.file, reference.sha256)
    size = fit_size(image.size, budget)
    # Resampled as the families' own processors do.
    return image if size == image.size else image.resize(size, Image.Resampling.BICUBIC)


def encode_data_url(reference: ImageRef, budget: PixelBudget | None) -> str:
    """Encode an image as a data URL; without a budget its own bytes, where servers take them."""
    image = prepare_image_ref(reference, budget or ANY_SIZE)
    data = reference.file.read_bytes() if budget is None and reference.file is not None else b""
    if (image_format := detect_format(data)) not in SERVER_FORMATS:
        buffer, image_format = io.BytesIO(), "PNG"
        image.save(buffer, image_format, compress_level=1)  # it travels once
        data = buffer.getvalue()
    return f"data:image/{str(image_format).lower()};base64,{base64.b64encode(data).decode()}"


def build_image_part(reference: ImageRef, budget: PixelBudget | None) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": encode_data_url(reference, budget)}}
