"""What a report holds, in a terminal."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.text import Text

from echo_hf.report.numbers import plural
from echo_hf.report.report import Report


def show_report(console: Console, written: Report) -> None:
    """Prints where a report lies, and which pictures it could not show.

    Args:
        console: Where to print.
        written: The report.
    """
    for reason, pictures in sorted(Counter(written.problems.values()).items()):
        line = f"{plural(pictures, 'picture')} cannot be shown: {reason}"
        console.print(Text(line, "yellow"), soft_wrap=True)
    held = f"{plural(written.samples, 'sample')}, {plural(written.pictures, 'picture')}"
    console.print(Text(f"report: {written.path} ({held})"), soft_wrap=True)
