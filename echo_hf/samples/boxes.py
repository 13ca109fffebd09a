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

from echo_hf.engines.base import abstains
from echo_hf.engines.checkpoint import family_of
from echo_hf.engines.pixels import FAMILIES, budget_of, fitted
from echo_hf.errors import ImageError
from echo_hf.images.loader import open_image
from echo_hf.reasons import Notice
from echo_hf.samples.sample import Finding

Size = tuple[int, int]
Box = tuple[float, float, float, float]
Pixels = tuple[int, int, int, int]
Numbers = Sequence[float]

AUTO: Literal["auto"] = "auto"
BEYOND = 0.05  # how far past a side a model may miss, in parts of that side
SMALLEST_SHARE = 0.002  # of the screenshot
LARGEST_SHARE = 0.95
SAME = 0.9  # intersection over union of two boxes around one image
MOST_SHARED = 0.1  # of the smaller of two boxes
CLAMPED = 0.5  # pixels that are no more than rounding
# What does not keep a screenshot from being cut: it is mended.
MENDED = frozenset({Notice.CLAMPED_BOX, Notice.DUPLICATE_BOX})
# Modes that a PNG holds as they are.
KEPT_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "I;16"})
UNDEFINED_MODES = frozenset({"I", "F"})  # nobody says what their black and white are
COMPRESSION = 6
ORIENTATION, ON_ITS_SIDE = 0x0112, frozenset({5, 6, 7, 8})


class Convention(StrEnum):
    ABS_RESIZED = "abs_resized"
    REL_1000 = "rel_1000"
    REL_1 = "rel_1"
    REL_1000_YX = "rel_1000_yx"


ASSUMED = Convention.REL_1000  # the one that no resizing disturbs
# How each family of models was trained to answer; whoever asks it for another way gets worse boxes.
# By what their makers say (`docs/how-to/check_engine.md` has the sources):
OF_FAMILIES = {
    "qwen2_vl": Convention.REL_1000,  # also UI-TARS
    "qwen2_5_vl": Convention.ABS_RESIZED,  # also UI-TARS-1.5
    "qwen3_vl": Convention.REL_1000,
}
# Families whose images are resized by no rule that is known here, by the names of their models.
# Nothing was found in writing of Gemma, Kimi-VL, Llama 4 and MiMo-VL: they are asked in the way
# that is assumed, and nothing is cut by what they answer before somebody settles it.
OF_NAMES = {
    re.compile(r"gemini"): Convention.REL_1000_YX,
    re.compile(r"glm-?\d(?:\.\d)?v"): Convention.REL_1000,
    re.compile(r"intern[-_]?vl"): Convention.REL_1000,
    re.compile(r"minicpm[-_]?[vo]"): Convention.REL_1000,
}
CORNERS = ": the upper left corner, then the lower right one"
XY, YX = "Give each box as [x1, y1, x2, y2]", "Give each box as [y1, x1, y2, x2]"
THOUSANDTHS = ", in thousandths of the picture's"
WORDS = {
    Convention.ABS_RESIZED: f"{XY} in pixels{CORNERS}.",
    Convention.REL_1000: f"{XY}{CORNERS}{THOUSANDTHS} width and height, from 0 to 1000.",
    Convention.REL_1: f"{XY}{CORNERS}, in parts of the picture's width and height, from 0 to 1.",
    Convention.REL_1000_YX: f"{YX}{CORNERS}{THOUSANDTHS} height and width, from 0 to 1000.",
}


@dataclass(frozen=True, slots=True)
class Frame:
    """What the numbers of an answer stand for: those of an image in the size it was sent."""

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
        asked = WORDS[self.convention]
        if self.convention is not Convention.ABS_RESIZED:
            return asked
        width, height = self.sent
        return f"The picture is {width} pixels wide and {height} pixels high. {asked}"

    def to_original(self, numbers: Numbers) -> Box:
        """Where a box lies in the upright image; nothing is clipped."""
        # The product first: a corner maps to the corner, without a rounding error.
        sides = zip(self._across_first(numbers), self.original * 2, self.extent * 2, strict=True)
        left, top, right, bottom = (at * size / extent for at, size, extent in sides)
        return left, top, right, bottom

    def betrayed_by(self, boxes: Sequence[Numbers]) -> str | None:
        """What in an answer cannot have been meant as this convention has it."""
        if boxes and self.convention is not Convention.REL_1 and max(map(max, boxes)) <= 1:
            return box_text(boxes[0])
        most = 1 + BEYOND if self.convention is Convention.ABS_RESIZED else 1
        for numbers in boxes:
            pairs = zip(self._across_first(numbers), self.extent * 2, strict=True)
            if not all(-BEYOND * end <= at <= most * end for at, end in pairs):
                return box_text(numbers)
        return None

    def _across_first(self, numbers: Numbers) -> Box:
        one, two, three, four = numbers
        if self.convention is Convention.REL_1000_YX:
            return two, one, four, three
        return one, two, three, four


@dataclass(frozen=True)
class EngineFrames:
    """How an engine sends images; blind when its model counts pixels of a size nobody knows."""

    convention: Convention
    family: str | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None
    is_assumed: bool = False
    is_blind: bool = False

    def frame(self, size: Size) -> Frame:
        """How places are named in an image."""
        if self.convention is not Convention.ABS_RESIZED:
            return Frame(self.convention, size, size)
        budget = budget_of(self.family, self.min_pixels, self.max_pixels)
        return Frame(self.convention, size, fitted(size, budget))


