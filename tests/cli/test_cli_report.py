"""The verb that writes a report."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from echo_hf.cli import app
from echo_hf.judging.score import score
from echo_hf.tables import OUTPUTS
from tests.judging import run_for_tests as run

BLUE = run.stripes((0, 0, 200), (0, 90, 90))


def test_report_names_the_page(tmp_path: Path) -> None:
    """The verb writes the page beside the figures, and prints where it lies and what it holds."""
    config = run.run(tmp_path, {}, ["boat"])
    made = run.put(tmp_path, BLUE)
    run.write(tmp_path, OUTPUTS, [run.output("boat", "anole", image=made)])
    runs = tmp_path / "runs"
    score(config, runs=runs, n_boot=0)
    done = CliRunner().invoke(app, ["report", str(config), "--runs", str(runs), "--single-file"])
    page = runs / "evaluation" / "report" / "index.html"
    assert done.exit_code == 0, done.output
    assert "1 sample, 1 image" in done.output
    assert "data:image/jpeg;base64," in page.read_text("utf-8")
