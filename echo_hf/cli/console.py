"""The terminal that commands print to."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def terminal() -> Console:
    """A terminal that obeys no text, without the progress bars of other libraries in between."""
    from echo_hf.cli.progress import Terminal

    os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"  # read when it is imported
    if "datasets" in sys.modules:
        sys.modules["datasets"].disable_progress_bars()
    return Terminal()
