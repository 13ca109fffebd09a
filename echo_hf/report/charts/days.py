"""A count for each of many days or months as thin columns."""

from __future__ import annotations

from collections.abc import Sequence

from echo_hf.report.charts.marks import FINE, stretched
from echo_hf.report.markup import Markup, element

HEIGHT = 110
GAP = 0.15  # of the width of a column


def columns(counts: Sequence[int], top: float) -> str:
    """The outline of columns side by side.

    Args:
        counts: One for each column, at least one.
        top: The count at the upper edge, above 0.

    Returns:
        A path over a box `FINE` wide and `HEIGHT` high.

    Example:
        >>> columns([1, 2], 2)
        'M38,110V55.0H462V110ZM538,110V0.0H962V110Z'
    """
    width = FINE / len(counts)
    return "".join(
        f"M{(at + GAP / 2) * width:.0f},{HEIGHT}V{HEIGHT * (1 - count / top):.1f}"
        f"H{(at + 1 - GAP / 2) * width:.0f}V{HEIGHT}Z"
        for at, count in enumerate(counts)
        if count
    )


def days(counts: Sequence[int], first: str, last: str, label: str) -> Markup:
    """Counts over time.

    Args:
        counts: One for each day, at least one.
        first: Name of the first day.
        last: Name of the last day.
        label: What is shown, as a sentence.

    Returns:
        A figure with the first and last day and the highest count named.
    """
    top = max(*counts, 1)
    path = element("path", d=columns(counts, top), class_="column")
    drawn = element(
        "svg",
        stretched(path, HEIGHT),
        class_="days",
        width="100%",
        height=HEIGHT,
        role="img",
        aria_label=label,
    )
    ends = [element("span", text) for text in (first, f"at most {top:,} a day", last)]
    return element("figure", drawn, element("figcaption", ends, class_="ends"))
