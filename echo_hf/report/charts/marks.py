"""What a row of a chart shows: a point with its interval, a bar, dots, or a distribution.

Each is an SVG as wide as its cell: places are shares of the width, so that text and strokes keep
their size on a phone. The numbers stand in the same row of the table, so the picture is hidden from
screen readers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from echo_hf.report.charts.density import density
from echo_hf.report.charts.scale import Scale, percent
from echo_hf.report.markup import Markup, element, joined

HEIGHT = 26
MIDDLE = HEIGHT / 2
FINE = 1000  # units of the width of a drawn outline


def plot(*marks: Markup, scale: Scale, at: float | None = None) -> Markup:
    """A row's picture.

    Args:
        marks: What it shows, the first at the back.
        scale: Its axis, whose ticks are drawn as faint lines.
        at: A number to compare with, drawn as a stronger line.

    Returns:
        The SVG.
    """
    grid = [_upright(scale, tick, "grid") for tick in scale.ticks]
    if at is not None:
        grid.append(_upright(scale, at, "reference"))
    return element(
        "svg", grid, marks, class_="marks", width="100%", height=HEIGHT, aria_hidden="true"
    )


def axis(scale: Scale) -> Markup:
    """The names of an axis' ticks, for the head of the column.

    Every second one is `between` its neighbours, and left out where there is little room.

    Args:
        scale: The axis.

    Returns:
        The SVG.
    """
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
    """A number with its interval.

    Args:
        scale: The axis.
        value: The number, null for none.
        ends: Both ends of its interval, null for none.

    Returns:
        The marks.

    Example:
        >>> from echo_hf.report.charts.scale import UNIT
        >>> point(UNIT, 0.5, None)
        '<circle cx="50%" cy="13.0" r="4.5" class="dot"></circle>'
    """
    return joined(
        None if ends is None else span(scale, *ends, "whisker"),
        None if value is None else dot(scale, value),
    )


def dot(scale: Scale, value: float, kind: str = "dot", radius: float = 4.5) -> Markup:
    """A point.

    Args:
        scale: The axis.
        value: The number.
        kind: Class of the mark.
        radius: In pixels.

    Returns:
        The mark.
    """
    return element("circle", cx=scale.percent(value), cy=MIDDLE, r=radius, class_=kind)


def span(scale: Scale, low: float, high: float, kind: str) -> Markup:
    """A line from one number to another.

    Args:
        scale: The axis.
        low: Its left end.
        high: Its right end.
        kind: Class of the mark.

    Returns:
        The mark.

    Example:
        >>> from echo_hf.report.charts.scale import UNIT
        >>> span(UNIT, 0.25, 0.75, "whisker")
        '<line x1="25%" x2="75%" y1="13.0" y2="13.0" class="whisker"></line>'
    """
    ends = {"x1": scale.percent(low), "x2": scale.percent(high)}
    return element("line", **ends, y1=MIDDLE, y2=MIDDLE, class_=kind)


def bar(scale: Scale, value: float, kind: str = "bar") -> Markup:
    """A bar from zero, or from the nearest end of the axis.

    Args:
        scale: The axis.
        value: Where it ends.
        kind: Class of the mark.

    Returns:
        The mark.

    Example:
        >>> from echo_hf.report.charts.scale import UNIT
        >>> bar(UNIT, 0.2)
        '<rect x="0%" y="7" width="20%" height="12" rx="2" class="bar"></rect>'
    """
    start, end = sorted((scale.share(0.0), scale.share(value)))
    return element(
        "rect", x=percent(start), y=7, width=percent(end - start), height=12, rx=2, class_=kind
    )


def dots(scale: Scale, values: Iterable[float]) -> Markup:
    """A faint dot for each of a few numbers.

    Args:
        scale: The axis.
        values: The numbers.

    Returns:
        The marks.
    """
    return joined([dot(scale, value, "faint", 3) for value in values])


def distribution(scale: Scale, values: Sequence[float]) -> Markup:
    """The outline of how often numbers are, with a line from quartile to quartile.

    Args:
        scale: The axis.
        values: The numbers, at least two of them different.

    Returns:
        The marks.
    """
    heights = density(values, scale.low, scale.high)
    step = FINE / (len(heights) - 1)
    half = MIDDLE - 2
    upper = [f"{at * step:.0f},{MIDDLE - half * high:.1f}" for at, high in enumerate(heights)]
    lower = [f"{at * step:.0f},{MIDDLE + half * high:.1f}" for at, high in enumerate(heights)]
    outline = element("path", d="M" + "L".join([*upper, *reversed(lower)]) + "Z", class_="violin")
    return stretched(outline, HEIGHT)


def stretched(drawing: Markup, height: int) -> Markup:
    """A drawing `FINE` units wide, stretched to the width of its row.

    Args:
        drawing: Outlines alone: text would be stretched, too.
        height: In pixels.

    Returns:
        The SVG.
    """
    box = {"viewBox": f"0 0 {FINE} {height}", "preserveAspectRatio": "none"}
    return element("svg", drawing, **box, width="100%", height=height)


def _upright(scale: Scale, value: float, kind: str) -> Markup:
    place = scale.percent(value)
    return element("line", x1=place, x2=place, y1=0, y2=HEIGHT, class_=kind)


def _anchor(part: float) -> str:
    if part < 0.04:
        return "tick start"
    return "tick end" if part > 0.96 else "tick"
