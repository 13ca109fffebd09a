"""An export: a line for each figure of a run."""

from __future__ import annotations

from pathlib import Path

from echo_hf.report.export import ExportedRun


def write_lines(run: ExportedRun, folder: Path) -> None:
    """Write `figures.txt`."""
    rows = run.data.results.results
    lines = [f"{row.split} {row.system} {row.metric} {row.value}" for row in rows]
    (folder / "figures.txt").write_text("\n".join(lines) + "\n", "utf-8")
