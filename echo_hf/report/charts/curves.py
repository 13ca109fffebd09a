"""Mean colour histograms as three faint areas, one for each channel."""

from __future__ import annotations

from collections.abc import Sequence

from echo_hf.report.charts.marks import FINE, stretched
from echo_hf.report.markup import Markup, element

HEIGHT = 84
CHANNELS = ("red", "green", "blue")
GROUP = 4  # levels a step: 64 steps are as fine as the width shows


def grouped(shares: Sequence[float], group: int = GROUP) -> list[float]:
    """Neighbouring shares added up.

    Args:
        shares: As many as a multiple of `group`.
        group: How many become one.

    Returns:
        The sums.

    Example:
        >>> grouped([1, 2, 3, 4], 2)
        [3, 7]
    """
    return [sum(shares[at : at + group]) for at in range(0, len(shares), group)]


def highest(channels: Sequence[Sequence[float]]) -> float:
    """The highest step of a histogram but for its ends, where clipped levels pile up.

    Args:
        channels: Shares by channel and level.

    Returns:
        The share.
    """
    return max(max(grouped(channel)[1:-1]) for channel in channels)


def histogram(channels: Sequence[Sequence[float]], top: float) -> Markup:
    """A colour histogram.

    Args:
        channels: Shares of red, green and blue by level.
        top: The share at the upper edge; what is higher is cut there.

    Returns:
        The SVG.
    """
    areas = [
        element("path", d=_area(grouped(channel), top), class_=f"channel {name}")
        for name, channel in zip(CHANNELS, channels, strict=True)
    ]
    drawn = stretched(Markup("".join(areas)), HEIGHT)
    return element(
        "svg", drawn, class_="histogram", width="100%", height=HEIGHT, aria_hidden="true"
    )


def _area(steps: Sequence[float], top: float) -> str:
    width = FINE / (len(steps) - 1)
    points = [
        f"{at * width:.0f},{HEIGHT * (1 - min(1.0, step / top if top else 0.0)):.1f}"
        for at, step in enumerate(steps)
    ]
    return f"M0,{HEIGHT}L" + "L".join(points) + f"L{FINE},{HEIGHT}Z"
