"""Small charts as SVG: pure functions of numbers, colored by the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from echo_hf.report.markup import Markup, element, joined, shortened

POINTS = 81


def density(values: Sequence[float], low: float, high: float, points: int = POINTS) -> list[float]:
    """A Gaussian kernel density, Scott's bandwidth, as a share of its highest point."""
    from scipy.stats import gaussian_kde

    at = np.linspace(low, high, points)
    heights = gaussian_kde(np.asarray(values, np.float64))(at)
    step = (high - low) / (points - 1)
    outside = (at < min(values) - step) | (at > max(values) + step)
    heights = np.where(outside, 0.0, heights)
    highest = float(heights.max())
    return [float(one / highest) if highest else 0.0 for one in heights]


STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Scale:
    low: float
    high: float
    ticks: tuple[float, ...]
    digits: int = 0

    def share(self, value: float) -> float:
        """Where a number lies, from 0 at the left to 1 at the right."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def percent(self, value: float) -> str:
        """The same as SVG has it."""
        return percent(self.share(value))


# Shares of points from 0 to 1: one half is what a system gets that does as well as the others.
UNIT = Scale(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), 2)


def percent(part: float) -> str:
    """A share of the width as SVG has it."""
    return f"{100 * part:.2f}".rstrip("0").rstrip(".") + "%"


def round_scale(
    values: Iterable[float], *, ticks: int = 4, from_zero: bool = True, whole: bool = False
) -> Scale:
    known = sorted(values)
    low, high = (known[0], known[-1]) if known else (0.0, 1.0)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    step = _step((high - low) / ticks or max(abs(high), 1.0) / ticks, whole)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    power = math.floor(math.log10(step) + 1e-9)
    digits = max(0, (1 if math.isclose(step, 2.5 * 10.0**power) else 0) - power)
    named = tuple(round(at * step, 10) + 0.0 for at in range(first, last + 1))
    return Scale(named[0], named[-1], named, digits)


def _step(least: float, whole: bool) -> float:
    """The smallest round number that is no smaller."""
    least = max(least, 1.0) if whole else least
    power = 10.0 ** math.floor(math.log10(least))
    steps = (power * step for step in STEPS if not whole or (power * step).is_integer())
    return next(step for step in steps if step >= least * (1 - 1e-9))


HEIGHT = 26
MIDDLE = HEIGHT / 2
FINE = 1000  # units of the width of a drawn outline


def plot(*marks: Markup, scale: Scale, at: float | None = None) -> Markup:
    grid = [_upright(scale, tick, "grid") for tick in scale.ticks]
    if at is not None:
        grid.append(_upright(scale, at, "reference"))
    return element(
        "svg", grid, marks, class_="marks", width="100%", height=HEIGHT, aria_hidden="true"
    )


def axis(scale: Scale) -> Markup:
    """The names of an axis' ticks, for the head of the column."""
    names = [
        element(
            "text",
            f"{tick:,.{scale.digits}f}".replace("-", "−"),
            x=scale.percent(tick),
            y=12,
            class_=_anchor(scale.share(tick)) + (" between" if at % 2 else ""),
        )
        for at, tick in enumerate(scale.ticks)
    ]
    return element("svg", names, class_="axis", width="100%", height=16, aria_hidden="true")


def point(scale: Scale, value: float | None, ends: tuple[float, float] | None) -> Markup:
    return joined(
        None if ends is None else span(scale, *ends, "whisker"),
        None if value is None else dot(scale, value),
    )


def dot(scale: Scale, value: float, kind: str = "dot", radius: float = 4.5) -> Markup:
    return element("circle", cx=scale.percent(value), cy=MIDDLE, r=radius, class_=kind)


def span(scale: Scale, low: float, high: float, kind: str) -> Markup:
    ends = {"x1": scale.percent(low), "x2": scale.percent(high)}
    return element("line", **ends, y1=MIDDLE, y2=MIDDLE, class_=kind)


