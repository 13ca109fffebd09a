"""Convert the boxes of an answer to pixels of the image, and crop without changing a pixel."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations
from typing import Any, Literal

from PIL import Image, ImageOps

from echo_hf.engines.base import abstains
from echo_hf.engines.checkpoint import model_family
from echo_hf.engines.pixels import FAMILY_BUDGETS, fit_size, pixel_budget
from echo_hf.errors import ImageError
from echo_hf.images.loader import PixelSize, open_image
from echo_hf.reasons import Fact, NoticeReason
from echo_hf.samples.sample import Finding


class BoxNotice(NoticeReason):
    """Notices about a screenshot that is taken apart."""

    WRONG_CONVENTION = "wrong_convention", "coordinates of another convention; nothing is cut out"
    DEGENERATE_BOX = "degenerate_box", "a box has no area in the screenshot; nothing is cut out"
    TINY_BOX = "tiny_box", "a box is too small to hold an image; nothing is cut out"
    WHOLE_BOX = "whole_box", "a box is nearly the whole screenshot; nothing is cut out"
    OVERLAPPING_BOXES = "overlapping_boxes", "two boxes overlap or are equal; nothing is cut out"
    NO_BOX = "no_box", "the model found no image in the screenshot; nothing is cut out"
    DUPLICATE_BOX = "duplicate_box", "two boxes show one image; the first one counts"
    CLAMPED_BOX = "clamped_box", "a box reaches a little past the screenshot; it ends at its edge"
    ASSUMED_CONVENTION = "assumed_convention", "how it names places is not known; it was told a way"
    UNKNOWN_PIXELS = "unknown_pixels", "not asked: the engine lacks max_pixels, by which it counts"
    UNFIT_IMAGE = "unfit_picture", "its shape cannot be sent to the model, which was not asked"
    PROMPT_NOT_READ = "prompt_not_read", "the engine reads no words in images; the prompt stays"
    REPLACED_INPUT = "replaced_input", "inputs in the screenshot replace one posted beside it"


Fact.CHANGES_TASK.mark(BoxNotice.CLAMPED_BOX, BoxNotice.DUPLICATE_BOX, BoxNotice.REPLACED_INPUT)


Box = tuple[float, float, float, float]
PixelBox = tuple[int, int, int, int]
BoxNumbers = Sequence[float]

AUTO: Literal["auto"] = "auto"
MAX_OVERSHOOT = 0.05  # how far a box may lie outside, in parts of that side
MIN_BOX_SHARE = 0.002  # of the screenshot
MAX_BOX_SHARE = 0.95
DUPLICATE_OVERLAP = 0.9  # intersection over union of two boxes around one image
MAX_OVERLAP = 0.1  # of the area of the smaller box
ROUNDING_PIXELS = 0.5  # differences up to this are rounding
# Findings that were repaired: the screenshot is cut all the same.
REPAIRED_NOTICES = frozenset({BoxNotice.CLAMPED_BOX, BoxNotice.DUPLICATE_BOX})
# Modes that PNG stores unchanged.
PNG_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "I;16"})
UNDEFINED_MODES = frozenset({"I", "F"})  # without a defined black and white
PNG_COMPRESSION = 6
ORIENTATION_TAG, SIDEWAYS_ORIENTATIONS = 0x0112, frozenset({5, 6, 7, 8})
CORNERS = ": the upper left corner, then the lower right one"
XY, YX = "Give each box as [x1, y1, x2, y2]", "Give each box as [y1, x1, y2, x2]"
THOUSANDTHS = ", in thousandths of the picture's"


class Convention(StrEnum):
    ABS_RESIZED = "abs_resized"
    REL_1000 = "rel_1000"
    REL_1 = "rel_1"
    REL_1000_YX = "rel_1000_yx"


ASSUMED = Convention.REL_1000  # it does not depend on how an image is resized
# How each family of models was trained to answer; in another convention its boxes get worse.
# By what their makers say (`docs/how-to/check_engine.md` has the sources):
CONVENTION_BY_FAMILY = {
    "qwen2_vl": Convention.REL_1000,  # also UI-TARS
    "qwen2_5_vl": Convention.ABS_RESIZED,  # also UI-TARS-1.5
    "qwen3_vl": Convention.REL_1000,
}
# Families whose resizing rule is not known here, by the names of their models. No source was
# found for Gemma, Kimi-VL, Llama 4 and MiMo-VL: they are asked in the assumed convention, and
# nothing is cut by their answers until a person decides on one.
CONVENTION_BY_NAME = {
    re.compile(r"gemini"): Convention.REL_1000_YX,
    re.compile(r"glm-?\d(?:\.\d)?v"): Convention.REL_1000,
    re.compile(r"intern[-_]?vl"): Convention.REL_1000,
    re.compile(r"minicpm[-_]?[vo]"): Convention.REL_1000,
}
BOX_INSTRUCTIONS = {
    Convention.ABS_RESIZED: f"{XY} in pixels{CORNERS}.",
    Convention.REL_1000: f"{XY}{CORNERS}{THOUSANDTHS} width and height, from 0 to 1000.",
    Convention.REL_1: f"{XY}{CORNERS}, in parts of the picture's width and height, from 0 to 1.",
    Convention.REL_1000_YX: f"{YX}{CORNERS}{THOUSANDTHS} height and width, from 0 to 1000.",
}


@dataclass(frozen=True, slots=True)
class Frame:
    """The reference of an answer's numbers: a convention, and the image in the size it was sent."""

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
        """Return where a box lies in the upright image; nothing is clipped."""
        # Multiply first: then a corner maps exactly to the corner.
        sides = zip(self._put_x_first(numbers), self.original * 2, self.extent * 2, strict=True)
        left, top, right, bottom = (at * size / extent for at, size, extent in sides)
        return left, top, right, bottom

    def find_contradiction(self, boxes: Sequence[BoxNumbers]) -> str | None:
        """Return a box that contradicts the convention; null if none does."""
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
    """How an engine sends images; blind when its model counts pixels of an unknown size."""

    convention: Convention
    family: str | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None
    is_assumed: bool = False
    is_blind: bool = False

    def frame(self, size: PixelSize) -> Frame:
        """Return how places are named in an image of this size."""
        if self.convention is not Convention.ABS_RESIZED:
            return Frame(self.convention, size, size)
        budget = pixel_budget(self.family, self.min_pixels, self.max_pixels)
        return Frame(self.convention, size, fit_size(size, budget))


