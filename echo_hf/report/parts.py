"""What sections are made of: headings, notes, tables, samples in a row, names of systems."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from echo_hf.reasons import Outcome
from echo_hf.report.markup import Child, Markup, element, joined
from echo_hf.report.run_data import Output, ReportSample
from echo_hf.report.thumbnails import Thumbnail, Thumbnails

NAMES = {
    "image_to_image": "Image to image",
    "text_to_image": "Text to image",
    "analysis": "Analysis",
    "color_shift": "Color shift",
    "face_identity": "Face identity",
    "structure_distance": "Structure distance",
    "text_rendering": "Text rendering",
    "ocr_accuracy": "Text read back",
}


def titled(name: str) -> str:
    return NAMES.get(name) or (name[:1].upper() + name[1:]).replace("_", " ")


def section(name: str, title: str, *children: Child, lead: Child = None) -> Markup:
    heading = element("h2", title, id=f"{name}-title")
    intro = element("p", lead, class_="lead") if lead else None
    return element("section", heading, intro, *children, id=name, aria_labelledby=f"{name}-title")


def note(*children: Child) -> Markup:
    """A remark in small type."""
    return element("p", *children, class_="note")


def warning(*children: Child) -> Markup:
    """A remark that must not be missed."""
    return element("p", *children, class_="warning", role="note")


def collapsible(title: Child, *children: Child) -> Markup:
    """Content that opens when its title is chosen."""
    return element("details", element("summary", title), *children)


def name_of(name: str) -> Markup:
    return element("bdi", name)


def breakable(name: str) -> Markup:
    """A name that may go on in a new line after its joints, for narrow columns."""
    parts = re.split(r"(?<=[_/ -])", name)
    return element(
        "bdi", [joined(Markup("<wbr>") if at else None, one) for at, one in enumerate(parts)]
    )


def judge_name(judge: str, failures: Mapping[str, Sequence[str]]) -> Markup:
    failed = failures.get(judge)
    if not failed:
        return breakable(judge)
    said = f"failed its audit: {', '.join(failed)}"
    return joined(breakable(judge), " ", element("span", said, class_="flag"))


def failed_note(judges: Sequence[str], failures: Mapping[str, Sequence[str]]) -> Markup | None:
    failed = [judge for judge in judges if failures.get(judge)]
    if not failed:
        return None
    named = [
        joined("; " if at else None, name_of(one), f" ({', '.join(failures[one])})")
        for at, one in enumerate(failed)
    ]
    share = "only" if len(failed) == len(judges) else "in part"
    return warning(
        f"Judged {share} by judges that failed their audit: ",
        named,
        ". Read these figures with that in mind.",
    )


def image(thumbnail: Thumbnail, text: str) -> Markup:
    return element(
        "img",
        src=thumbnail.source,
        width=thumbnail.width,
        height=thumbnail.height,
        alt=text,
        loading="lazy",
        decoding="async",
    )


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
        return f"{self.kind} optional" if self.optional else self.kind


Row = Sequence[Child]


def table(
    caption: Child, columns: Sequence[Column], groups: Iterable[Iterable[Row]], kind: str = ""
) -> Markup:
    head = element("tr", [_head(column) for column in columns])
    bodies = [element("tbody", [_row(columns, row) for row in group]) for group in groups]
    whole = element(
        "table", element("caption", caption), element("thead", head), bodies, class_=kind or None
    )
    return element(
        "div", whole, class_="scroll", tabindex=0, role="region", aria_label=spoken(caption)
    )


def spoken(caption: Child) -> str:
    """A caption without its elements, for an attribute."""
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
    if value is None or part is None:
        return element("td", "–", class_="heat", title=title)
    step = min(10, max(0, round(part * 10)))
    return element("td", text, class_=f"heat h{step}", title=title)


NOT_TRIED = "not tried"
Said = Mapping[tuple[str, str], str]


def strip(
    sample: ReportSample,
    systems: Sequence[str],
    outputs: Mapping[tuple[str, str], Output],
    thumbnails: Thumbnails,
    said: Said,
) -> Markup:
    cells = [*_inputs(sample, thumbnails)]
    for system in systems:
        output = outputs.get((sample.id, system))
        label = [name_of(system), _small(said.get((sample.id, system)))]
        cells.append(cell(output, f"output of {system}", label, thumbnails))
    heading = element("p", sample.prompt, class_="prompt clamped", dir="auto")
    listed = element("ul", cells, class_="strip", tabindex=0, aria_label="inputs and outputs")
    return element("article", heading, listed, class_="sample")


def cell(output: Output | None, text: str, label: Child, thumbnails: Thumbnails) -> Markup:
    """What a system made of a sample: its image, or a card that says why there is none."""
    shown = thumbnails.get(output.image or "") if output else None
    body = image(shown, text) if shown else _error_card(output)
    return element("li", element("figure", body, element("figcaption", label)))


def _error_card(output: Output | None) -> Markup:
    outcome = NOT_TRIED if output is None else output.outcome
    if output is not None and output.image:
        outcome = "cannot be shown"
    elif outcome == Outcome.OK:
        outcome = "no image"
    reason = output.reason if output else None
    return element(
        "div", element("b", outcome), element("span", reason) if reason else None, class_="missing"
    )


def _inputs(sample: ReportSample, thumbnails: Thumbnails) -> Iterator[Markup]:
    for at, digest in enumerate(sample.inputs, 1):
        text = f"input {at}" if len(sample.inputs) > 1 else "input"
        shown = thumbnails.get(digest)
        body = image(shown, text) if shown else _error_card(Output(digest, ""))
        caption = element("figcaption", text)
        yield element("li", element("figure", body, caption), class_="given")


def _small(text: str | None) -> Markup | None:
    return element("span", text, class_="small") if text else None
