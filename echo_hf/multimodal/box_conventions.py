"""The ways in which models name places in a picture, and the way back to its own pixels.

Some count the pixels of the picture as it reached them, others thousandths of its sides; one maker
names the rows before the columns. Whoever takes one for the other cuts out the wrong part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

Size = tuple[int, int]
Box = tuple[float, float, float, float]

BEYOND = 0.05  # how far past a side a model may miss, in parts of that side


class Convention(StrEnum):
    """How the four numbers of a box are meant."""

    ABS_RESIZED = "abs_resized"
    REL_1000 = "rel_1000"
    REL_1 = "rel_1"
    REL_1000_YX = "rel_1000_yx"


# How each family of models was trained to answer; whoever asks it for another way gets worse boxes.
OF_FAMILIES: Mapping[str, Convention] = MappingProxyType(
    {
        "qwen2_vl": Convention.REL_1000,
        "qwen2_5_vl": Convention.ABS_RESIZED,
        "qwen3_vl": Convention.REL_1000,
    }
)
# Families whose pictures are resized by no rule that is known here, by the names of their models.
OF_NAMES = (
    (re.compile(r"gemini"), Convention.REL_1000_YX),
    (re.compile(r"glm-?\d(?:\.\d)?v"), Convention.REL_1000),
)
FIRST_CORNER = "the upper left corner, then the lower right one"
WORDS: Mapping[Convention, str] = MappingProxyType(
    {
        Convention.ABS_RESIZED: f"Give each box as [x1, y1, x2, y2] in pixels: {FIRST_CORNER}.",
        Convention.REL_1000: (
            f"Give each box as [x1, y1, x2, y2]: {FIRST_CORNER}, in thousandths of the picture's "
            "width and height, from 0 to 1000."
        ),
        Convention.REL_1: (
            f"Give each box as [x1, y1, x2, y2]: {FIRST_CORNER}, in parts of the picture's width "
            "and height, from 0 to 1."
        ),
        Convention.REL_1000_YX: (
            f"Give each box as [y1, x1, y2, x2]: {FIRST_CORNER}, in thousandths of the picture's "
            "height and width, from 0 to 1000."
        ),
    }
)


def convention_of(family: str | None, model: str = "") -> Convention | None:
    """How a model names places.

    Args:
        family: A key of `echo_hf.engines.families.FAMILIES`, null for none.
        model: The model's name.

    Returns:
        The convention; null for a model of which it is not known.

    Example:
        >>> convention_of("qwen2_5_vl").value, convention_of(None, "google/gemini-3-pro").value
        ('abs_resized', 'rel_1000_yx')
        >>> convention_of(None, "org/some-model") is None
        True
    """
    if family is not None and family in OF_FAMILIES:
        return OF_FAMILIES[family]
    return next((one for words, one in OF_NAMES if words.search(model.lower())), None)


@dataclass(frozen=True, slots=True)
class Frame:
    """How a model names places in one picture.

    Attributes:
        convention: What the numbers mean.
        original: Width and height of the upright picture.
        sent: Width and height in which the model gets it.
    """

    convention: Convention
    original: Size
    sent: Size

    @property
    def extent(self) -> tuple[float, float]:
        """The numbers that stand for the right side and the bottom."""
        if self.convention is Convention.ABS_RESIZED:
            return self.sent
        return (1, 1) if self.convention is Convention.REL_1 else (1000, 1000)

    @property
    def words(self) -> str:
        """How to ask for boxes."""
        asked = WORDS[self.convention]
        if self.convention is not Convention.ABS_RESIZED:
            return asked
        width, height = self.sent
        return f"The picture is {width} pixels wide and {height} pixels high. {asked}"

    def to_original(self, numbers: Sequence[float]) -> Box:
        """Where a box lies in the upright picture; nothing is clipped.

        Args:
            numbers: The four numbers of a box, as the model gave them.

        Returns:
            Left, top, right, bottom in pixels.

        Example:
            >>> phone = Frame(Convention.ABS_RESIZED, (1290, 2796), (672, 1456))
            >>> phone.to_original([0, 728, 672, 1456])
            (0.0, 1398.0, 1290.0, 2796.0)
        """
        left, top, right, bottom = self._across_first(numbers)
        (across, down), (width, height) = self.extent, self.original
        # The product first: a corner maps to the corner, without a rounding error.
        return (
            left * width / across,
            top * height / down,
            right * width / across,
            bottom * height / down,
        )

    def betrayed_by(self, boxes: Iterable[Sequence[float]]) -> str | None:
        """What in an answer cannot have been meant as this convention has it.

        Pixels may miss a side by a little, and anything may be a little below 0; thousandths and
        parts of a side are never past its end. Numbers that are all up to 1 are parts of the sides.

        Args:
            boxes: The numbers of each box.

        Returns:
            The numbers of the box that tells, as text; null when none does.

        Example:
            >>> frame = Frame(Convention.ABS_RESIZED, (500, 500), (504, 504))
            >>> frame.betrayed_by([[10, 10, 90, 90], [100, 20, 900, 480]])
            '[100, 20, 900, 480]'
        """
        every = list(boxes)
        if every and self.convention is not Convention.REL_1 and max(map(max, every)) <= 1:
            return shown(every[0])
        return next((shown(numbers) for numbers in every if self._is_past(numbers)), None)

    def _is_past(self, numbers: Sequence[float]) -> bool:
        slack = BEYOND if self.convention is Convention.ABS_RESIZED else 0
        return any(
            not -BEYOND * end <= at <= (1 + slack) * end
            for at, end in zip(self._across_first(numbers), self.extent * 2, strict=True)
        )

    def _across_first(self, numbers: Sequence[float]) -> Box:
        one, two, three, four = numbers
        if self.convention is Convention.REL_1000_YX:
            return two, one, four, three
        return one, two, three, four


def shown(numbers: Iterable[float]) -> str:
    """Numbers of a box as people read them.

    Example:
        >>> shown((12.0, 3.5, 40, 1e3))
        '[12, 3.5, 40, 1000]'
    """
    return f"[{', '.join(f'{number:g}' for number in numbers)}]"
