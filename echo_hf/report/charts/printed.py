"""Charts for print: bars with intervals and boxes, as SVG documents of a fixed size in points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from echo_hf.report.charts.scale import UNIT, Scale, round_scale
from echo_hf.report.markup import Markup, element, joined, shortened

LEFT, TOP, RIGHT = 46, 34, 12
HEIGHT = 190  # of the plot itself
STEP, THICK = 54, 32  # from one system to the next, and how broad its mark is
LONGEST = 32
# Of a turned name, for each letter and below the axis.
ACROSS, DOWN, BELOW = 5.0, 3.2, 24
STYLE = (
    "text{font:10px Helvetica,Arial,sans-serif;fill:#222}"
    ".title{font-weight:bold;font-size:11px}"
    ".grid{stroke:#e3e3e3;stroke-width:.75}.half{stroke:#777;stroke-dasharray:3 3}"
    ".mark{fill:#3b6fb6}.box{fill:#c9d9ee;stroke:#3b6fb6}"
    ".line{stroke:#1b2a41;stroke-width:1.2;fill:none}"
)
Bar = tuple[str, float, tuple[float, float] | None]
Box = tuple[str, Sequence[float]]


def printed_bars(title: str, bars: Sequence[Bar], warned: str = "") -> str:
    """Win rates as bars from 0 to 1 with a line at one half.

    Args:
        title: What stands above.
        bars: Name, number and interval of each system.
        warned: What is to be said below the title; nothing when empty.

    Returns:
        An SVG document.
    """
    half = _across(UNIT, 0.5, len(bars), "half")
    marks = [_bar(at, *one) for at, one in enumerate(bars)]
    return _document(title, warned, [name for name, *_ in bars], UNIT, joined(half, marks))


def printed_boxes(title: str, boxes: Sequence[Box], warned: str = "") -> str:
    """Numbers as boxes: median and quartiles, and lines to the 5th and the 95th percentile.

    Args:
        title: What stands above.
        boxes: Name and numbers of each system, at least one number each.
        warned: As for `printed_bars`.

    Returns:
        An SVG document.
    """
    scale = round_scale(value for _, values in boxes for value in values)
    marks = [_box(scale, at, values) for at, (_, values) in enumerate(boxes)]
    return _document(title, warned, [name for name, _ in boxes], scale, joined(marks))


def place(scale: Scale, value: float) -> float:
    """How far from the top of the document a number lies.

    Args:
        scale: The axis, from bottom to top.
        value: The number.

    Returns:
        Pixels.

    Example:
        >>> place(UNIT, 1.0), place(UNIT, 0.5), place(UNIT, 0.0)
        (34.0, 129.0, 224.0)
    """
    return TOP + HEIGHT * (1 - scale.share(value))


def _bar(at: int, name: str, value: float, ends: tuple[float, float] | None) -> Markup:
    left, top = LEFT + at * STEP + (STEP - THICK) / 2, place(UNIT, value)
    said = f"{name}: {value:.3f}" + (f" ({ends[0]:.3f} to {ends[1]:.3f})" if ends else "")
    size = {"width": THICK, "height": round(TOP + HEIGHT - top, 2)}
    rect = element("rect", x=left, y=round(top, 2), **size, class_="mark")
    whisker = _whisker(at, *(place(UNIT, end) for end in ends)) if ends else None
    return element("g", element("title", said), rect, whisker)


def _whisker(at: int, low: float, high: float) -> Markup:
    middle = _middle(at)
    path = f"M{middle},{low:.2f}V{high:.2f}M{middle - 4},{low:.2f}h8M{middle - 4},{high:.2f}h8"
    return element("path", d=path, class_="line")


def _box(scale: Scale, at: int, values: Sequence[float]) -> Markup:
    low, first, median, third, high = (
        round(place(scale, float(one)), 2) for one in np.percentile(values, (5, 25, 50, 75, 95))
    )
    left = LEFT + at * STEP + (STEP - THICK) / 2
    rect = element("rect", x=left, y=third, width=THICK, height=first - third, class_="box")
    middle = _middle(at)
    path = f"M{middle},{low}V{first}M{middle},{third}V{high}M{left},{median}h{THICK}"
    return element("g", rect, element("path", d=path, class_="line"))


def _across(scale: Scale, value: float, systems: int, kind: str) -> Markup:
    y = round(place(scale, value), 2)
    return element("line", x1=LEFT, x2=LEFT + systems * STEP, y1=y, y2=y, class_=kind)


def _document(title: str, warned: str, names: Sequence[str], scale: Scale, marks: Markup) -> str:
    named = [shortened(name, LONGEST) for name in names]
    left = round(max([0.0, *(len(one) * ACROSS - _middle(at) for at, one in enumerate(named))]))
    down = round(BELOW + DOWN * max(map(len, named), default=0))
    width, height = left + LEFT + len(names) * STEP + RIGHT, TOP + HEIGHT + down
    width = max(width, round(left + LEFT + len(warned) * ACROSS))
    drawn = element(
        "svg",
        element("title", title),
        element("style", Markup(STYLE)),
        element("text", title, x=LEFT, y=16, class_="title"),
        element("text", warned, x=LEFT, y=28) if warned else None,
        [_tick(scale, tick, len(names)) for tick in scale.ticks],
        marks,
        [_name(at, name) for at, name in enumerate(named)],
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"{-left} 0 {width} {height}",
        width=width,
        height=height,
        role="img",
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawn}\n'


def _tick(scale: Scale, tick: float, systems: int) -> Markup:
    y = place(scale, tick) + 3.5
    text = f"{tick:.{scale.digits}f}"
    label = element("text", text, x=LEFT - 6, y=round(y, 2), text_anchor="end")
    return joined(_across(scale, tick, systems, "grid"), label)


def _name(at: int, name: str) -> Markup:
    x, y = _middle(at) + 4, TOP + HEIGHT + 14
    turned = f"rotate(-32 {x} {y})"
    return element("text", name, x=x, y=y, text_anchor="end", transform=turned)


def _middle(at: int) -> float:
    return LEFT + at * STEP + STEP / 2