def engine_frames(
    signature: Mapping[str, Any], convention: str = AUTO, family: str | None = None
) -> EngineFrames:
    """How the engine with this signature sends images and names places in them."""
    if abstains(signature):  # it is sent no image: places are those of the file
        return EngineFrames(Convention.ABS_RESIZED)
    model = str(signature.get("model") or "")
    family = family or family_of(model)
    by_name = (one for words, one in OF_NAMES.items() if words.search(model.lower()))
    known = OF_FAMILIES.get(family or "") or next(by_name, None)
    known = known if convention == AUTO else Convention(convention)
    rule = signature.get("pixels")
    if isinstance(rule, Mapping):
        rule = [rule.get(name) for name in ("factor", "min_pixels", "max_pixels")]
    if not isinstance(rule, list | tuple) or len(rule) != 3 or None in rule[:2]:
        blind = family is not None and known is Convention.ABS_RESIZED
        return EngineFrames(known or ASSUMED, is_assumed=known is None, is_blind=blind)
    factor, least, most = rule
    # Families of one factor resize alike once the budget is given.
    alike = next((name for name, own in FAMILIES.items() if own.factor == factor), None)
    return EngineFrames(known or ASSUMED, alike, least, most, known is None)


def box_text(numbers: Iterable[float]) -> str:
    return f"[{', '.join(f'{number:g}' for number in numbers)}]"


@dataclass
class Boxes:
    inputs: list[Pixels] = field(default_factory=list)
    outputs: list[Pixels] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """Whether images may be cut by them."""
        return all(notice in MENDED for notice, _ in self.findings)


def checked_boxes(inputs: Sequence[Numbers], outputs: Sequence[Numbers], frame: Frame) -> Boxes:
    """Maps the boxes of an answer to pixels, and checks them."""
    boxes = Boxes()
    betrayal = frame.betrayed_by([*inputs, *outputs])
    if betrayal is not None:
        boxes.findings.append((Notice.WRONG_CONVENTION, f"{betrayal} in {frame.convention}"))
        return boxes
    for name, given, kept in (("input", inputs, boxes.inputs), ("output", outputs, boxes.outputs)):
        for number, numbers in enumerate(given, 1):
            box = _in_image(numbers, frame, f"{name} {number}", boxes.findings)
            if box is not None:
                kept.append(box)
        taken: list[Pixels] = []
        for box in reading_order(kept):
            if any(intersection_over_union(box, one) >= SAME for one in taken):
                boxes.findings.append((Notice.DUPLICATE_BOX, f"{name}: {box_text(box)}"))
            else:
                taken.append(box)
        kept[:] = taken
    every = [*boxes.inputs, *boxes.outputs]
    boxes.findings += [
        (Notice.OVERLAPPING_BOXES, f"{box_text(one)} and {box_text(other)}")
        for one, other in combinations(every, 2)
        if intersection(one, other) > MOST_SHARED * min(area(one), area(other))
    ]
    return boxes


def reading_order(boxes: Sequence[Pixels]) -> list[Pixels]:
    """Boxes row by row, each row from the left; the order given does not matter."""
    rows: list[list[Pixels]] = []
    for box in sorted(boxes, key=lambda one: (one[1], one[0], one)):
        if rows and (box[1] + box[3]) / 2 < rows[-1][0][3]:
            rows[-1].append(box)
        else:
            rows.append([box])
    return [box for row in rows for box in sorted(row)]


def intersection(one: Pixels, other: Pixels) -> int:
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return max(wide, 0) * max(high, 0)


def intersection_over_union(one: Pixels, other: Pixels) -> float:
    shared = intersection(one, other)
    return shared / (area(one) + area(other) - shared) if shared else 0.0


def area(box: Pixels) -> int:
    return max(box[2] - box[0], 0) * max(box[3] - box[1], 0)


def _in_image(numbers: Numbers, frame: Frame, name: str, findings: list[Finding]) -> Pixels | None:
    box, (width, height) = frame.to_original(numbers), frame.original
    told = f"{name}: {box_text(numbers)}"
    held = [min(max(at, 0.0), end) for at, end in zip(box, (width, height) * 2, strict=True)]
    left, top, right, bottom = map(round, held)
    if right <= left or bottom <= top:
        findings.append((Notice.DEGENERATE_BOX, told))
        return None
    if any(abs(at - inside) > CLAMPED for at, inside in zip(box, held, strict=True)):
        findings.append((Notice.CLAMPED_BOX, told))
    pixels = (left, top, right, bottom)
    share = area(pixels) / (width * height)
    if share < SMALLEST_SHARE:
        findings.append((Notice.TINY_BOX, told))
    if share > LARGEST_SHARE:
        findings.append((Notice.WHOLE_BOX, told))
    return pixels


def upright_size(data: bytes) -> Size:
    with open_image(data) as image:
        if image.getexif().get(ORIENTATION) not in ON_ITS_SIDE:
            return image.size
        # Pillow turns those of some formats on decoding, and then tells their size turned.
        return ImageOps.exif_transpose(image).size


def upright(data: bytes) -> Image.Image:
    """An image as people see it, in its own colors."""
    with open_image(data) as image:
        if image.mode in UNDEFINED_MODES:
            raise ImageError(f"pixels of mode {image.mode!r}: expected 8 or 16 bits a channel")
        shown = ImageOps.exif_transpose(image)
        if shown.mode in KEPT_MODES:
            return shown
        # The profile of another kind of colors says nothing about these.
        turned = shown.convert("RGB")
        turned.info.pop("icc_profile", None)
        return turned


def cut(image: Image.Image, box: Pixels, inset: int = 0) -> bytes:
    left, top, right, bottom = inner(box, inset)
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
    part.save(buffer, "PNG", compress_level=COMPRESSION)
    return buffer.getvalue()


def inner(box: Pixels, inset: int) -> Pixels:
    left, top, right, bottom = box
    return left + inset, top + inset, right - inset, bottom - inset
