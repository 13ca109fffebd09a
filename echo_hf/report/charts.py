"""Small charts as SVG: pure functions of numbers, colored by the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape

from echo_hf._infra.bootstrap import Interval
from echo_hf.report.markup import printable, rendered, shortened

POINTS = 81
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


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


def places(systems: int) -> Scale:
    return Scale(0.5, systems + 0.5, tuple(range(1, systems + 1)))


def round_scale(values: Iterable[float], *, ticks: int = 4, whole: bool = False) -> Scale:
    """An axis from zero to all values, with few round ticks; whole ones for counts."""
    known = sorted(values)
    low, high = (min(known[0], 0.0), max(known[-1], 0.0)) if known else (0.0, 1.0)
    least = (high - low) / ticks or 1.0 / ticks
    least = max(least, 1.0) if whole else least
    power = 10.0 ** math.floor(math.log10(least))
    steps = (power * step for step in STEPS if not whole or (power * step).is_integer())
    step = next(step for step in steps if step >= least * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    exponent = math.floor(math.log10(step) + 1e-9)
    digits = max(0, (1 if math.isclose(step, 2.5 * 10.0**exponent) else 0) - exponent)
    named = tuple(round(at * step, 10) + 0.0 for at in range(first, last + 1))
    return Scale(named[0], named[-1], named, digits)


HEIGHT = 26
MIDDLE = HEIGHT / 2
FINE = 1000  # units of the width of a drawn outline


def element(tag: str, *inside: Markup | str | None, **attributes: object) -> Markup:
    """An element of SVG; an underscore stands for a hyphen."""
    said = (
        f' {name.rstrip("_").replace("_", "-")}="{escape(printable(str(value)))}"'
        for name, value in attributes.items()
    )
    return Markup(f"<{tag}{''.join(said)}>{joined(*inside)}</{tag}>")  # noqa: S704 - escaped


def joined(*inside: Markup | str | None) -> Markup:
    return Markup("").join(
        one if isinstance(one, Markup) else printable(one) for one in inside if one is not None
    )


def plot(*marks: Markup, scale: Scale, at: float | None = None) -> Markup:
    """The row of a table: marks over the lines of its axis, and over one for reference."""
    lines = [
        *((tick, "grid") for tick in scale.ticks),
        *([] if at is None else [(at, "reference")]),
    ]
    grid = [
        element("line", x1=place, x2=place, y1=0, y2=HEIGHT, class_=kind)
        for place, kind in ((scale.percent(value), kind) for value, kind in lines)
    ]
    size = {"width": "100%", "height": HEIGHT}
    return element("svg", *grid, *marks, class_="marks", **size, aria_hidden="true")


def axis(scale: Scale) -> Markup:
    """The names of an axis' ticks, for the head of the column."""
    names = []
    for at, tick in enumerate(scale.ticks):
        part = scale.share(tick)
        side = " start" if part < 0.04 else " end" if part > 0.96 else ""
        kind = f"tick{side}{' between' if at % 2 else ''}"
        said = f"{tick:,.{scale.digits}f}".replace("-", "−")
        names.append(element("text", said, x=scale.percent(tick), y=12, class_=kind))
    return element("svg", *names, class_="axis", width="100%", height=16, aria_hidden="true")


def point(scale: Scale, value: float | None, ends: Interval | None) -> Markup:
    return joined(
        None if ends is None else span(scale, *ends, "whisker"),
        None if value is None else dot(scale, value),
    )


def dot(scale: Scale, value: float, kind: str = "dot", radius: float = 4.5) -> Markup:
    return element("circle", cx=scale.percent(value), cy=MIDDLE, r=radius, class_=kind)


def span(scale: Scale, low: float, high: float, kind: str) -> Markup:
    ends = {"x1": scale.percent(low), "x2": scale.percent(high)}
    return element("line", **ends, y1=MIDDLE, y2=MIDDLE, class_=kind)


