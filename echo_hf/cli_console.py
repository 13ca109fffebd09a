"""The terminal that commands print to."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def terminal() -> Console:
    """A terminal, without the progress bars of other libraries in between.

    When nobody reads it any more, as after `| head`, what is printed is dropped: work that may have
    been paid for goes on and is kept.
    """
    import datasets
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True
            _drop_output()

    datasets.disable_progress_bars()
    return Terminal()


def _drop_output() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    try:
        said = "nobody reads standard output any more: what is printed is dropped, the work goes on"
        print(f"echo-hf: {said}", file=sys.stderr, flush=True)
    except BrokenPipeError:  # both went into that pipe
        os.dup2(nowhere, sys.stderr.fileno())
