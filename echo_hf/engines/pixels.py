"""Resize images on our side as a model's own processor would, and map coordinates back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from echo_hf.engines.base import ImageRef
from echo_hf.engines.checkpoint import ANY_SIZE, Budget, budget_of
from echo_hf.errors import ImageError
from echo_hf.images.loader import upright_rgb

HIGHEST_ASPECT_RATIO = 200

Size = tuple[int, int]
Point = tuple[float, float]
Box = tuple[float, float, float, float]


def fitted(
    size: Size,
    *,
    family: str | None,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
) -> Size:
    """The size in which an image is sent: the one that the family's own processor would choose."""
    budget = budget_of(family, min_pixels, max_pixels)
    if budget == ANY_SIZE:
        return size
    _check_shape(size, size)
    width, height = _resized(size, budget)
    # Rounding may lengthen what was just short enough, and a server would refuse that.
    _check_shape(size, (width, height))
    most = math.inf if budget.max_pixels is None else budget.max_pixels
    if not budget.min_pixels <= width * height <= most:
        raise ImageError(
            f"{_shown(size)} has no size between min_pixels {budget.min_pixels} and max_pixels "
            f"{budget.max_pixels} in steps of {budget.factor}: allow a wider range"
        )
    return width, height


@dataclass(frozen=True, slots=True, eq=False)
class SentImage:
    image: Image.Image
    original_size: Size

    @property
    def size(self) -> Size:
        return self.image.size

    @property
    def scale(self) -> tuple[float, float]:
        """Original pixels in one sent pixel, across and down; the two differ a little."""
        return self.original_size[0] / self.size[0], self.original_size[1] / self.size[1]

    def to_original_point(self, point: Point) -> Point:
        """Where a point of the sent image lies in the upright original; nothing is clipped."""
        # The product first: a corner maps to the corner, without a rounding error.
        x, y = (
            value * original / sent
            for value, original, sent in zip(point, self.original_size, self.size, strict=True)
        )
        return x, y

    def to_original(self, box: Box) -> Box:
        """Where a box of the sent image lies in the upright original; nothing is clipped."""
        return (*self.to_original_point(box[:2]), *self.to_original_point(box[2:]))


def sent_image(
    file: Path,
    *,
    family: str | None,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
    sha256: str | None = None,
) -> SentImage:
    image = upright_rgb(file, sha256)
    size = fitted(image.size, family=family, min_pixels=min_pixels, max_pixels=max_pixels)
    # Resampled as the families' own processors do.
    sent = image if size == image.size else image.resize(size, Image.Resampling.BICUBIC)
    return SentImage(sent, image.size)


def sent_reference(
    reference: ImageRef,
    *,
    family: str | None,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
) -> SentImage:
    """`sent_image` for an image in a message, whose bytes must have its digest."""
    if reference.file is None:
        raise ImageError(f"image {reference.sha256!r} has no file: run `collect` to fetch it")
    return sent_image(
        reference.file,
        family=family,
        min_pixels=min_pixels,
        max_pixels=max_pixels,
        sha256=reference.sha256,
    )


def _check_shape(size: Size, sent: Size) -> None:
    if max(sent) > HIGHEST_ASPECT_RATIO * min(sent):
        raise ImageError(
            f"{_shown(size)} has one side more than {HIGHEST_ASPECT_RATIO} times the other: crop it"
        )


def _resized(size: Size, budget: Budget) -> Size:
    factor, area = budget.factor, size[0] * size[1]
    # To the nearest multiple, a half to the even one: as the families' processors round.
    width, height = (round(side / factor) * factor for side in size)
    if budget.max_pixels is not None and width * height > budget.max_pixels:
        shrink = math.sqrt(area / budget.max_pixels)
        width, height = (max(1, math.floor(side / shrink / factor)) * factor for side in size)
    elif width * height < budget.min_pixels:
        grow = math.sqrt(budget.min_pixels / area)
        width, height = (math.ceil(side * grow / factor) * factor for side in size)
    return width, height


def _shown(size: Size) -> str:
    return f"an image of {size[0]} x {size[1]} pixels"
