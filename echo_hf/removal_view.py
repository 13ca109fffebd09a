"""What was forgotten, in a terminal."""

from __future__ import annotations

from pathlib import Path

import datasets
from rich.console import Console
from rich.text import Text

from echo_hf.removal import Removal


def show_removal(console: Console, taken: Removal, config: Path) -> None:
    """Prints what went, what was not found, and what still holds it.

    Args:
        console: Where to print.
        taken: What was taken away.
        config: The config's file, for the command to go on with.
    """
    lines = [
        f"forgotten: {taken.posts} of {len(taken.urls)} posts were here; {len(taken.samples)} "
        f"samples, {taken.pictures} pictures and {taken.answers} stored answers went with them; "
        f"{taken.pages} stored pages of platforms lost their content"
    ]
    for url in taken.unknown:
        said = f"nothing here was at {url}: is that how your posts spell it?"
        lines.append(f"{said} It will not be collected")
    lines += [f"still in {place}: edit that file, it is yours" for place in taken.left_in]
    lines.append(
        "what somebody else loaded with datasets may lie in "
        f"{str(datasets.config.HF_DATASETS_CACHE)!r}, too, and wherever the release went: delete "
        "it there"
    )
    for line in (*lines, f"next: echo-hf build {config}"):
        console.print(Text(line), soft_wrap=True)
