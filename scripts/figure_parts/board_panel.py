"""The third panel: the board, with what each system made of the row."""

from __future__ import annotations

from collections.abc import Sequence

from figure_parts.canvas import Box, Canvas, size_of
from figure_parts.story import MEASURED_ON, Place, Standing, Story

SIZE, LABEL, PAD = 16, 14.5, 16
IMAGE, LINE = 100, 106
EVEN = 0.5
TICKS = (0, EVEN, 1)


def board_panel(canvas: Canvas, story: Story, box: Box) -> list[tuple[float, float]]:
    canvas.card(box)
    canvas.word("win rate", box.x + PAD, box.y + 29, size=LABEL, fill=canvas.theme.ink, kind="m")
    judged = f"judge: {', '.join(story.judges)}"
    right = box.right - PAD
    canvas.word(
        judged, right, box.y + 29, size=LABEL - 1, fill=canvas.theme.quiet, kind="m", anchor="end"
    )
    canvas.line(box.x, box.y + 46, box.right, box.y + 46, canvas.theme.edge)
    axis = Box(box.x + PAD + IMAGE + 20, box.y + 58, box.width - 2 * PAD - IMAGE - 28, 0)
    bottom = axis.y + LINE * len(story.standings)
    _ticks(canvas, Box(axis.x, axis.y + 30, axis.width, bottom - axis.y - 30))
    for number, standing in enumerate(story.standings):
        _standing(canvas, standing, box.x + PAD, axis.y + LINE * number, axis)
    _legend(canvas, story.standings[0].places, box.x + PAD + 10, bottom + 46)
    return [(box.x, axis.y + LINE * at + 8 + IMAGE * 3 / 8) for at in range(len(story.standings))]


def _ticks(canvas: Canvas, box: Box) -> None:
    for at in TICKS:
        x = box.x + at * box.width
        dashes = ' stroke-dasharray="4 4"' if at == EVEN else ""
        canvas.line(x, box.y, x, box.bottom, canvas.theme.edge, dashes)
        canvas.word(
            f"{at:g}", x, box.bottom + 16, size=LABEL - 1, fill=canvas.theme.quiet, anchor="middle"
        )


def _standing(canvas: Canvas, standing: Standing, x: float, y: float, axis: Box) -> None:
    theme, (wide, high) = canvas.theme, size_of(standing.image)
    image = Box(x, y + 8, IMAGE, round(IMAGE * high / wide))
    canvas.image(standing.image, image, theme.edge, thick=1.5)
    canvas.word(standing.system, axis.x, y + 24, size=SIZE, fill=theme.ink, kind="b")
    for place in standing.places:
        measured = place.split == MEASURED_ON
        _place(canvas, place, axis, y + (52 if measured else 78))


def _place(canvas: Canvas, place: Place, axis: Box, y: float) -> None:
    theme, x = canvas.theme, axis.x + place.value * axis.width
    ends = [axis.x + end * axis.width for end in place.interval or (place.value, place.value)]
    _mark(canvas, place, x, y, ends)
    after = place.value < 0.8
    canvas.word(
        f"{place.value:.2f}",
        max(ends[1], x + 6) + 8 if after else min(ends[0], x - 6) - 8,
        y + 5,
        size=LABEL,
        fill=theme.quiet,
        anchor="start" if after else "end",
    )


def _mark(canvas: Canvas, place: Place, x: float, y: float, ends: Sequence[float]) -> None:
    theme = canvas.theme
    if place.interval is not None:
        canvas.line(ends[0], y, ends[1], y, theme.ink, ' stroke-width="2"')
        for end in ends:
            canvas.line(end, y - 6, end, y + 6, theme.ink, ' stroke-width="2"')
    filled = theme.ink if place.split == MEASURED_ON else theme.card
    canvas.dot(x, y, 4, filled, f' stroke="{theme.ink}" stroke-width="2"')


def _legend(canvas: Canvas, places: Sequence[Place], x: float, y: float) -> None:
    for place in sorted(places, key=lambda place: place.interval is None):
        _mark(canvas, place, x, y, (x - 10, x + 10))
        note = "no interval" if place.interval is None else "95 % interval"
        said = f"{place.split}: {place.samples} samples, {note}"
        canvas.word(said, x + 20, y + 5, size=LABEL - 0.5, fill=canvas.theme.quiet)
        y += 22
