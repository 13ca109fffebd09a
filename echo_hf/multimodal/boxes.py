"""From the boxes of an answer to boxes that pictures can be cut by, or the reason why they cannot.

A wrong box makes a wrong task, and nobody sees it afterwards: whatever is doubtful keeps the whole
screenshot from being cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from echo_hf.multimodal.box_conventions import Frame, shown
from echo_hf.reasons import Notice

Pixels = tuple[int, int, int, int]
Numbers = Sequence[float]
Finding = tuple[Notice, str]

SMALLEST_SHARE = 0.002  # of the screenshot
LARGEST_SHARE = 0.95
SAME = 0.9  # intersection over union of two boxes around one picture
MOST_SHARED = 0.1  # of the smaller of two boxes
CLAMPED = 0.5  # pixels that are no more than rounding
# What keeps a screenshot from being cut; the other findings are mended.
FLAGS = frozenset(
    {
        Notice.WRONG_CONVENTION,
        Notice.DEGENERATE_BOX,
        Notice.TINY_BOX,
        Notice.WHOLE_BOX,
        Notice.OVERLAPPING_BOXES,
        Notice.NO_BOX,
        Notice.BROKEN_PICTURE,
    }
)


@dataclass
class Boxes:
    """The boxes of one screenshot.

    Attributes:
        inputs: Around what went in, in reading order; left, top, right, bottom in pixels of the
            upright screenshot, right and bottom being the first pixels outside.
        outputs: Around what came out, likewise.
        findings: What is wrong with them.
    """

    inputs: list[Pixels] = field(default_factory=list)
    outputs: list[Pixels] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """Whether pictures may be cut by them."""
        return all(notice not in FLAGS for notice, _ in self.findings)


def checked_boxes(inputs: Sequence[Numbers], outputs: Sequence[Numbers], frame: Frame) -> Boxes:
    """Maps the boxes of an answer to pixels, and checks them.

    Args:
        inputs: Numbers of the boxes around what went in.
        outputs: Numbers of those around what came out.
        frame: What the numbers mean.

    Returns:
        The boxes with all that was found; without boxes where the numbers cannot have been meant as
        the frame has it.

    Example:
        >>> from echo_hf.multimodal.box_conventions import Convention
        >>> frame = Frame(Convention.REL_1000, (400, 800), (400, 800))
        >>> checked_boxes([[500, 0, 1000, 250]], [[0, 500, 1000, 1000]], frame).outputs
        [(0, 400, 400, 800)]
    """
    boxes = Boxes()
    betrayal = frame.betrayed_by([*inputs, *outputs])
    if betrayal is not None:
        boxes.findings.append((Notice.WRONG_CONVENTION, f"{betrayal} in {frame.convention}"))
        return boxes
    for name, given, kept in (("input", inputs, boxes.inputs), ("output", outputs, boxes.outputs)):
        for number, numbers in enumerate(given, 1):
            box = _in_picture(numbers, frame, f"{name} {number}", boxes.findings)
            if box is not None:
                kept.append(box)
        kept[:] = _each_once(reading_order(kept), name, boxes.findings)
    boxes.findings.extend(_overlaps(boxes))
    return boxes


def reading_order(boxes: Sequence[Pixels]) -> list[Pixels]:
    """Boxes row by row, each row from the left; the order given does not matter.

    A box belongs to the row whose uppermost box has its middle at its own height.

    Example:
        >>> reading_order([(0, 90, 50, 140), (60, 0, 110, 50), (0, 4, 50, 54)])
        [(0, 4, 50, 54), (60, 0, 110, 50), (0, 90, 50, 140)]
    """
    rows: list[list[Pixels]] = []
    for box in sorted(boxes, key=lambda one: (one[1], one[0], one)):
        if rows and (box[1] + box[3]) / 2 < rows[-1][0][3]:
            rows[-1].append(box)
        else:
            rows.append([box])
    return [box for row in rows for box in sorted(row)]


def intersection(one: Pixels, other: Pixels) -> int:
    """The number of pixels that two boxes share.

    Example:
        >>> intersection((0, 0, 10, 10), (5, 8, 20, 20))
        10
    """
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return max(wide, 0) * max(high, 0)


def intersection_over_union(one: Pixels, other: Pixels) -> float:
    """How far two boxes are the same: 1 when they are, 0 when they share nothing.

    Example:
        >>> intersection_over_union((0, 0, 10, 10), (5, 0, 15, 10))
        0.3333333333333333
    """
    shared = intersection(one, other)
    return shared / (area(one) + area(other) - shared) if shared else 0.0


def area(box: Pixels) -> int:
    """The number of pixels in a box."""
    return max(box[2] - box[0], 0) * max(box[3] - box[1], 0)


def _in_picture(
    numbers: Numbers, frame: Frame, name: str, findings: list[Finding]
) -> Pixels | None:
    box, (width, height) = frame.to_original(numbers), frame.original
    told = f"{name}: {shown(numbers)}"
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


def _each_once(boxes: list[Pixels], name: str, findings: list[Finding]) -> Iterator[Pixels]:
    taken: list[Pixels] = []
    for box in boxes:
        if any(intersection_over_union(box, one) >= SAME for one in taken):
            findings.append((Notice.DUPLICATE_BOX, f"{name}: {shown(box)}"))
        else:
            taken.append(box)
            yield box


def _overlaps(boxes: Boxes) -> Iterator[Finding]:
    every = [*boxes.inputs, *boxes.outputs]
    for number, one in enumerate(every):
        for other in every[number + 1 :]:
            if intersection(one, other) > MOST_SHARED * min(area(one), area(other)):
                yield Notice.OVERLAPPING_BOXES, f"{shown(one)} and {shown(other)}"
