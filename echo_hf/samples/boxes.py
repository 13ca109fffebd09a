"""From the boxes of an answer to pixels of the image, and crops without changing a pixel."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations
from typing import Any, Literal

from PIL import Image, ImageOps

from echo_hf.engines.base import is_abstaining
from echo_hf.engines.checkpoint import model_family
from echo_hf.engines.pixels import FAMILY_BUDGETS, fit_size, pixel_budget
from echo_hf.errors import ImageError
from echo_hf.images.loader import open_image
from echo_hf.reasons import Notice
from echo_hf.samples.sample import Finding

PixelSize = tuple[int, int]
Box = tuple[float, float, float, float]
PixelBox = tuple[int, int, int, int]
BoxNumbers = Sequence[float]

AUTO: Literal["auto"] = "auto"
MAX_OVERSHOOT = 0.05  # how far past a side a model may miss, in parts of that side
MIN_BOX_SHARE = 0.002  # of the screenshot
MAX_BOX_SHARE = 0.95
DUPLICATE_OVERLAP = 0.9  # intersection over union of two boxes around one image
MAX_OVERLAP = 0.1  # of the smaller of two boxes
ROUNDING_PIXELS = 0.5  # pixels that are no more than rounding
# What does not keep a screenshot from being cut: it is mended.
REPAIRED_NOTICES = frozenset({Notice.CLAMPED_BOX, Notice.DUPLICATE_BOX})
# Modes that a PNG holds as they are.
PNG_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "I;16"})
UNDEFINED_MODES = frozenset({"I", "F"})  # nobody says what their black and white are
PNG_COMPRESSION = 6
ORIENTATION_TAG, SIDEWAYS_ORIENTATIONS = 0x0112, frozenset({5, 6, 7, 8})


class Convention(StrEnum):
    ABS_RESIZED = "abs_resized"
    REL_1000 = "rel_1000"
    REL_1 = "rel_1"
    REL_1000_YX = "rel_1000_yx"


ASSUMED = Convention.REL_1000  # the one that no resizing disturbs
# How each family of models was trained to answer; whoever asks it for another way gets worse boxes.
# By what their makers say (`docs/how-to/check_engine.md` has the sources):
CONVENTION_BY_FAMILY = {
    "qwen2_vl": Convention.REL_1000,  # also UI-TARS
    "qwen2_5_vl": Convention.ABS_RESIZED,  # also UI-TARS-1.5
    "qwen3_vl": Convention.REL_1000,
}
# Families whose images are resized by no rule that is known here, by the names of their models.
# Nothing was found in writing of Gemma, Kimi-VL, Llama 4 and MiMo-VL: they are asked in the way
# that is assumed, and nothing is cut by what they answer before somebody settles it.
CONVENTION_BY_NAME = {
    re.compile(r"gemini"): Convention.REL_1000_YX,
    re.compile(r"glm-?\d(?:\.\d)?v"): Convention.REL_1000,
    re.compile(r"intern[-_]?vl"): Convention.REL_1000,
    re.compile(r"minicpm[-_]?[vo]"): Convention.REL_1000,
}
CORNERS_TEXT = ": the upper left corner, then the lower right one"
XY_TEXT, YX_TEXT = "Give each box as [x1, y1, x2, y2]", "Give each box as [y1, x1, y2, x2]"
THOUSANDTHS_TEXT = ", in thousandths of the picture's"
BOX_INSTRUCTIONS = {
    Convention.ABS_RESIZED: f"{XY_TEXT} in pixels{CORNERS_TEXT}.",
    Convention.REL_1000: f"{XY_TEXT}{CORNERS_TEXT}{THOUSANDTHS_TEXT} width and height, from 0 to 1000.",
    Convention.REL_1: f"{XY_TEXT}{CORNERS_TEXT}, in parts of the picture's width and height, from 0 to 1.",
    Convention.REL_1000_YX: f"{YX_TEXT}{CORNERS_TEXT}{THOUSANDTHS_TEXT} height and width, from 0 to 1000.",
}


@dataclass(frozen=True, slots=True)
class Frame:
    """What the numbers of an answer stand for: those of an image in the size it was sent."""

    convention: Convention
    original: PixelSize
    sent: PixelSize

    @property
    def extent(self) -> tuple[float, float]:
        """The numbers that stand for the right side and the bottom."""
        if self.convention is Convention.ABS_RESIZED:
            return self.sent
        return (1, 1) if self.convention is Convention.REL_1 else (1000, 1000)

    @property
    def instructions(self) -> str:
        instruction = BOX_INSTRUCTIONS[self.convention]
        if self.convention is not Convention.ABS_RESIZED:
            return instruction
        width, height = self.sent
        return f"The picture is {width} pixels wide and {height} pixels high. {instruction}"

    def to_original(self, numbers: BoxNumbers) -> Box:
        """Where a box lies in the upright image; nothing is clipped."""
        # The product first: a corner maps to the corner, without a rounding error.
        sides = zip(self._put_x_first(numbers), self.original * 2, self.extent * 2, strict=True)
        left, top, right, bottom = (at * size / extent for at, size, extent in sides)
        return left, top, right, bottom

    def find_contradiction(self, boxes: Sequence[BoxNumbers]) -> str | None:
        """What in an answer cannot have been meant as this convention has it."""
        if boxes and self.convention is not Convention.REL_1 and max(map(max, boxes)) <= 1:
            return format_box(boxes[0])
        max_share = 1 + MAX_OVERSHOOT if self.convention is Convention.ABS_RESIZED else 1
        for numbers in boxes:
            pairs = zip(self._put_x_first(numbers), self.extent * 2, strict=True)
            if not all(-MAX_OVERSHOOT * end <= at <= max_share * end for at, end in pairs):
                return format_box(numbers)
        return None

    def _put_x_first(self, numbers: BoxNumbers) -> Box:
        first, second, third, fourth = numbers
        if self.convention is Convention.REL_1000_YX:
            return second, first, fourth, third
        return first, second, third, fourth


@dataclass(frozen=True)
class EngineFrames:
    """How an engine sends images; blind when its model counts pixels of a size nobody knows."""

    convention: Convention
    family: str | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None
    is_assumed: bool = False
    is_blind: bool = False

    def frame(self, size: PixelSize) -> Frame:
        """How places are named in an image."""
        if self.convention is not Convention.ABS_RESIZED:
            return Frame(self.convention, size, size)
        budget = pixel_budget(self.family, self.min_pixels, self.max_pixels)
        return Frame(self.convention, size, fit_size(size, budget))


def choose_engine_frames(
    signature: Mapping[str, Any], convention: str = AUTO, family: str | None = None
) -> EngineFrames:
    """How the engine with this signature sends images and names places in them."""
    if is_abstaining(signature):  # it is sent no image: places are those of the file
        return EngineFrames(Convention.ABS_RESIZED)
    model = str(signature.get("model") or "")
    family = family or model_family(model)
    by_name = (way for pattern, way in CONVENTION_BY_NAME.items() if pattern.search(model.lower()))
    chosen = CONVENTION_BY_FAMILY.get(family or "") or next(by_name, None)
    chosen = chosen if convention == AUTO else Convention(convention)
    rule = signature.get("pixels")
    if isinstance(rule, Mapping):
        rule = [rule.get(name) for name in ("factor", "min_pixels", "max_pixels")]
    if not isinstance(rule, list | tuple) or len(rule) != 3 or None in rule[:2]:
        blind = family is not None and chosen is Convention.ABS_RESIZED
        return EngineFrames(chosen or ASSUMED, is_assumed=chosen is None, is_blind=blind)
    factor, low, high = rule
    # Families of one factor resize alike once the budget is given.
    alike = next((name for name, own in FAMILY_BUDGETS.items() if own.factor == factor), None)
    return EngineFrames(chosen or ASSUMED, alike, low, high, chosen is None)


def format_box(numbers: Iterable[float]) -> str:
    return f"[{', '.join(f'{number:g}' for number in numbers)}]"


@dataclass
class CheckedBoxes:
    inputs: list[PixelBox] = field(default_factory=list)
    outputs: list[PixelBox] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """Whether images may be cut by them."""
        return all(notice in REPAIRED_NOTICES for notice, _ in self.findings)


def convert_boxes(
    inputs: Sequence[BoxNumbers], outputs: Sequence[BoxNumbers], frame: Frame
) -> CheckedBoxes:
    """Maps the boxes of an answer to pixels, and checks them."""
    boxes = CheckedBoxes()
    contradiction = frame.find_contradiction([*inputs, *outputs])
    if contradiction is not None:
        boxes.findings.append((Notice.WRONG_CONVENTION, f"{contradiction} in {frame.convention}"))
        return boxes
    for name, raw, placed in (("input", inputs, boxes.inputs), ("output", outputs, boxes.outputs)):
        for number, numbers in enumerate(raw, 1):
            box = _to_pixels(numbers, frame, f"{name} {number}", boxes.findings)
            if box is not None:
                placed.append(box)
        distinct: list[PixelBox] = []
        for box in sort_boxes(placed):
            if any(intersection_over_union(box, other) >= DUPLICATE_OVERLAP for other in distinct):
                boxes.findings.append((Notice.DUPLICATE_BOX, f"{name}: {format_box(box)}"))
            else:
                distinct.append(box)
        placed[:] = distinct
    all_boxes = [*boxes.inputs, *boxes.outputs]
    boxes.findings += [
        (Notice.OVERLAPPING_BOXES, f"{format_box(first)} and {format_box(other)}")
        for first, other in combinations(all_boxes, 2)
        if intersection(first, other) > MAX_OVERLAP * min(area(first), area(other))
    ]
    return boxes


def sort_boxes(boxes: Sequence[PixelBox]) -> list[PixelBox]:
    """Boxes row by row, each row from the left; the order given does not matter."""
    rows: list[list[PixelBox]] = []
    for box in sorted(boxes, key=lambda pixels: (pixels[1], pixels[0], pixels)):
        if rows and (box[1] + box[3]) / 2 < rows[-1][0][3]:
            rows[-1].append(box)
        else:
            rows.append([box])
    return [box for row in rows for box in sorted(row)]


def intersection(box: PixelBox, other: PixelBox) -> int:
    wide = min(box[2], other[2]) - max(box[0], other[0])
    high = min(box[3], other[3]) - max(box[1], other[1])
    return max(wide, 0) * max(high, 0)


def intersection_over_union(box: PixelBox, other: PixelBox) -> float:
    shared = intersection(box, other)
    return shared / (area(box) + area(other) - shared) if shared else 0.0


def area(box: PixelBox) -> int:
    return max(box[2] - box[0], 0) * max(box[3] - box[1], 0)


def _to_pixels(
    numbers: BoxNumbers, frame: Frame, name: str, findings: list[Finding]
) -> PixelBox | None:
    box, (width, height) = frame.to_original(numbers), frame.original
    detail = f"{name}: {format_box(numbers)}"
    clamped = [min(max(at, 0.0), end) for at, end in zip(box, (width, height) * 2, strict=True)]
    left, top, right, bottom = map(round, clamped)
    if right <= left or bottom <= top:
        findings.append((Notice.DEGENERATE_BOX, detail))
        return None
    if any(abs(at - inside) > ROUNDING_PIXELS for at, inside in zip(box, clamped, strict=True)):
        findings.append((Notice.CLAMPED_BOX, detail))
    pixels = (left, top, right, bottom)
    share = area(pixels) / (width * height)
    if share < MIN_BOX_SHARE:
        findings.append((Notice.TINY_BOX, detail))
    if share > MAX_BOX_SHARE:
        findings.append((Notice.WHOLE_BOX, detail))
    return pixels


def read_upright_size(data: bytes) -> PixelSize:
    with open_image(data) as image:
        if image.getexif().get(ORIENTATION_TAG) not in SIDEWAYS_ORIENTATIONS:
            return image.size
        # Pillow turns those of some formats on decoding, and then tells their size turned.
        return ImageOps.exif_transpose(image).size


def rotate_upright(data: bytes) -> Image.Image:
    """An image as people see it, in its own colors."""
    with open_image(data) as image:
        if image.mode in UNDEFINED_MODES:
            raise ImageError(f"pixels of mode {image.mode!r}: expected 8 or 16 bits a channel")
        oriented = ImageOps.exif_transpose(image)
        if oriented.mode in PNG_MODES:
            return oriented
        # The profile of another kind of colors says nothing about these.
        converted = oriented.convert("RGB")
        converted.info.pop("icc_profile", None)
        return converted


def cut_box(image: Image.Image, box: PixelBox, inset: int = 0) -> bytes:
    left, top, right, bottom = get_inner_box(box, inset)
    if not (0 <= left < right <= image.width and 0 <= top < bottom <= image.height):
        raise ImageError(
            f"box {list(box)!r} with an inset of {inset} leaves nothing of an image of "
            f"{image.width} x {image.height} pixels: expected a box inside it"
        )
    part = image.crop((left, top, right, bottom))
    # A profile and a transparent color are part of how it looks; the rest is nobody's business.
    part.info = {
        name: part.info[name] for name in ("icc_profile", "transparency") if name in part.info
    }
    buffer = io.BytesIO()
    part.save(buffer, "PNG", compress_level=PNG_COMPRESSION)
    return buffer.getvalue()


def get_inner_box(box: PixelBox, inset: int) -> PixelBox:
    left, top, right, bottom = box
    return left + inset, top + inset, right - inset, bottom - inset
