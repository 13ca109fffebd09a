"""Several inputs in one picture, for a model that takes a single one.

The first picture sets the height and is sized as the model would size it alone; the others are
scaled to its height and stand to its right, in their order. The whole is brought within a number
of pixels. All sides become multiples of a number, so that the model has nothing left to resize;
for that a picture is narrowed by less than that number of columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from PIL import Image

from echo_hf.systems.sizes import Pixels


def stitched(
    pictures: Sequence[Image.Image],
    like: Callable[[Pixels], Pixels],
    most_pixels: int,
    multiple: int,
) -> Image.Image:
    """Puts pictures beside each other.

    Args:
        pictures: At least one, in mode RGB.
        like: From a picture's size to the one that the model sees it in.
        most_pixels: Width times height of the whole, at most, unless that many pictures do not
            fit into it at their smallest.
        multiple: What all sides are multiples of.

    Returns:
        One picture in mode RGB.
    """
    sizes = stitched_sizes([one.size for one in pictures], like, most_pixels, multiple)
    whole = Image.new("RGB", (sum(width for width, _ in sizes), sizes[0][1]))
    left = 0
    for picture, size in zip(pictures, sizes, strict=True):
        whole.paste(picture.resize(size, Image.Resampling.LANCZOS), (left, 0))
        left += size[0]
    return whole


def stitched_sizes(
    sizes: Sequence[Pixels],
    like: Callable[[Pixels], Pixels],
    most_pixels: int,
    multiple: int,
) -> list[Pixels]:
    """The size of each picture in the whole.

    Args:
        sizes: Width and height of each picture; at least one.
        like: As for `stitched`.
        most_pixels: As for `stitched`.
        multiple: As for `stitched`.

    Returns:
        Widths and heights; all heights are equal.

    Example:
        >>> stitched_sizes([(640, 480), (480, 640)], lambda size: (1184, 880), 1_048_576, 16)
        [(944, 704), (528, 704)]
    """
    first_width, first_height = like(sizes[0])
    ratios = [first_width / first_height, *(width / height for width, height in sizes[1:])]
    height = min(first_height, math.sqrt(most_pixels / sum(ratios)))
    height = _whole(height, multiple)
    return [(_whole(ratio * height, multiple), height) for ratio in ratios]


def _whole(side: float, multiple: int) -> int:
    return max(multiple, math.floor(side / multiple + 1e-9) * multiple)
