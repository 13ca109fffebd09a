"""The second panel: the row of the dataset, a cell for each column that the figure shows."""

from __future__ import annotations

from figure_parts.canvas import Box, Canvas, check_room, size_of, wrapped
from figure_parts.story import SPLIT, Story, digest_of
from figure_parts.thread_panel import Anchors, marked

SIZE, LEADING, PAD = 14.5, 19, 16
LABEL, IMAGE, HEAD = 14.5, 104, 46


def row_panel(canvas: Canvas, story: Story, box: Box) -> Anchors:
    canvas.card(box)
    _head(canvas, story, Box(box.x, box.y, box.width, HEAD))
    anchors: Anchors = {}
    cells = Box(box.x + PAD, box.y + HEAD + 14, box.width - 2 * PAD, 0)
    cells = _words(canvas, "prompt", [(story.row["prompt"], "")], cells, anchors)
    for column in ("input_images", "output_images"):
        cells = _image(canvas, story, column, cells, anchors)
    said = [(each["feedback"], _judged(each)) for each in story.row["community_feedback"]]
    cells = _words(canvas, "community_feedback", said, _below(cells, cells.y + 4), anchors)
    check_room("the row's cells", cells.y, box.bottom - HEAD)
    _foot(canvas, story, box)
    return anchors


def _below(cells: Box, y: float) -> Box:
    """The room that is left from `y` on."""
    return Box(cells.x, y, cells.width, 0)


def _head(canvas: Canvas, story: Story, box: Box) -> None:
    theme = canvas.theme
    canvas.word(SPLIT, box.x + PAD, box.y + 29, size=LABEL, fill=theme.ink, kind="m")
    task = f"task: {story.row['task']}"
    right = box.right - PAD
    canvas.word(task, right, box.y + 29, size=LABEL - 1, fill=theme.quiet, kind="m", anchor="end")
    canvas.line(box.x, box.bottom, box.right, box.bottom, theme.edge)


def _foot(canvas: Canvas, story: Story, box: Box) -> None:
    theme, top = canvas.theme, box.bottom - HEAD
    canvas.line(box.x, top, box.right, top, theme.edge)
    said = f"id: {story.row['id']}"
    canvas.word(said, box.x + PAD, top + 28, size=LABEL - 1, fill=theme.quiet, kind="m")


def _words(
    canvas: Canvas, column: str, values: list[tuple[str, str]], cells: Box, anchors: Anchors
) -> Box:
    """Writes texts, each with what stands beside it; gives the room that is left."""
    color, y = canvas.theme.parts[column], cells.y + 24
    canvas.word(column, cells.x, cells.y + 14, size=LABEL, fill=color, kind="m")
    for text, beside in values:
        lines = wrapped(text, SIZE, cells.width - 14)
        block = Box(cells.x, y, cells.width, len(lines) * LEADING + (28 if beside else 8))
        marked(canvas, block, color)
        x, ink = cells.x + 11, canvas.theme.ink
        canvas.words(lines, x, y + 18, size=SIZE, leading=LEADING, fill=ink)
        if beside:
            canvas.word(beside, x, block.bottom - 8, size=LABEL - 1, fill=color, kind="m")
        anchors[column, text] = (cells.x - PAD, block.middle)
        y = block.bottom + 8
    return _below(cells, y)


def _judged(comment: dict[str, str | None]) -> str:
    return " · ".join(filter(None, (comment["verdict"], comment["keyword"])))


def _image(canvas: Canvas, story: Story, column: str, cells: Box, anchors: Anchors) -> Box:
    """Draws a column's image; gives the room that is left."""
    color = canvas.theme.parts[column]
    (data,) = story.row[column]
    wide, high = size_of(data)
    box = Box(cells.x, cells.y + 6, IMAGE, round(IMAGE * high / wide))
    canvas.image(data, box, color)
    canvas.word(column, box.right + 14, box.middle, size=LABEL, fill=color, kind="m")
    said = f"{wide} × {high}, as posted"
    canvas.word(said, box.right + 14, box.middle + 20, size=LABEL, fill=canvas.theme.quiet)
    anchors[column, digest_of(data)] = (cells.x - PAD, box.middle)
    return _below(cells, box.bottom + 8)
