"""The terminal that commands print to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from echo_hf._infra.text import disarmed


class Terminal(Console):
    """Prints what posts and models wrote as it stands: what they write as markup is text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "markup": False, "emoji": False, "highlight": False})

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """The pieces that are printed, without control characters that are not of our own."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else piece._replace(text=disarmed(piece.text))

    def on_broken_pipe(self) -> None:
        """Goes on in silence, and says so where errors are read."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        try:
            said = "nobody reads standard output any more: it is dropped, and the work goes on"
            print(f"echo-hf: {said}", file=sys.stderr, flush=True)
        except BrokenPipeError:  # both went into that pipe
            os.dup2(nowhere, sys.stderr.fileno())


def terminal() -> Terminal:
    """A terminal that obeys no text, without the progress bars of other libraries in between."""
    import datasets

    datasets.disable_progress_bars()
    return Terminal()
