"""The terminal that commands print to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def terminal() -> Console:
    """A terminal that obeys no text, without the progress bars of other libraries in between."""
    import datasets

    from echo_hf.cli.progress import Terminal

    datasets.disable_progress_bars()
    return Terminal()
