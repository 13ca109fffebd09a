"""What the terminal says of people who rank: what there is to do, where, and what was done."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from echo_hf.apps.rank.rank import Ranks


def show_draw(console: Console, ranks: Ranks) -> None:
    """Says what there is to rank, and what is not there and why."""
    draw = ranks.ranker.draw
    splits = Counter(sample.task.split for sample in draw.samples)
    parts = ", ".join(f"{count} of {split}" for split, count in splits.items())
    console.print(Text(f"to rank: {parts} (seed {draw.seed})"), soft_wrap=True)
    for reason, count in draw.left_out.items():
        console.print(
            Text(f"not ranked: {count} {reason}: {reason.meaning}", "dim"), soft_wrap=True
        )


def show_address(console: Console, address: str) -> None:
    """Says where the page is."""
    console.print(Text(f"\nopen {address} in a browser; Ctrl-C ends it, nothing is lost"))


def show_written(console: Console, ranks: Ranks) -> None:
    """Says what was written down."""
    written = ranks.write()
    if not written.rankings and not written.kept:
        return
    rankings = f"{written.rankings} ranking{'' if written.rankings == 1 else 's'}"
    others = f", beside {written.kept} rows from elsewhere" if written.kept else ""
    console.print(Text(f"\n{rankings} in {written.path}{others}"), soft_wrap=True)
    for reason, count in written.left_out.items():
        console.print(Text(f"{count} ranks are not there, {reason}: {reason.meaning}", "dim"))
    console.print(Text("next: echo-hf agree compares judges with them", "dim"))
