"""The second panel: the row of the dataset, a cell for each column that the figure shows."""

from __future__ import annotations

from figure_parts.canvas import Box, Canvas, size_of
from figure_parts.story import SPLIT, Story, digest_of
from figure_parts.thread_panel import Anchors, marked
from figure_parts.words import wrapped

SIZE, LEADING, PAD = 15, 20, 16
LABEL, PICTURE = 14.5, 104


def row_panel(canvas: Canvas, story: Story, box: Box) -> Anchors:
    """Draws the row.

    Args:
        canvas: What to draw on.
        story: What to show.
        box: The card that it stands on.

    Returns:
        For each column and what stands in it, where the line to it ends.
    """
    canvas.card(box)
    _head(canvas, story, Box(box.x, box.y, box.width, 46))
    anchors: Anchors = {}
    room = Box(box.x + PAD, box.y + 46, box.width - 2 * PAD, 0)
    y = _words(canvas, "prompt", [(story.row["prompt"], "")], room, room.y + 14, anchors, box.x)
    for column in ("input_images", "output_images"):
        y = _picture(canvas, story, column, Box(room.x, y, room.width, 0), anchors, box.x)
    said = [(each["feedback"], _judged(each)) for each in story.row["community_feedback"]]
    _words(canvas, "community_feedback", said, room, y + 4, anchors, box.x)
    _foot(canvas, story, box)
    return anchors


def _head(canvas: Canvas, story: Story, box: Box) -> None:
    theme = canvas.theme
    canvas.word(SPLIT, box.x + PAD, box.y + 29, size=LABEL, fill=theme.ink, kind="m")
    task = f"task: {story.row['task']}"
    right = box.right - PAD
    canvas.word(task, right, box.y + 29, size=LABEL - 1, fill=theme.quiet, kind="m", anchor="end")
    canvas.line(box.x, box.bottom, box.right, box.bottom, theme.edge)


def _foot(canvas: Canvas, story: Story, box: Box) -> None:
    theme, top = canvas.theme, box.bottom - 46
    canvas.line(box.x, top, box.right, top, theme.edge)
    said = f"id: {story.row['id']}"
    canvas.word(said, box.x + PAD, top + 28, size=LABEL - 1, fill=theme.quiet, kind="m")


def _words(
    canvas: Canvas,
    column: str,
    values: list[tuple[str, str]],
    room: Box,
    y: float,
    anchors: Anchors,
    edge: float,
) -> float:
    colour = canvas.theme.parts[column]
    canvas.word(column, room.x, y + 14, size=LABEL, fill=colour, kind="m")
    y += 24
    for text, beside in values:
        lines = wrapped(text, SIZE, room.width - 14)
        high = len(lines) * LEADING + 8 + (20 if beside else 0)
        block = Box(room.x, y, room.width, high)
        marked(canvas, block, colour)
        canvas.words(lines, room.x + 11, y + 18, size=SIZE, leading=LEADING, fill=canvas.theme.ink)
        if beside:
            canvas.word(
                beside,
                room.x + 11,
                block.bottom - 8,
                size=LABEL - 1,
                fill=colour,
                kind="m",
            )
        anchors[column, text] = (edge, block.middle)
        y = block.bottom + 8
    return y


def _judged(comment: dict[str, str | None]) -> str:
    return " · ".join(filter(None, (comment["verdict"], comment["keyword"])))


def _picture(
    canvas: Canvas, story: Story, column: str, room: Box, anchors: Anchors, edge: float
) -> float:
    colour = canvas.theme.parts[column]
    (data,) = story.row[column]
    wide, high = size_of(data)
    box = Box(room.x, room.y + 6, PICTURE, round(PICTURE * high / wide))
    canvas.picture(data, box, colour)
    canvas.word(column, box.right + 14, box.middle, size=LABEL, fill=colour, kind="m")
    said = f"{wide} × {high}, as posted"
    canvas.word(said, box.right + 14, box.middle + 20, size=LABEL, fill=canvas.theme.quiet)
    anchors[column, digest_of(data)] = (edge, box.middle)
    return box.bottom + 8
