"""The console that commands print to, and common ways to print."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from echo_hf._infra.text import clean, strip_controls

Notify = Callable[[str], None]  # told one line of what is being done
DETAILS: ContextVar[bool] = ContextVar("details", default=False)  # whether `-v` asks for them
SEE_MORE = "-v"


class PlainConsole(Console):
    """A console that shows markup in posts and answers as plain text.

    Attributes:
        details: Whether all is printed, and not only what answers the question of a verb.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "markup": False, "emoji": False, "highlight": False})
        self.details = DETAILS.get()

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield the segments without control characters of other origin."""
        for piece in super().render(renderable, options):
            yield (piece if piece.control else piece._replace(text=strip_controls(piece.text)))

    def on_broken_pipe(self) -> None:
        """Go on silently after a note on standard error."""
        self.quiet = True
        null_file = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_file, sys.stdout.fileno())
        try:
            message = "nobody reads standard output any more: it is dropped, and the work goes on"
            print(f"echo-hf: {message}", file=sys.stderr, flush=True)
        except BrokenPipeError:  # both went into that pipe
            os.dup2(null_file, sys.stderr.fileno())


def make_console() -> PlainConsole:
    """Make a plain console, and turn off the progress bars of datasets."""
    os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"  # read when it is imported
    if "datasets" in sys.modules:
        sys.modules["datasets"].disable_progress_bars()
    return PlainConsole()


def say(console: Console, line: str, style: str = "") -> None:
    """Print a line as it is, and leave its wrapping to the terminal."""
    console.print(Text(line, style), soft_wrap=True)


def say_under(console: Console, mark: str, line: str, style: str = "") -> None:
    """Print a mark and a line that wraps under its own first word.

    What goes into a file or a pipe stays in one line, so that it can be searched.
    """
    text = Text.assemble((f"{mark} ", style), (line, style))
    if not console.is_terminal or text.cell_len <= console.width:
        console.print(text, soft_wrap=True)
        return
    indent = Text(f"{mark} ").cell_len
    first, *others = Text(line, style).wrap(console, max(console.width - indent, 1))
    console.print(Text.assemble((f"{mark} ", style), first), soft_wrap=True)
    for line_rest in others:
        console.print(Padding(line_rest, (0, 0, 0, indent)))


def make_table(
    *headings: str,
    left: Collection[str] = (),
    title: str | None = None,
    rows: Iterable[Iterable[str | Text]] = (),
) -> Table:
    """Make a table without lines: numbers right, the first column and text columns left."""
    table = Table(title=title and Text(title), title_justify="left", box=None, pad_edge=False)
    for number, heading in enumerate(headings):
        is_left = not number or heading in left
        # A narrow terminal folds names rather than leave anything out.
        table.add_column(
            Text(clean(heading)), justify="left" if is_left else "right", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def show_table(console: Console, title: str, table: Table, notes: Iterable[str] = ()) -> None:
    say(console, title, "bold")
    console.print(table)
    for note in notes:
        say(console, note, "dim")
    console.print()


def print_json(payload: Mapping[str, Any]) -> None:
    """Print an object as one line of JSON; NaN becomes null, unknown types their text."""
    print(json.dumps(_to_json_value(payload), allow_nan=False))


def _to_json_value(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _to_json_value(member) for key, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_to_json_value(member) for member in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