def bar(scale: Scale, value: float, kind: str = "bar") -> Markup:
    start, end = sorted((scale.share(0.0), scale.share(value)))
    return element(
        "rect", x=percent(start), y=7, width=percent(end - start), height=12, rx=2, class_=kind
    )


def dots(scale: Scale, values: Iterable[float]) -> Markup:
    """A faint dot for each of a few numbers."""
    return joined([dot(scale, value, "faint", 3) for value in values])


def distribution(scale: Scale, values: Sequence[float]) -> Markup:
    """The outline of how often numbers are, with a line from quartile to quartile."""
    heights = density(values, scale.low, scale.high)
    step = FINE / (len(heights) - 1)
    half = MIDDLE - 2
    upper = [f"{at * step:.0f},{MIDDLE - half * high:.1f}" for at, high in enumerate(heights)]
    lower = [f"{at * step:.0f},{MIDDLE + half * high:.1f}" for at, high in enumerate(heights)]
    outline = element("path", d="M" + "L".join([*upper, *reversed(lower)]) + "Z", class_="violin")
    return stretched(outline, HEIGHT)


def stretched(drawing: Markup, height: int) -> Markup:
    """A drawing `FINE` units wide, stretched to the width of its row."""
    box = {"viewBox": f"0 0 {FINE} {height}", "preserveAspectRatio": "none"}
    return element("svg", drawing, **box, width="100%", height=height)


def _upright(scale: Scale, value: float, kind: str) -> Markup:
    place = scale.percent(value)
    return element("line", x1=place, x2=place, y1=0, y2=HEIGHT, class_=kind)


def _anchor(part: float) -> str:
    if part < 0.04:
        return "tick start"
    return "tick end" if part > 0.96 else "tick"


CURVES_HEIGHT = 84
CHANNELS = ("red", "green", "blue")
GROUP = 4  # levels a step: 64 steps are as fine as the width shows


def grouped(shares: Sequence[float], group: int = GROUP) -> list[float]:
    """Neighbouring shares added up."""
    return [sum(shares[at : at + group]) for at in range(0, len(shares), group)]


def highest(channels: Sequence[Sequence[float]]) -> float:
    """The highest step of a histogram but for its ends, where clipped levels pile up."""
    return max(max(grouped(channel)[1:-1]) for channel in channels)


def histogram(channels: Sequence[Sequence[float]], top: float) -> Markup:
    areas = [
        element("path", d=_area(grouped(channel), top), class_=f"channel {name}")
        for name, channel in zip(CHANNELS, channels, strict=True)
    ]
    drawn = stretched(Markup("".join(areas)), CURVES_HEIGHT)
    return element(
        "svg", drawn, class_="histogram", width="100%", height=CURVES_HEIGHT, aria_hidden="true"
    )


def _area(steps: Sequence[float], top: float) -> str:
    width = FINE / (len(steps) - 1)
    points = [
        f"{at * width:.0f},{CURVES_HEIGHT * (1 - min(1.0, step / top if top else 0.0)):.1f}"
        for at, step in enumerate(steps)
    ]
    return f"M0,{CURVES_HEIGHT}L" + "L".join(points) + f"L{FINE},{CURVES_HEIGHT}Z"


DAYS_HEIGHT = 110
GAP = 0.15  # of the width of a column


def columns(counts: Sequence[int], top: float) -> str:
    width = FINE / len(counts)
    return "".join(
        f"M{(at + GAP / 2) * width:.0f},{DAYS_HEIGHT}V{DAYS_HEIGHT * (1 - count / top):.1f}"
        f"H{(at + 1 - GAP / 2) * width:.0f}V{DAYS_HEIGHT}Z"
        for at, count in enumerate(counts)
        if count
    )


def days(counts: Sequence[int], first: str, last: str, label: str) -> Markup:
    top = max(*counts, 1)
    path = element("path", d=columns(counts, top), class_="column")
    drawn = element(
        "svg",
        stretched(path, DAYS_HEIGHT),
        class_="days",
        width="100%",
        height=DAYS_HEIGHT,
        role="img",
        aria_label=label,
    )
    ends = [element("span", text) for text in (first, f"at most {top:,} a day", last)]
    return element("figure", drawn, element("figcaption", ends, class_="ends"))


