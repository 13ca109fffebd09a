"""Draws the README's figure from a run of the quickstart, or checks that it is current.

    python scripts/readme_figure.py [--check] [--run FOLDER]

`docs/figure.svg` and `docs/figure_dark.svg` show a thread of the bundled corpus, the row of the
dataset that it became, and the board. Nothing in them is written by hand: a change of the pipeline
that shows there makes the files stale.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from pathlib import Path

import datasets
from figure_parts.board_panel import board_panel
from figure_parts.canvas import DARK, LIGHT, Box, Canvas, Theme
from figure_parts.row_panel import row_panel
from figure_parts.story import Story, digest_of, read_story
from figure_parts.thread_panel import thread_panel
from rich.console import Console

from echo_hf.cli.progress import TerminalProgress
from echo_hf.quickstart.run import show_quickstart

ROOT = Path(__file__).resolve().parent.parent
FILES = {ROOT / "docs" / "figure.svg": LIGHT, ROOT / "docs" / "figure_dark.svg": DARK}
WIDTH, HEIGHT = 1200, 728
TOP, MARGIN, ACROSS, BETWEEN = 84, 22, 354, 47
HEADINGS = (
    ("What people post", "a reply tree, images and all"),
    ("becomes a row", "every word and image has its source"),
    ("that systems are compared on", "the same task for all of them"),
)


def figure(story: Story, theme: Theme) -> str:
    canvas = Canvas(theme)
    canvas.rect(Box(0, 0, WIDTH, HEIGHT), theme.page, radius=14)
    columns = [
        Box(MARGIN + at * (ACROSS + BETWEEN), TOP, ACROSS, HEIGHT - TOP - MARGIN) for at in range(3)
    ]
    for box, (heading, below) in zip(columns, HEADINGS, strict=True):
        canvas.word(heading, box.x, 42, size=20, fill=theme.ink, kind="b")
        canvas.word(below, box.x, 66, size=16, fill=theme.quiet)
    starts = thread_panel(canvas, story, columns[0])
    ends = row_panel(canvas, story, columns[1])
    given = ends["input_images", digest_of(story.row["input_images"][0])][1]
    for end in board_panel(canvas, story, columns[2]):
        canvas.link((columns[1].right, given), end, theme.quiet, thick=1.5)
    for part, end in ends.items():
        canvas.link(starts[part], end, theme.parts[part[0]])
    return canvas.svg(WIDTH, HEIGHT, "From posts to a board", told(story))


def told(story: Story) -> str:
    board = ", ".join(f"{each.system} {each.places[-1].value:.2f}" for each in story.standings)
    return (
        f"A thread of {len(story.posts)} posts becomes one row of a dataset, whose prompt, input, "
        f"output and feedback each come from a place in the posts. Win rates: {board}."
    )


def finished_run(runs: Path) -> Path:
    show_quickstart(TerminalProgress(Console(file=io.StringIO())), runs)
    return runs / "quickstart"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if stale")
    parser.add_argument("--run", type=Path, help="a finished run of the quickstart")
    options = parser.parse_args()
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        story = read_story(options.run or finished_run(Path(folder)))
    drawn = {path: figure(story, theme) for path, theme in FILES.items()}
    stale = [path for path, text in drawn.items() if _written(path) != text]
    for path in stale:
        print(f"{'stale' if options.check else 'wrote'}: {path.relative_to(ROOT)}")
        if not options.check:
            path.write_text(drawn[path], "utf-8")
    return int(options.check and bool(stale))


def _written(path: Path) -> str | None:
    return path.read_text("utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