def extent(scale: Scale, ends: tuple[float, float] | None) -> Markup:
    """A range, which may be a single place."""
    if ends is None:
        return Markup("")
    return dot(scale, ends[0]) if ends[0] == ends[1] else span(scale, *ends, "extent")


def bar(scale: Scale, value: float | None, kind: str = "bar") -> Markup:
    if value is None:
        return Markup("")
    start, end = sorted((scale.share(0.0), scale.share(value)))
    size = {"width": percent(end - start), "height": 12}
    return element("rect", x=percent(start), y=7, **size, rx=2, class_=kind)


def distribution(scale: Scale, values: Sequence[float]) -> Markup:
    """The outline of how often numbers are; a faint dot each, where a curve would claim more."""
    if len(values) < 12 or len(set(values)) == 1:
        return joined(*(dot(scale, value, "faint", 3) for value in values))
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


CURVES_HEIGHT = 84
CHANNELS = ("red", "green", "blue")
GROUP = 4  # levels a step: 64 steps are as fine as the width shows


def grouped(shares: Sequence[float]) -> list[float]:
    return [sum(shares[at : at + GROUP]) for at in range(0, len(shares), GROUP)]


def highest(channels: Sequence[Sequence[float]]) -> float:
    """The highest step of a histogram but for its ends, where clipped levels pile up."""
    return max(max(grouped(channel)[1:-1]) for channel in channels)


def histogram(channels: Sequence[Sequence[float]], top: float) -> Markup:
    areas = []
    for name, channel in zip(CHANNELS, channels, strict=True):
        steps = grouped(channel)
        parts = (min(1.0, step / top if top else 0.0) for step in steps)
        line = "L".join(
            f"{at * FINE / (len(steps) - 1):.0f},{CURVES_HEIGHT * (1 - part):.1f}"
            for at, part in enumerate(parts)
        )
        area = f"M0,{CURVES_HEIGHT}L{line}L{FINE},{CURVES_HEIGHT}Z"
        areas.append(element("path", d=area, class_=f"channel {name}"))
    size = {"width": "100%", "height": CURVES_HEIGHT}
    drawn = stretched(joined(*areas), CURVES_HEIGHT)
    return element("svg", drawn, class_="histogram", **size, aria_hidden="true")


DAYS_HEIGHT = 110
GAP = 0.15  # of the width of a column


def days(counts: Sequence[int], label: str, height: int = DAYS_HEIGHT) -> Markup:
    """A column for each of some days or weeks; the highest fills the height."""
    top, width = max(*counts, 1), FINE / len(counts)
    path = "".join(
        f"M{(at + GAP / 2) * width:.0f},{height}V{height * (1 - count / top):.1f}"
        f"H{(at + 1 - GAP / 2) * width:.0f}V{height}Z"
        for at, count in enumerate(counts)
        if count
    )
    drawn = stretched(element("path", d=path, class_="column"), height)
    size = {"width": "100%", "height": height}
    return element("svg", drawn, class_="days", **size, role="img", aria_label=label)


WIDTH, SCATTER_HEIGHT, MARGIN = 640, 400, 12
Places = Sequence[tuple[float, float]]


def scatter(groups: Mapping[str, Places], label: str) -> Markup:
    """A line without length at each place of a plane, one color a group."""
    every = [place for some in groups.values() for place in some]
    across, up = zip(*every, strict=True) if every else ((0.0, 1.0), (0.0, 1.0))
    wide = (WIDTH - 2 * MARGIN) / max(max(across) - min(across), 1e-9)
    high = (SCATTER_HEIGHT - 2 * MARGIN) / max(max(up) - min(up), 1e-9)
    top = min(up) + max(max(up) - min(up), 1e-9)
    paths = [
        element(
            "path",
            d="".join(
                f"M{MARGIN + wide * (x - min(across)):.1f},{MARGIN + high * (top - y):.1f}h0"
                for x, y in some
            ),
            class_=f"points p{at % 8}",
        )
        for at, some in enumerate(groups.values())
    ]
    box = {"viewBox": f"0 0 {WIDTH} {SCATTER_HEIGHT}", "width": "100%", "class_": "scatter"}
    return element("svg", *paths, **box, role="img", aria_label=label)


