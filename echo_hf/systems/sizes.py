"""From the size that a config asks for to one that a model can draw.

A picture's shape is its width over its height. Shapes are compared by the logarithm of that, so
that twice as wide and twice as high are equally far from a square.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from echo_hf.systems.config import FixedSize, Size

Pixels = tuple[int, int]
WRITTEN = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})")


def chosen_size(
    size: Size, first_input: Pixels | None, like: Callable[[Pixels], Pixels]
) -> Pixels | None:
    """The size to ask a model for.

    Args:
        size: What the config says.
        first_input: Width and height of the upright first input; null without inputs.
        like: From a picture's size to that of the model's sizes which is most like it, such as
            `nearest` or `within`.

    Returns:
        Width and height: a fixed size as it stands, the model's own for the shape of the first
        input; null where the model is to choose, as it is for `match_input` without inputs.

    Example:
        >>> chosen_size("match_input", (3000, 2000), lambda size: within(size, 1_048_576))
        (1248, 832)
        >>> chosen_size("match_input", None, lambda size: size) is None
        True
    """
    if isinstance(size, FixedSize):
        return size.width, size.height
    if size == "match_input" and first_input is not None:
        return like(first_input)
    return None


def nearest(size: Pixels, choices: Sequence[Pixels]) -> Pixels:
    """The choice whose shape is nearest to that of a picture.

    Args:
        size: Width and height of the picture.
        choices: At least one width and height, or the two numbers of a ratio.

    Returns:
        The nearest; of equally near ones that with the nearest number of pixels, then the first.

    Example:
        >>> nearest((3000, 2100), [(1024, 1024), (1536, 1024), (1024, 1536)])
        (1536, 1024)
    """
    return min(choices, key=lambda choice: (_apart(size, choice), _larger(size, choice)))


def within(size: Pixels, most_pixels: int, multiple: int = 16, longest: float = math.inf) -> Pixels:
    """About the largest size in the shape of a picture, with sides that are multiples of a number.

    Args:
        size: Width and height of the picture.
        most_pixels: Width times height at most; at least the square of `multiple`.
        multiple: What both sides are multiples of.
        longest: Most that the longer side has of the shorter; a longer picture is drawn so long.

    Returns:
        Width and height.

    Example:
        >>> within((1290, 2796), 1_048_576)
        (688, 1488)
        >>> within((5000, 100), 1_048_576, longest=3)
        (1728, 576)
    """
    ratio = min(max(size) / min(size), longest)
    exact = math.sqrt(most_pixels / ratio) / multiple
    shorts = {max(1, math.floor(exact)), math.ceil(exact)}
    steps = most_pixels // multiple**2
    sizes = [_steps(short, ratio, steps, longest) for short in sorted(shorts) if short**2 <= steps]
    long, short = min(sizes, key=lambda one: (abs(math.log(one[0] / one[1] / ratio)), -one[1]))
    sides = long * multiple, short * multiple
    return sides if size[0] >= size[1] else sides[::-1]


def written(size: Pixels) -> str:
    """A size as servers read it.

    Example:
        >>> written((1536, 1024))
        '1536x1024'
    """
    return f"{size[0]}x{size[1]}"


def read_size(text: str) -> Pixels:
    """Reads a size as servers write it.

    Args:
        text: Width, an x, height.

    Returns:
        Width and height.

    Raises:
        ValueError: It is no such text.

    Example:
        >>> read_size("1536x1024")
        (1536, 1024)
    """
    found = WRITTEN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no size: expected width and height such as '1536x1024'")
    return int(found[1]), int(found[2])


def _steps(short: int, ratio: float, most: int, longest: float) -> Pixels:
    # Rounding the longer side up may take it over the number of pixels, or make it too long.
    limit = math.floor(min(most / short, short * longest))
    return max(short, min(round(short * ratio), limit)), short


def _apart(one: Pixels, other: Pixels) -> float:
    return abs(math.log(one[0] * other[1] / (one[1] * other[0])))


def _larger(one: Pixels, other: Pixels) -> float:
    return abs(math.log(one[0] * one[1] / (other[0] * other[1])))
