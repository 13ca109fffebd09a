"""What is printed of a report."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from echo_hf.report.report import Report
from echo_hf.report.summary import show_report


def test_where_it_lies_and_what_it_lacks() -> None:
    """The path is on one line, and images that cannot be shown are counted by reason."""
    sink = io.StringIO()
    problems = {"a" * 64: "truncated", "b" * 64: "truncated", "c" * 64: "html"}
    written = Report(Path("runs") / ("long" * 40) / "index.html", 1200, 1, problems)
    show_report(Console(file=sink, width=60), written)
    assert sink.getvalue().splitlines() == [
        "1 image cannot be shown: html",
        "2 images cannot be shown: truncated",
        f"report: {written.path} (1,200 samples, 1 image)",
    ]