LEFT, TOP, RIGHT = 46, 34, 12
PRINTED_HEIGHT = 190  # of the plot itself
STEP, THICK = 54, 32  # from one system to the next, and how broad its mark is
LONGEST = 32
# Of a turned name, for each letter and below the axis.
ACROSS, DOWN, BELOW = 5.0, 3.2, 24
Bar = tuple[str, float, Interval | None]
Box = tuple[str, Sequence[float]]


def printed_bars(title: str, bars: Sequence[Bar], warned: str = "") -> str:
    """Win rates as bars from 0 to 1 with a line at one half, as a document."""
    marks = []
    for at, (name, value, ends) in enumerate(bars):
        said = f"{name}: {value:.3f}" + (f" ({ends[0]:.3f} to {ends[1]:.3f})" if ends else "")
        top, middle = _height(UNIT, value), _middle(at)
        line = ""
        if ends:
            low, high = (_height(UNIT, end) for end in ends)
            left = middle - 4
            line = f"M{middle},{low:.2f}V{high:.2f}M{left},{low:.2f}h8M{left},{high:.2f}h8"
        size = {"top": round(top, 2), "height": round(TOP + PRINTED_HEIGHT - top, 2)}
        marks.append({"left": middle - THICK / 2, "said": said, "line": line, **size})
    return _printed(title, warned, [name for name, *_ in bars], UNIT, marks, "mark", 0.5)


def printed_boxes(title: str, boxes: Sequence[Box], warned: str = "") -> str:
    """Numbers as boxes: median and quartiles, and lines to the 5th and the 95th percentile."""
    scale = round_scale(value for _, values in boxes for value in values)
    marks = []
    for at, (_, values) in enumerate(boxes):
        low, first, median, third, high = (
            round(_height(scale, float(one)), 2)
            for one in np.percentile(values, (5, 25, 50, 75, 95))
        )
        middle = _middle(at)
        left = middle - THICK / 2
        line = f"M{middle},{low}V{first}M{middle},{third}V{high}M{left},{median}h{THICK}"
        marks.append({"left": left, "top": third, "height": first - third, "line": line})
    return _printed(title, warned, [name for name, _ in boxes], scale, marks, "box")


def _printed(
    title: str,
    warned: str,
    names: Sequence[str],
    scale: Scale,
    marks: Sequence[Mapping[str, object]],
    kind: str,
    half: float | None = None,
) -> str:
    named = [shortened(name, LONGEST) for name in names]
    left = round(max([0.0, *(len(one) * ACROSS - _middle(at) for at, one in enumerate(named))]))
    down = round(BELOW + DOWN * max(map(len, named), default=0))
    width = max(LEFT + len(names) * STEP + RIGHT, round(LEFT + len(warned) * ACROSS))
    return rendered(
        "figure.svg.jinja",
        title=title,
        warned=warned,
        names=[(_middle(at) + 4, name) for at, name in enumerate(named)],
        ticks=[
            (round(_height(scale, tick), 2), f"{tick:.{scale.digits}f}") for tick in scale.ticks
        ],
        marks=marks,
        kind=kind,
        half=None if half is None else round(_height(scale, half), 2),
        box=(-left, left + width, TOP + PRINTED_HEIGHT + down),
        left=LEFT,
        right=LEFT + len(names) * STEP,
        below=TOP + PRINTED_HEIGHT + 14,
        thick=THICK,
    )


def _height(scale: Scale, value: float) -> float:
    """How far from the top of a document a number lies."""
    return TOP + PRINTED_HEIGHT * (1 - scale.share(value))


def _middle(at: int) -> float:
    return LEFT + at * STEP + STEP / 2
