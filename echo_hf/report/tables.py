"""Tables of the page: a caption, heads with their scope, and cells that may hold a plot."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from echo_hf.report.markup import Child, Markup, element, joined


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        head: Its head: text, or an axis.
        kind: Class of its cells: name, number, plot, text, or heat.
        label: What a screen reader says in place of a head that is drawn.
        optional: Whether it is left out on a phone.
    """

    head: Child
    kind: str = "number"
    label: str | None = None
    optional: bool = False

    @property
    def classes(self) -> str:
        """Classes of its cells."""
        return f"{self.kind} optional" if self.optional else self.kind


Row = Sequence[Child]


def table(
    caption: Child, columns: Sequence[Column], groups: Iterable[Iterable[Row]], kind: str = ""
) -> Markup:
    """A table whose first column names its rows.

    Args:
        caption: What the table shows.
        columns: Its columns.
        groups: Rows, in groups that are set apart from each other.
        kind: Further class of the table.

    Returns:
        The table, in a box that scrolls sideways where it is too wide.
    """
    head = element("tr", [_head(column) for column in columns])
    bodies = [element("tbody", [_row(columns, row) for row in group]) for group in groups]
    whole = element(
        "table", element("caption", caption), element("thead", head), bodies, class_=kind or None
    )
    return element(
        "div", whole, class_="scroll", tabindex=0, role="region", aria_label=spoken(caption)
    )


def spoken(caption: Child) -> str:
    """A caption without its elements, for an attribute.

    Example:
        >>> spoken(element("b", "a < b"))
        'a < b'
    """
    return html.unescape(re.sub(r"<[^>]*>", "", joined(caption)))


def _head(column: Column) -> Markup:
    hidden = element("span", column.label, class_="unseen") if column.label else None
    return element("th", column.head, hidden, scope="col", class_=column.classes)


def _row(columns: Sequence[Column], cells: Row) -> Markup:
    first, *others = cells
    name = element("th", first, scope="row", class_=columns[0].classes)
    rest = zip(columns[1:], others, strict=True)
    return element("tr", name, [_cell(column, cell) for column, cell in rest])


def _cell(column: Column, cell: Child) -> Markup:
    if isinstance(cell, Markup) and cell.startswith("<td"):
        return cell
    return element("td", cell, class_=column.classes)


def heat_cell(value: float | None, part: float | None, text: str, title: str) -> Markup:
    """A cell coloured by its number.

    Args:
        value: The number, null for none.
        part: From 0 to 1, where on the scale of colours it lies.
        text: How the number is written.
        title: What it is, as a sentence.

    Returns:
        The cell; 0.5 has the colour of paper.

    Example:
        >>> heat_cell(0.9, 0.9, "0.90", "a beats b")
        '<td class="heat h9" title="a beats b">0.90</td>'
    """
    if value is None or part is None:
        return element("td", "–", class_="heat", title=title)
    step = min(10, max(0, round(part * 10)))
    return element("td", text, class_=f"heat h{step}", title=title)
