"""What is open for review, and what was decided, in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from echo_hf.curate.decision import Decision
from echo_hf.curate.review import Reviews
from echo_hf.thread_view import plain

LONGEST_PROMPT = 160
APPLY = "echo-hf build {config}"
DECIDE = "echo-hf review {config} --keep ID --remove ID"


def show_open(console: Console, reviews: Reviews, config: Path) -> None:
    """Prints each sample that is open: its id, why, the prompt shortened, and its pictures.

    Args:
        console: Where to print.
        reviews: What is open.
        config: The config's file, for the command to go on with.
    """
    for number in reviews.cut:
        _print(console, f"{reviews.file}:{number} was cut short and does not count: decide again")
    for one in reviews.open:
        title = Text.assemble((one.id, "bold"), f"  {', '.join(one.reasons)}")
        console.print(title, soft_wrap=True)
        _print(console, f"  {plain(one.prompt, LONGEST_PROMPT)}")
        for picture in one.pictures:
            _print(console, f"  {picture}")
    count = len(reviews.open)
    if not count:
        _print(console, "nothing is open for review")
    else:
        told = "1 sample is" if count == 1 else f"{count:,} samples are"
        _print(console, f"{told} open; decide with: {DECIDE.format(config=config)}")


def show_decisions(console: Console, made: Sequence[Decision], config: Path) -> None:
    """Prints what was written down, and what makes it count.

    Args:
        console: Where to print.
        made: The decisions.
        config: The config's file.
    """
    for one in made:
        _print(console, f"{one.decision}  {one.id}")
    _print(console, f"written down; what makes it count: {APPLY.format(config=config)}")


def _print(console: Console, line: str) -> None:
    console.print(Text(line), soft_wrap=True)