WIDTH, SCATTER_HEIGHT, MARGIN = 640, 400, 12
Places = Sequence[tuple[float, float]]


def scatter(groups: Mapping[str, Places], label: str) -> Markup:
    every = [place for places in groups.values() for place in places]
    box = _box(every)
    paths = [
        element("path", d=points(places, box), class_=f"points p{at % 8}")
        for at, places in enumerate(groups.values())
        if places
    ]
    return element(
        "svg",
        paths,
        viewBox=f"0 0 {WIDTH} {SCATTER_HEIGHT}",
        width="100%",
        class_="scatter",
        role="img",
        aria_label=label,
    )


def points(places: Places, box: tuple[float, float, float, float]) -> str:
    """A line without length at each place."""
    left, low, right, high = box
    across, down = WIDTH - 2 * MARGIN, SCATTER_HEIGHT - 2 * MARGIN
    return "".join(
        f"M{MARGIN + across * (x - left) / (right - left):.1f},"
        f"{MARGIN + down * (high - y) / (high - low):.1f}h0"
        for x, y in places
    )


def _box(places: Places) -> tuple[float, float, float, float]:
    if not places:
        return 0.0, 0.0, 1.0, 1.0
    across, up = zip(*places, strict=True)
    left, low = min(across), min(up)
    return left, low, max(max(across), left + 1e-9), max(max(up), low + 1e-9)


LEFT, TOP, RIGHT = 46, 34, 12
PRINTED_HEIGHT = 190  # of the plot itself
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
    """Win rates as bars from 0 to 1 with a line at one half."""
    half = _across(UNIT, 0.5, len(bars), "half")
    marks = [_bar(at, *one) for at, one in enumerate(bars)]
    return _document(title, warned, [name for name, *_ in bars], UNIT, joined(half, marks))


def printed_boxes(title: str, boxes: Sequence[Box], warned: str = "") -> str:
    """Numbers as boxes: median and quartiles, and lines to the 5th and the 95th percentile."""
    scale = round_scale(value for _, values in boxes for value in values)
    marks = [_printed_box(scale, at, values) for at, (_, values) in enumerate(boxes)]
    return _document(title, warned, [name for name, _ in boxes], scale, joined(marks))


def place(scale: Scale, value: float) -> float:
    """How far from the top of the document a number lies."""
    return TOP + PRINTED_HEIGHT * (1 - scale.share(value))


def _bar(at: int, name: str, value: float, ends: tuple[float, float] | None) -> Markup:
    left, top = LEFT + at * STEP + (STEP - THICK) / 2, place(UNIT, value)
    said = f"{name}: {value:.3f}" + (f" ({ends[0]:.3f} to {ends[1]:.3f})" if ends else "")
    size = {"width": THICK, "height": round(TOP + PRINTED_HEIGHT - top, 2)}
    rect = element("rect", x=left, y=round(top, 2), **size, class_="mark")
    whisker = _whisker(at, *(place(UNIT, end) for end in ends)) if ends else None
    return element("g", element("title", said), rect, whisker)


def _whisker(at: int, low: float, high: float) -> Markup:
    middle = _middle(at)
    path = f"M{middle},{low:.2f}V{high:.2f}M{middle - 4},{low:.2f}h8M{middle - 4},{high:.2f}h8"
    return element("path", d=path, class_="line")


def _printed_box(scale: Scale, at: int, values: Sequence[float]) -> Markup:
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
    width, height = left + LEFT + len(names) * STEP + RIGHT, TOP + PRINTED_HEIGHT + down
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
    x, y = _middle(at) + 4, TOP + PRINTED_HEIGHT + 14
    turned = f"rotate(-32 {x} {y})"
    return element("text", name, x=x, y=y, text_anchor="end", transform=turned)


def _middle(at: int) -> float:
    return LEFT + at * STEP + STEP / 2
