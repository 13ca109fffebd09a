"""Many points in a plane as one outline for each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from echo_hf.report.markup import Markup, element

WIDTH, HEIGHT, MARGIN = 640, 400, 12
Places = Sequence[tuple[float, float]]


def scatter(groups: Mapping[str, Places], label: str) -> Markup:
    """Points of several groups, the last group on top.

    Args:
        groups: Places by name of the group.
        label: What is shown, as a sentence.

    Returns:
        The SVG. A group is one path of lines without length, whose round ends are the points, so
        that thousands of them cost nothing.
    """
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
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        width="100%",
        class_="scatter",
        role="img",
        aria_label=label,
    )


def points(places: Places, box: tuple[float, float, float, float]) -> str:
    """A line without length at each place.

    Args:
        places: The places.
        box: Left, lower, right and upper end of the plane.

    Returns:
        A path.

    Example:
        >>> points([(0, 0), (1, 1)], (0, 0, 1, 1))
        'M12.0,388.0h0M628.0,12.0h0'
    """
    left, low, right, high = box
    across, down = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
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