def choose_engine_frames(
    signature: Mapping[str, Any], convention: str = AUTO, family: str | None = None
) -> EngineFrames:
    """Return how the engine with this signature sends images and names places in them."""
    if abstains(signature):  # it gets no image: places are pixels of the file
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
    factor, min_pixels, max_pixels = rule
    # With a given pixel budget, families with the same factor resize alike.
    alike = next((name for name, own in FAMILY_BUDGETS.items() if own.factor == factor), None)
    return EngineFrames(chosen or ASSUMED, alike, min_pixels, max_pixels, chosen is None)


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
    """Convert the boxes of an answer to pixels, and check them."""
    boxes = CheckedBoxes()
    contradiction = frame.find_contradiction([*inputs, *outputs])
    if contradiction is not None:
        boxes.findings.append(
            (BoxNotice.WRONG_CONVENTION, f"{contradiction} in {frame.convention}")
        )
        return boxes
    for name, raw, placed in (("input", inputs, boxes.inputs), ("output", outputs, boxes.outputs)):
        for number, numbers in enumerate(raw, 1):
            box = _to_pixels(numbers, frame, f"{name} {number}", boxes.findings)
            if box is not None:
                placed.append(box)
        distinct: list[PixelBox] = []
        for box in sort_boxes(placed):
            if any(intersection_over_union(box, other) >= DUPLICATE_OVERLAP for other in distinct):
                boxes.findings.append((BoxNotice.DUPLICATE_BOX, f"{name}: {format_box(box)}"))
            else:
                distinct.append(box)
        placed[:] = distinct
    all_boxes = [*boxes.inputs, *boxes.outputs]
    boxes.findings += [
        (BoxNotice.OVERLAPPING_BOXES, f"{format_box(first)} and {format_box(other)}")
        for first, other in combinations(all_boxes, 2)
        if intersection(first, other) > MAX_OVERLAP * min(area(first), area(other))
    ]
    return boxes


def sort_boxes(boxes: Sequence[PixelBox]) -> list[PixelBox]:
    """Sort boxes row by row, each row from the left, whatever their order."""
    rows: list[list[PixelBox]] = []
    for box in sorted(boxes, key=lambda pixels: (pixels[1], pixels[0], pixels)):
        if rows and (box[1] + box[3]) / 2 < rows[-1][0][3]:
            rows[-1].append(box)
        else:
            rows.append([box])
    return [box for row in rows for box in sorted(row)]


def intersection(box: PixelBox, other: PixelBox) -> int:
    width = min(box[2], other[2]) - max(box[0], other[0])
    height = min(box[3], other[3]) - max(box[1], other[1])
    return max(width, 0) * max(height, 0)


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
        findings.append((BoxNotice.DEGENERATE_BOX, detail))
        return None
    if any(abs(at - inside) > ROUNDING_PIXELS for at, inside in zip(box, clamped, strict=True)):
        findings.append((BoxNotice.CLAMPED_BOX, detail))
    pixels = (left, top, right, bottom)
    share = area(pixels) / (width * height)
    if share < MIN_BOX_SHARE:
        findings.append((BoxNotice.TINY_BOX, detail))
    if share > MAX_BOX_SHARE:
        findings.append((BoxNotice.WHOLE_BOX, detail))
    return pixels


def read_upright_size(data: bytes) -> PixelSize:
    with open_image(data) as image:
        if image.getexif().get(ORIENTATION_TAG) not in SIDEWAYS_ORIENTATIONS:
            return image.size
        # Pillow rotates some formats on decoding; then it reports the rotated size.
        return ImageOps.exif_transpose(image).size


def rotate_upright(data: bytes) -> Image.Image:
    """Load an image as people see it, in its own colors."""
    with open_image(data) as image:
        if image.mode in UNDEFINED_MODES:
            raise ImageError(f"pixels of mode {image.mode!r}: expected 8 or 16 bits a channel")
        oriented = ImageOps.exif_transpose(image)
        if oriented.mode in PNG_MODES:
            return oriented
        # A color profile of another mode does not apply to RGB.
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
    # Keep only what changes how it looks: other metadata may be private.
    names = ("icc_profile", "transparency")
    part.info = {name: part.info[name] for name in names if name in part.info}
    buffer = io.BytesIO()
    part.save(buffer, "PNG", compress_level=PNG_COMPRESSION)
    return buffer.getvalue()


def get_inner_box(box: PixelBox, inset: int) -> PixelBox:
    left, top, right, bottom = box
    return left + inset, top + inset, right - inset, bottom - inset
